// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>

#include "base/file.h"
#include "ingest/importers.h"
#include "ingest/json_text.h"
#include "ingest/recording_log.h"
#include "model/run_builder.h"

namespace epochmeter::ingest {
namespace {

namespace fs = std::filesystem;
using model::EventKind;
using model::Interval;
using model::Scope;

std::string Environment(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value ? value : otherwise;
}

std::string TinyFolder() {
  return Environment("EPOCHMETER_SOURCE_DIR", ".") + "/tests/fixtures/recording_tiny";
}

// A run with the records that made it.
struct Imported {
  model::MemorySink sink;
  model::Run run;
  ImportSummary summary;

  const model::EntityDef* Entity(Scope scope, std::string_view name) const {
    for (const auto& entity : run.entities) {
      if (entity.scope == scope && entity.name == name) return &entity;
    }
    return nullptr;
  }
  std::optional<model::SeriesId> Series(Scope scope, std::string_view name,
                                        std::string_view field) const {
    const auto* entity = Entity(scope, name);
    return entity ? run.FindSeries(entity->id, field) : std::nullopt;
  }
  model::SeriesColumn Column(Scope scope, std::string_view name, std::string_view field) const {
    const auto series = Series(scope, name, field);
    return series ? run.store->Read(*series, {}).value() : model::SeriesColumn{};
  }
  model::Summary Summarize(Scope scope, std::string_view name, std::string_view field,
                           Interval interval) const {
    const auto series = Series(scope, name, field);
    return series ? run.store->Summarize(*series, interval).value() : model::Summary{};
  }
  const model::Event* Event(EventKind kind, std::string_view name = "") const {
    for (const auto& event : run.events) {
      if (event.kind == kind && (name.empty() || event.name == name)) return &event;
    }
    return nullptr;
  }
  uint64_t Lost(std::string_view kind) const {
    uint64_t count = 0;
    for (const auto& loss : run.losses) count += loss.kind == kind ? loss.count : 0;
    return count;
  }
};

std::unique_ptr<Imported> Import(const std::string& folder) {
  auto imported = std::make_unique<Imported>();
  const auto summary = FindImporter("recording")->Import(folder, {}, imported->sink);
  if (!summary.ok()) {
    ADD_FAILURE() << summary.error().Message();
    return nullptr;
  }
  imported->summary = *summary;
  model::RunBuilder builder;
  for (const auto& record : imported->sink.records) builder.Write(record);
  imported->run = builder.Finish();
  return imported;
}

class TinyRecording : public testing::Test {
 protected:
  void SetUp() override {
    tiny_ = Import(TinyFolder());
    ASSERT_NE(tiny_, nullptr);
  }
  std::unique_ptr<Imported> tiny_;
};

constexpr int64_t kStart = 1'000'000'000;
constexpr int64_t At(double seconds) { return kStart + static_cast<int64_t>(seconds * 1e9 + 0.5); }

TEST_F(TinyRecording, BeginsWithTheRunAndItsClocks) {
  ASSERT_TRUE(std::holds_alternative<model::RunInfo>(tiny_->sink.records.front()));
  ASSERT_TRUE(std::holds_alternative<model::RunEnd>(tiny_->sink.records.back()));
  EXPECT_EQ(tiny_->run.info->anchor.mono_ns, kStart);
  EXPECT_EQ(tiny_->run.WallNs(kStart), 1796021986812347936);
  EXPECT_EQ(tiny_->run.end->reason, "detached");
  EXPECT_FALSE(tiny_->run.end->exit_code) << "a recording does not tell it";
}

TEST_F(TinyRecording, GpuValuesHaveTheirUnits) {
  const auto gpu = [this](const char* field) { return tiny_->Column(Scope::kGpu, "gpu:0", field); };
  EXPECT_EQ(gpu("memory_used_bytes").value.at(3), 103000000);
  EXPECT_EQ(gpu("memory_total_bytes").value.at(0), 1000000000);
  EXPECT_EQ(gpu("power_w").value.at(1), 105);
  EXPECT_EQ(gpu("energy_j").value.at(9), 5090);
  EXPECT_EQ(gpu("sm_clock_hz").value.at(0), 1980e6);
  EXPECT_EQ(gpu("utilization_ratio").value.at(4), 0.4);
  EXPECT_EQ(gpu("throttle_power_cap_s").value.at(2), 0.002);
  EXPECT_EQ(gpu("process_memory_bytes").value.at(0), 90000);
  EXPECT_EQ(gpu("processes").value.at(0), 2);
  EXPECT_EQ(gpu("pcie_transmit_bytes_per_s").value.at(0), 37.692 * 1048576);
  EXPECT_EQ(tiny_->Column(Scope::kProcess, "gpu:0/101", "gpu_memory_bytes").value.at(0), 60000);
  const auto* entity = tiny_->Entity(Scope::kGpu, "gpu:1");
  EXPECT_EQ(entity->labels, (model::Labels{{"gpu", "1"}}));
  const model::SeriesId series = tiny_->Series(Scope::kGpu, "gpu:0", "power_w").value();
  EXPECT_EQ(tiny_->run.series.at(series).period_ns, 100'000'000);
}

TEST_F(TinyRecording, CountersOfThirtyTwoBitsGoOnOverTheWrap) {
  const auto column = tiny_->Column(Scope::kGpu, "gpu:0", "pcie_transmit_bytes");
  ASSERT_EQ(column.value.size(), 10U);
  for (size_t i = 1; i < 10; ++i) EXPECT_EQ(column.value[i] - column.value[i - 1], 1000);
}

TEST_F(TinyRecording, WhatIsNoValueIsAbsentWithItsReason) {
  EXPECT_EQ(tiny_->Column(Scope::kGpu, "gpu:1", "utilization_ratio").value.size(), 5U);
  EXPECT_EQ(tiny_->run.states.at(0).condition, model::SeriesCondition::kNotSupported);
  EXPECT_FALSE(tiny_->Series(Scope::kGpu, "gpu:1", "memory_temperature_c")) << "0 is no sensor";
  EXPECT_EQ(tiny_->Column(Scope::kGpu, "gpu:0", "sm_active_ratio").value,
            (std::vector<double>{0.4, 0.6, 0.8}))
      << "the nan is a gap";
  EXPECT_EQ(tiny_->Column(Scope::kGpu, "gpu:0", "utilization_ratio").value.size(), 9U);
  EXPECT_EQ(tiny_->Lost("value.out_of_range"), 1U);
  EXPECT_FALSE(tiny_->Series(Scope::kGpu, "gpu:1", "process_memory_bytes"))
      << "memory in use that an empty list does not explain";
}

TEST_F(TinyRecording, TreeSumsNeverFallWhenAProcessEnds) {
  const auto cpu = tiny_->Column(Scope::kProcess, "tree", "cpu_s");
  ASSERT_EQ(cpu.value.size(), 10U);
  EXPECT_EQ(cpu.value[0], 1.7);
  EXPECT_DOUBLE_EQ(cpu.value[3], (150 + 53) / 100.0);
  EXPECT_DOUBLE_EQ(cpu.value[4], (160 + 53) / 100.0) << "pid 102 ended and keeps its 0.53 s";
  EXPECT_EQ(tiny_->Column(Scope::kProcess, "tree", "rss_bytes").value.at(4), 1000 * 4096);
  EXPECT_EQ(tiny_->Column(Scope::kProcess, "tree", "processes").value.at(4), 1);
  EXPECT_EQ(tiny_->Column(Scope::kProcess, "tree", "major_faults").value.at(9), 1);
  EXPECT_EQ(tiny_->Column(Scope::kHost, "host", "cpu_user_s").value.at(1), 10.1);
  EXPECT_EQ(tiny_->Column(Scope::kHost, "host", "memory_available_bytes").value.at(1), 1499 * 1024);
}

TEST_F(TinyRecording, EventsKeepNumbersTimesAndScalars) {
  const auto& steps = tiny_->run.steps.at(0);
  ASSERT_EQ(steps.size(), 8U);
  EXPECT_EQ(steps.step.back(), 8);
  EXPECT_EQ(steps.epoch.back(), 1);
  EXPECT_EQ(steps.Column("duration_s")->at(0), 0.05);
  EXPECT_EQ(steps.Column("data_wait_s")->at(0), 0.001);
  EXPECT_EQ(steps.Column("batch_size")->at(0), 8);
  EXPECT_EQ(steps.Column("scalar.loss")->at(1), 0.5);
  EXPECT_TRUE(std::isnan(steps.Column("scalar.loss")->at(5)));
  EXPECT_EQ(tiny_->Event(EventKind::kTrainBegin)->Text("gpus"), "0");
  const auto* eval = tiny_->Event(EventKind::kPhaseEnd, "eval");
  ASSERT_NE(eval, nullptr);
  EXPECT_EQ(eval->epoch, 0);
  EXPECT_NEAR(eval->Number("duration_s").value(), 0.04, 1e-9);
  EXPECT_EQ(eval->Number("scalar.acc"), 0.5);
  EXPECT_NE(tiny_->Event(EventKind::kPhaseBegin, "checkpoint"), nullptr);
  EXPECT_EQ(tiny_->Event(EventKind::kException)->name, "OutOfMemoryError");
  EXPECT_EQ(tiny_->Event(EventKind::kException)->Text("message"), "out of memory");
}

TEST_F(TinyRecording, AllocatorNumbersAreSamplesOfTheInstant) {
  const Interval epoch{.begin_ns = At(0.5), .end_ns = At(0.75)};
  const auto allocated = tiny_->Summarize(Scope::kRank, "rank:0", "allocated_bytes", epoch);
  EXPECT_EQ(allocated.count, 6U) << "begin, four steps, end";
  EXPECT_EQ(allocated.last, 9000);
  EXPECT_EQ(allocated.t_last_ns, At(0.75));
  EXPECT_EQ(tiny_->Summarize(Scope::kRank, "rank:0", "max_allocated_bytes", epoch).last, 13500);
}

TEST_F(TinyRecording, RecordsComeInOrderOfTime) {
  int64_t last = 0;
  for (const auto& record : tiny_->sink.records) {
    if (const auto* samples = std::get_if<model::Samples>(&record)) {
      EXPECT_GE(samples->t_ns, last);
      last = samples->t_ns;
    } else if (const auto* event = std::get_if<model::Event>(&record)) {
      EXPECT_GE(event->t_ns, last);
      last = event->t_ns;
    }
  }
}

TEST_F(TinyRecording, DamagedLinesAreNamedAndCostOnlyThemselves) {
  EXPECT_EQ(tiny_->summary.bad_lines, 2U);
  EXPECT_EQ(tiny_->Lost("recording.bad_line"), 2U);
  bool named = false;
  for (const auto& loss : tiny_->run.losses) {
    named = named || loss.detail.find("samples.jsonl:25") != std::string::npos;
  }
  EXPECT_TRUE(named);
}

TEST_F(TinyRecording, LogIsPlacedThoughItsZoneIsNotUtc) {
  const auto& log = tiny_->run.log;
  ASSERT_EQ(log.size(), 5U);
  const auto ms = [](int64_t t_ns) { return (t_ns - kStart) / 1'000'000; };
  EXPECT_NEAR(static_cast<double>(ms(log[1].t_ns)), 360, 1);
  EXPECT_EQ(log[0].t_ns, log[1].t_ns) << "before the first stamp";
  EXPECT_EQ(log[2].text, "  continued\n");
  EXPECT_EQ(log[2].t_ns, log[1].t_ns);
  EXPECT_EQ(log[4].text, "no line end");
  EXPECT_NEAR(static_cast<double>(ms(log[4].t_ns)), 760, 1);
}

TEST(RecordingLog, KnowsBothKindsOfStamp) {
  const auto iso = LogStampNs("2026-11-30 06:59:57,274 - INFO - x", 2026);
  EXPECT_EQ(iso, 1796021997274000000);
  EXPECT_EQ(LogStampNs("[rank0]:[W1130 06:59:57.274000000 P.cpp:1] y", 2026), iso);
  EXPECT_FALSE(LogStampNs("2026-13-30 06:59:57", 2026));
  EXPECT_FALSE(LogStampNs("Warning: 1130", 2026));
  EXPECT_FALSE(LogStampNs("", 2026));
}

TEST(RecordingLog, WithoutAStampNoLineHasATime) {
  for (const auto& line : PlaceLog({"a\n", "b\n"}, 1'700'000'000'000'000'000, 0, 1'000'000'000)) {
    EXPECT_FALSE(line.t_ns);
  }
}

// A folder of its own for one test.
class Folder {
 public:
  Folder() : path_(fs::temp_directory_path() / ("epm_recording_" + std::to_string(getpid()))) {
    fs::create_directories(path_);
  }
  ~Folder() { fs::remove_all(path_); }
  std::string path() const { return path_.string(); }
  void Write(const std::string& name, std::string_view bytes) const {
    ASSERT_TRUE(base::WriteFileAtomically(path() + "/" + name, bytes).ok());
  }

 private:
  fs::path path_;
};

std::string Gzip(const std::string& text, const std::string& path) {
  gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
  gzclose(file);
  return base::ReadFile(path).value();
}

TEST(Recording, CutAnywhereGivesAPrefixAndNeverAnInventedValue) {
  const Folder folder;
  const std::string whole = base::ReadFile(TinyFolder() + "/samples.jsonl").value();
  const std::string packed = Gzip(whole, folder.path() + "/packed");
  const auto complete = Import(TinyFolder());
  ASSERT_NE(complete, nullptr);
  size_t most = 0;
  for (size_t size = packed.size(); size > 400; size -= std::min<size_t>(97, size)) {
    folder.Write("samples.jsonl.gz", packed.substr(0, size));
    model::MemorySink sink;
    const auto result = FindImporter("recording")->Import(folder.path(), {}, sink);
    if (!result.ok()) continue;
    size_t samples = 0;
    bool told = false;
    for (const auto& record : sink.records) {
      samples += std::holds_alternative<model::Samples>(record);
      const auto* loss = std::get_if<model::Loss>(&record);
      told = told || (loss && loss->kind == "recording.truncated");
    }
    EXPECT_EQ(told, size != packed.size()) << size;
    EXPECT_LE(samples, complete->summary.samples);
    most = std::max(most, samples);
  }
  EXPECT_EQ(most, 30U);
}

TEST(Recording, WhatIsNoRecordingIsAnErrorThatSaysWhatToGive) {
  const Folder folder;
  model::MemorySink sink;
  auto result = FindImporter("recording")->Import(folder.path(), {}, sink);
  ASSERT_FALSE(result.ok());
  EXPECT_FALSE(result.error().what_to_do.empty());
  folder.Write("samples.jsonl", "not json\n{\"kind\":\"header\"}\n");
  EXPECT_FALSE(FindImporter("recording")->Import(folder.path(), {}, sink).ok());
  EXPECT_FALSE(FindImporter("recording")->Import(folder.path() + "/nowhere", {}, sink).ok());
  EXPECT_TRUE(sink.records.empty()) << "nothing is written before the run is known";
}

// Values of real recordings against those that were counted independently when they were made.
class TruthOf : public testing::TestWithParam<const char*> {};

void CheckEpoch(const Imported& run, const std::string& rank, JsonObject truth) {
  const std::string gpu = "gpu:" + rank;
  const Interval epoch{.begin_ns = IntField(truth, "begin_mono_ns").value(),
                       .end_ns = IntField(truth, "end_mono_ns").value()};
  const auto of_gpu = [&](const char* field) {
    return run.Summarize(Scope::kGpu, gpu, field, epoch);
  };
  EXPECT_EQ(static_cast<int64_t>(of_gpu("memory_used_bytes").count),
            IntField(truth, "gpu_samples"));
  EXPECT_EQ(of_gpu("memory_used_bytes").max, RealField(truth, "mem_used_max"));
  EXPECT_EQ(of_gpu("temperature_c").max, RealField(truth, "temp_c_max"));
  const auto mean = [&](const char* field) {
    const auto summary = of_gpu(field);
    return summary.sum / static_cast<double>(summary.count);
  };
  EXPECT_NEAR(mean("utilization_ratio"), RealField(truth, "util_gpu_mean").value() / 100, 1e-5);
  EXPECT_NEAR(mean("power_w"), RealField(truth, "power_w_mean").value(), 1e-3);
  EXPECT_NEAR(mean("sm_active_ratio"), RealField(truth, "sm_util_mean").value() / 100, 1e-5);
  const auto last = [&](const char* field) {
    return run.Summarize(Scope::kRank, "rank:" + rank, field, epoch).last;
  };
  EXPECT_EQ(last("allocated_bytes"), RealField(truth, "alloc_end"));
  EXPECT_EQ(last("reserved_bytes"), RealField(truth, "reserved_end"));
  EXPECT_EQ(last("max_allocated_bytes"), RealField(truth, "max_alloc_end"));
  const auto& steps = run.run.steps.at(static_cast<int32_t>(std::stoi(rank)));
  const auto number = std::count(steps.epoch.begin(), steps.epoch.end(), IntField(truth, "epoch"));
  EXPECT_EQ(number, IntField(truth, "steps"));
}

TEST_P(TruthOf, EveryEpochHasTheCountedValues) {
  const std::string folder =
      Environment("EPOCHMETER_SHARED", "../shared") + "/recordings/" + GetParam();
  if (!fs::exists(folder + "/truth.json")) GTEST_SKIP() << "no recording at " << folder;
  const auto run = Import(folder);
  ASSERT_NE(run, nullptr);
  EXPECT_TRUE(run->run.losses.empty()) << run->run.losses[0].kind << run->run.losses[0].detail;
  JsonParser parser(JsonDialect::kStrict);
  JsonObject truth;
  const std::string text = base::ReadFile(folder + "/truth.json").value();
  ASSERT_EQ(parser.Parse(text, &truth), JsonFault::kNone);
  int checked = 0;
  for (const auto& [rank, of_rank] : ObjectField(truth, "ranks").value()) {
    const JsonObject facts = of_rank.get_object().value();
    EXPECT_EQ(static_cast<int64_t>(run->run.steps.at(std::stoi(std::string(rank))).size()),
              IntField(facts, "steps"));
    for (const auto epoch : ArrayField(facts, "epochs").value()) {
      SCOPED_TRACE(std::string(rank) + " " + std::to_string(checked++));
      CheckEpoch(*run, std::string(rank), epoch.get_object().value());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Real, TruthOf,
                         testing::Values("healthy", "leak", "oom", "ddp_healthy", "straggler",
                                         "checkpoint", "data_starved"),
                         [](const auto& name) { return std::string(name.param); });

}  // namespace
}  // namespace epochmeter::ingest
