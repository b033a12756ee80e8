// SPDX-License-Identifier: Apache-2.0
// Cost of each GPU source and of a whole second of the sampler, over the library that replays
// NVML: set EPOCHMETER_NVML_LIBRARY to its folder, EPOCHMETER_REPLAY to bench/h200x8.json.
// With EPOCHMETER_REPLAY_LATENCY=1 calls take as long as they were measured to, and keep the core
// busy for that time; without it they take none. The difference is what the calls cost.
#include <benchmark/benchmark.h>
#include <time.h>

#include <optional>

#include "collect/nvml/session.h"
#include "collect/schedule.h"
#include "collect/sources.h"

namespace epochmeter::collect {
namespace {

class NoSink : public model::Sink {
 public:
  void Write(const model::Record&) override {}
};

struct GpuBench {
  SourceContext context() {
    return {.env = env,
            .registry = registry,
            .sink = sink,
            .tick_ns = base::kNsPerSecond,
            .job = job,
            .nvml = &session};
  }
  model::Env env;
  NoSink sink;
  model::Registry registry{sink};
  JobScope job;
  nvml::Session session{nvml::LibraryOptionsFromEnv()};
};

// One reading, back to back: what needs time between readings (GPM, sample buffers) shows its cost
// in the whole second only.
void BM_GpuSource(benchmark::State& state) {
  const auto sources = GpuSources();
  const auto index = static_cast<size_t>(state.range(0));
  if (index >= sources.size()) return state.SkipWithError("no such source");
  GpuBench bench;
  auto source = sources[index].Make(bench.context());
  if (!source.ok()) return state.SkipWithError(source.error().Message().c_str());
  state.SetLabel(std::string(sources[index].name));
  const int64_t period_ns = TierPeriodNs(sources[index].tier, base::kNsPerSecond);
  int64_t t_ns = bench.env.monotonic_ns();
  for (auto _ : state) {
    model::Samples out{.t_ns = t_ns += period_ns, .values = {}};
    benchmark::DoNotOptimize(source.value()->Sample(out).ok());
  }
  state.counters["period_s"] = base::SecondsFromNs(period_ns);
  state.counters["gpus"] = static_cast<double>(bench.session.devices().size());
}
BENCHMARK(BM_GpuSource)->DenseRange(0, 25)->Unit(benchmark::kMicrosecond);

// All sources as the sampler runs them, in real time: sample buffers and GPM windows fill between
// the ticks. In 21 seconds the slow tier comes three times and the rare one once, so the mean is
// a little above that of a long run. Waiting is not counted.
void BM_GpuSecond(benchmark::State& state) {
  GpuBench bench;
  const auto schedule = Schedule::Make(bench.context(), GpuSources(), "sampler");
  if (bench.session.devices().empty()) return state.SkipWithError("NVML gives no GPU");
  for (auto _ : state) {
    state.PauseTiming();
    const int64_t due_ns = schedule->NextDueNs();
    const timespec due{.tv_sec = due_ns / base::kNsPerSecond,
                       .tv_nsec = due_ns % base::kNsPerSecond};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, nullptr);
    state.ResumeTiming();
    schedule->RunDue(bench.env.monotonic_ns());
  }
  state.counters["gpus"] = static_cast<double>(bench.session.devices().size());
}
BENCHMARK(BM_GpuSecond)->Unit(benchmark::kMicrosecond)->Iterations(21);

}  // namespace
}  // namespace epochmeter::collect
