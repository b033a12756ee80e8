// SPDX-License-Identifier: Apache-2.0
#include "tiny_run.h"

#include <cmath>

#include "model/gpu_activity_metrics.h"
#include "model/gpu_metrics.h"
#include "model/host_metrics.h"
#include "model/registry.h"
#include "model/run_builder.h"

namespace epochmeter::testing {
namespace {

using model::Event;
using model::EventKind;
using model::MetricDef;
using model::Registry;
using model::RunBuilder;
using model::Scope;

constexpr int64_t kTick = base::kNsPerSecond;
constexpr int64_t kStart = 100 * base::kNsPerSecond;
constexpr int kTicks = 12;

constexpr MetricDef kAllocated = model::Metric(
    {"framework.memory", "state=allocated", "allocated_bytes", "framework_memory_bytes", "By",
     model::MetricKind::kGauge, Scope::kRank, 1, "Allocated.", "test"});

int64_t Ns(double seconds) { return kStart + std::llround(seconds * 1e9); }

Event At(double t_s, EventKind kind, std::optional<int64_t> epoch) {
  Event event;
  event.t_ns = Ns(t_s);
  event.kind = kind;
  event.rank = 0;
  event.epoch = epoch;
  return event;
}

void WriteHead(RunBuilder& builder) {
  builder.Write(model::RunInfo{
      .run_id = "20260822T101530Z-tiny",
      .boot_id = "b",
      .anchor = {.mono_ns = kStart, .boot_ns = kStart, .wall_ns = 1'787'393'730'000'000'000},
      .attributes = {{"command", "python train.py --name \"x, y\""}, {"host", "node7"}}});
}

void WriteGpus(Registry& registry, RunBuilder& builder) {
  for (int gpu = 0; gpu < 2; ++gpu) {
    const std::string uuid = "GPU-" + std::to_string(gpu);
    const model::EntityId id =
        registry.AddEntity({.scope = Scope::kGpu,
                            .name = uuid,
                            .labels = {{"gpu", std::to_string(gpu)}, {"uuid", uuid}},
                            .attributes = {{"name", "NVIDIA H200"}, {"driver_version", "580.1"}}});
    const auto utilization = registry.AddSeries(id, model::gpu::kUtilization, kTick);
    const auto memory = registry.AddSeries(id, model::gpu::kMemoryUsed, kTick);
    const auto power = registry.AddSeries(id, model::gpu::kPower, kTick);
    const auto temperature = registry.AddSeries(id, model::gpu::kTemperature, kTick);
    const auto energy = registry.AddSeries(id, model::gpu::kEnergy, 10 * kTick);
    const auto sm = registry.AddSeries(id, model::gpu::kSmActive, kTick);
    for (int i = 0; i <= kTicks; ++i) {
      model::Samples samples{.t_ns = Ns(i), .values = {}};
      samples.values = {{utilization, gpu == 0 ? 0.5 + 0.01 * i : 0.1},
                        {memory, 1e9 * (1 + gpu) + 1e6 * i},
                        {power, 300.0 + 10 * gpu},
                        {temperature, 40.0 + i}};
      if (gpu == 0 && i % 6 == 0) samples.values.push_back({energy, 1000.0 + 300.0 * i});
      builder.Write(samples);
    }
    if (gpu == 1) {
      builder.Write(model::SeriesState{.t_ns = Ns(0),
                                       .series = sm,
                                       .condition = model::SeriesCondition::kNotSupported,
                                       .detail = "nvmlGpmQueryDeviceSupport: 0"});
    } else {
      builder.Write(model::Samples{.t_ns = Ns(2), .values = {{sm, 0.25}}});
    }
  }
}

void WriteHost(Registry& registry, RunBuilder& builder) {
  const model::EntityId host =
      registry.AddEntity({.scope = Scope::kHost, .name = "host", .labels = {}, .attributes = {}});
  const auto user = registry.AddSeries(host, model::host::kCpuUser, kTick);
  const auto idle = registry.AddSeries(host, model::host::kCpuIdle, kTick);
  const auto total = registry.AddSeries(host, model::host::kMemoryTotal, kTick);
  const auto available = registry.AddSeries(host, model::host::kMemoryAvailable, kTick);
  const model::EntityId tree = registry.AddEntity(
      {.scope = Scope::kProcess, .name = "tree", .labels = {}, .attributes = {}});
  const auto cpu = registry.AddSeries(tree, model::host::kTreeCpu, kTick);
  const auto rss = registry.AddSeries(tree, model::host::kTreeRss, kTick);
  for (int i = 0; i <= kTicks; ++i) {
    builder.Write(model::Samples{.t_ns = Ns(i),
                                 .values = {{user, 50.0 + i},
                                            {idle, 10.0 + 3 * i},
                                            {total, 64e9},
                                            {available, 60e9 - 1e9 * (i % 3)},
                                            {cpu, 0.5 * i},
                                            {rss, 2e9 + 1e6 * i}}});
  }
}

void WriteTraining(Registry& registry, RunBuilder& builder) {
  Event begin = At(0.5, EventKind::kTrainBegin, {});
  begin.fields = {{"gpus", std::string("GPU-0")}};
  builder.Write(begin);
  const model::EntityId rank = registry.AddEntity(
      {.scope = Scope::kRank, .name = "rank:0", .labels = {{"rank", "0"}}, .attributes = {}});
  const auto allocated = registry.AddSeries(rank, kAllocated, 0);
  for (int epoch = 0; epoch < 2; ++epoch) {
    const double from = 1 + 5.0 * epoch;
    Event open = At(from, EventKind::kEpochBegin, epoch);
    open.fields = {{"epoch_from", std::string("framework")}};
    builder.Write(open);
    for (int i = 1; i <= 4; ++i) {
      Event step = At(from + i, EventKind::kStep, epoch);
      step.step = 4 * epoch + i;
      step.fields = {{"duration_s", 1.0},
                     {"data_wait_s", 0.25},
                     {"batch_size", int64_t{8}},
                     {"scalar.loss", 2.0 / (4 * epoch + i)}};
      builder.Write(step);
    }
    builder.Write(model::Samples{.t_ns = Ns(from + 4), .values = {{allocated, 5e8 + epoch}}});
    if (epoch == 1) break;
    builder.Write(At(from + 4, EventKind::kEpochEnd, epoch));
    Event eval = At(from + 4.5, EventKind::kPhaseEnd, epoch);
    eval.name = "eval";
    eval.fields = {{"duration_s", 0.4}, {"scalar.loss", 0.75}, {"scalar.acc", 0.9}};
    builder.Write(eval);
  }
}

void WriteTail(RunBuilder& builder) {
  builder.Write(model::LogText{.t_ns = Ns(2), .stream = 1, .text = "epoch 0, \"lo"});
  builder.Write(model::LogText{.t_ns = Ns(3), .stream = 1, .text = "ss\" 1.0\nrest"});
  builder.Write(model::Loss{.t_ns = Ns(4),
                            .severity = model::LossSeverity::kDataLoss,
                            .kind = "client.dropped",
                            .count = 3,
                            .detail = "events the client could not send",
                            .help = "Report fewer steps."});
  builder.Write(
      model::RunEnd{.t_ns = Ns(kTicks), .reason = "signalled", .exit_code = {}, .signal = 9});
}

}  // namespace

model::Run TinyRun() {
  RunBuilder builder;
  Registry registry(builder);
  WriteHead(builder);
  WriteGpus(registry, builder);
  WriteHost(registry, builder);
  WriteTraining(registry, builder);
  WriteTail(builder);
  return builder.Finish();
}

model::Run TinyRunWithoutGpu() {
  RunBuilder builder;
  Registry registry(builder);
  WriteHead(builder);
  Event source = At(0, EventKind::kSource, {});
  source.rank = {};
  source.name = "nvml.memory";
  source.fields = {{"state", std::string("unavailable")},
                   {"reason", std::string("no NVML library found: tried libnvidia-ml.so.1")}};
  builder.Write(source);
  WriteHost(registry, builder);
  WriteTraining(registry, builder);
  return builder.Finish();
}

}  // namespace epochmeter::testing
