// SPDX-License-Identifier: Apache-2.0
// Cost of recording a tick and of reading a day: 8 GPUs with 30 metrics at 1 Hz.
#include <benchmark/benchmark.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>

#include "runfile/run_reader.h"
#include "runfile/run_writer.h"

namespace {

using namespace epochmeter;

constexpr int kGpus = 8, kMetrics = 30;
constexpr int64_t kSecond = 1'000'000'000;

// A third of the metrics hardly moves, a third wanders, a third is noise.
class Stream {
 public:
  explicit Stream(runfile::RunWriter& writer) : writer_(writer) {
    for (uint32_t gpu = 0; gpu < kGpus; ++gpu) {
      writer.Write(model::EntityDef{.id = gpu, .name = "gpu" + std::to_string(gpu)});
      for (uint32_t metric = 0; metric < kMetrics; ++metric) {
        model::SeriesDef def{.id = gpu * kMetrics + metric, .entity = gpu, .period_ns = kSecond};
        def.metric.name = "metric." + std::to_string(metric);
        def.metric.resolution = metric % 10 == 9 ? 1e-4 : metric % 10 == 8 ? 0.1 : 1;
        writer.Write(def);
        samples_.values.push_back({.series = def.id, .value = 100});
      }
    }
  }

  void Tick() {
    samples_.t_ns += kSecond + static_cast<int64_t>(engine_() % 200'000);
    for (model::SampleValue& sample : samples_.values) {
      const uint32_t kind = sample.series % kMetrics % 3;
      if (kind == 1) sample.value += static_cast<double>(engine_() % 5) - 2;
      if (kind == 2) sample.value = static_cast<double>(engine_() % 7000) / 10;
    }
    writer_.Write(samples_);
    model::Event step{.t_ns = samples_.t_ns, .kind = model::EventKind::kStep, .step = ++step_};
    step.fields.push_back(
        {.key = "duration_s", .value = static_cast<double>(engine_() % 1000) / 1e3});
    writer_.Write(step);
  }

 private:
  runfile::RunWriter& writer_;
  std::mt19937 engine_{1};
  model::Samples samples_;
  int64_t step_ = 0;
};

std::string TemporaryPath() {
  const char* folder = std::getenv("TMPDIR");
  return std::string(folder != nullptr ? folder : "/tmp") + "/runfile_bench.emr";
}

std::unique_ptr<runfile::RunWriter> CreateFile() {
  runfile::RunWriter::Options options;
  options.force = true;
  return std::move(runfile::RunWriter::Create(TemporaryPath(), options)).value();
}

// One tick written and flushed, sealing included.
void BM_TickAndFlush(benchmark::State& state) {
  auto writer = CreateFile();
  Stream stream(*writer);
  for (auto _ : state) {
    stream.Tick();
    if (!writer->Flush().ok()) state.SkipWithError("flush failed");
  }
  state.counters["bytes/tick"] = benchmark::Counter(
      static_cast<double>(writer->stats().bytes_written) / static_cast<double>(state.iterations()));
}
BENCHMARK(BM_TickAndFlush)->Iterations(6000);

void WriteDay() {
  auto writer = CreateFile();
  Stream stream(*writer);
  for (int tick = 0; tick < 86400; ++tick) {
    stream.Tick();
    if (tick % 600 == 599) (void)writer->Flush();
  }
  (void)writer->Finish({.t_ns = 0, .reason = "exited"});
}

void BM_OpenDay(benchmark::State& state) {
  WriteDay();
  for (auto _ : state) benchmark::DoNotOptimize(runfile::OpenRun(TemporaryPath()));
  const auto bytes = static_cast<double>(std::filesystem::file_size(TemporaryPath()));
  state.counters["bytes/value"] = bytes / (86400.0 * kGpus * kMetrics);
}
BENCHMARK(BM_OpenDay)->Unit(benchmark::kMillisecond);

// Means of 90 epochs of every series.
void BM_EpochMeans(benchmark::State& state) {
  const auto run = runfile::OpenRun(TemporaryPath());
  const int64_t length = (run->span.end_ns - run->span.begin_ns) / 90;
  for (auto _ : state) {
    for (const model::SeriesDef& def : run->series) {
      for (int64_t begin = run->span.begin_ns; begin < run->span.end_ns; begin += length) {
        benchmark::DoNotOptimize(run->store->Summarize(def.id, {begin, begin + length - 1}));
      }
    }
  }
}
BENCHMARK(BM_EpochMeans)->Unit(benchmark::kMillisecond);

void BM_ReadOneSeriesOfADay(benchmark::State& state) {
  const auto run = runfile::OpenRun(TemporaryPath());
  for (auto _ : state) benchmark::DoNotOptimize(run->store->Read(8, {}));
}
BENCHMARK(BM_ReadOneSeriesOfADay)->Unit(benchmark::kMillisecond);

}  // namespace
