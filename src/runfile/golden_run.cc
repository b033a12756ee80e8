// SPDX-License-Identifier: Apache-2.0
#include "runfile/golden_run.h"

#include <cmath>
#include <limits>

namespace epochmeter::runfile {
namespace {

using model::Record;

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kStart = 5'000 * kSecond;

model::SeriesDef Def(model::SeriesId id, model::EntityId entity, const char* name,
                     model::MetricKind kind, double resolution) {
  return {.id = id,
          .entity = entity,
          .period_ns = kSecond,
          .metric = {.name = name,
                     .label = id == 1 ? "sensor=core" : "",
                     .field = "field_" + std::to_string(id),
                     .prometheus = "metric_" + std::to_string(id),
                     .unit = "1",
                     .kind = kind,
                     .scope = entity == 0 ? model::Scope::kGpu : model::Scope::kHost,
                     .resolution = resolution,
                     .source = "a call"}};
}

std::vector<Record> Definitions() {
  return {
      model::RunInfo{
          .run_id = "golden",
          .boot_id = "boot 1",
          .anchor = {.mono_ns = kStart, .boot_ns = kStart + 7, .wall_ns = 1'796'000'000 * kSecond},
          .attributes = {{"command", "python train.py"}, {"host", "h\xC3\xA9\xFF"}}},
      model::EntityDef{.id = 0,
                       .scope = model::Scope::kGpu,
                       .name = "GPU-1",
                       .labels = {{"gpu", "0"}},
                       .attributes = {{"product", "a board"}}},
      model::EntityDef{.id = 1, .scope = model::Scope::kHost, .name = "host"},
      Def(0, 0, "gpu.power", model::MetricKind::kGauge, 0.001),
      Def(1, 0, "gpu.temperature", model::MetricKind::kGauge, 1),
      Def(2, 0, "gpu.sm.active", model::MetricKind::kGauge, 1e-4),
      Def(3, 0, "gpu.clock", model::MetricKind::kState, 1e6),
      Def(4, 1, "host.energy", model::MetricKind::kCounter, 0.001),
      Def(5, 1, "host.load", model::MetricKind::kPeak, 0)};
}

model::Samples SamplesOf(int tick, int64_t t_ns) {
  const double wave = (tick * 7919 % 1000) / 1000.0;
  model::Samples samples{.t_ns = t_ns, .values = {}};
  samples.values = {{.series = 0, .value = std::round((600 + 40 * wave) * 1000) / 1000},
                    {.series = 1, .value = 61},
                    {.series = 2, .value = std::round(wave * 10000) / 10000},
                    {.series = 3, .value = tick < 30 ? 1980e6 : 1410e6}};
  if (tick % 5 == 0) samples.values.push_back({.series = 4, .value = 1e9 + tick * 0.125});
  samples.values.push_back({.series = 5, .value = tick == 40 ? std::nan("") : wave / 3});
  return samples;
}

model::Event Step(int tick, int64_t t_ns) {
  model::Event step{.t_ns = t_ns + 3,
                    .kind = model::EventKind::kStep,
                    .rank = tick % 2,
                    .epoch = tick / 20,
                    .step = tick};
  step.fields = {{.key = "duration_s", .value = 0.25 + tick * 1e-9},
                 {.key = "scalar.loss", .value = tick == 33 ? std::nan("") : 1.0 / (1 + tick)},
                 {.key = "batch_size", .value = int64_t{64} << (tick % 3)}};
  if (tick % 10 == 0) step.fields.push_back({.key = "note", .value = std::string("\xC3\xA4 \x01")});
  return step;
}

}  // namespace

std::vector<Record> GoldenRecords(int ticks) {
  std::vector<Record> records = Definitions();
  for (int tick = 0; tick < ticks; ++tick) {
    // A hole, a step back in time, and otherwise a jitter.
    int64_t t_ns = kStart + tick * kSecond + tick * 977 % 100;
    if (tick >= 20) t_ns += 30 * kSecond;
    if (tick == 45) t_ns -= 3 * kSecond;
    records.emplace_back(SamplesOf(tick, t_ns));
    records.emplace_back(Step(tick, t_ns));
    if (tick % 20 == 0) {
      records.emplace_back(model::Event{
          .t_ns = t_ns, .kind = model::EventKind::kEpochBegin, .rank = 0, .epoch = tick / 20});
      records.emplace_back(
          model::Anchor{.clocks = {.mono_ns = t_ns, .boot_ns = t_ns + 7, .wall_ns = t_ns + 11}});
    }
    if (tick % 8 == 3) {
      records.emplace_back(
          model::LogText{.t_ns = t_ns, .stream = 2, .text = "line " + std::to_string(tick) + "\n"});
    }
  }
  const int64_t t_ns = kStart + 12 * kSecond;
  records.emplace_back(model::SeriesState{.t_ns = t_ns,
                                          .series = 4,
                                          .condition = model::SeriesCondition::kDeviceLost,
                                          .detail = "a call: gone"});
  records.emplace_back(model::Event{.t_ns = t_ns,
                                    .kind = model::EventKind::kMark,
                                    .name = "mark",
                                    .fields = {{.key = "n", .value = int64_t{-5}}}});
  records.emplace_back(model::Loss{.t_ns = t_ns,
                                   .severity = model::LossSeverity::kInfo,
                                   .kind = "client.dropped",
                                   .count = 3,
                                   .detail = "three events",
                                   .help = "Read on."});
  return records;
}

model::RunEnd GoldenEnd() {
  return {.t_ns = kStart + 200 * kSecond, .reason = "exited", .exit_code = 3, .signal = {}};
}

}  // namespace epochmeter::runfile
