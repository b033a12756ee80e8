// SPDX-License-Identifier: Apache-2.0
#include "fuzz/make_record.h"

#include <array>
#include <bit>
#include <string>
#include <vector>

#include "collect/sources.h"
#include "ingest/importers.h"
#include "runfile/record_codec.h"

namespace epochmeter::fuzz {
namespace {

std::string Text(Input& in) { return std::string(in.Text()); }

template <size_t kSize>
std::string WordOf(Input& in, const std::array<const char*, kSize>& words) {
  const size_t chosen = in.Below(kSize + 1);
  return chosen < kSize ? words[chosen] : Text(in);
}

// Small and whole, a fraction, or any bits.
double Value(Input& in) {
  switch (in.Below(4)) {
    case 0:
      return static_cast<double>(in.Byte());
    case 1:
      return static_cast<double>(in.Number(2)) / 65535;
    case 2:
      return static_cast<double>(in.Number(5));
    default:
      return std::bit_cast<double>(in.Number(8));
  }
}

int64_t Whole(Input& in) {
  return static_cast<int64_t>(in.Number(in.Below(4) == 0 ? size_t{8} : size_t{1}));
}

model::FieldValue Field(Input& in) {
  switch (in.Below(3)) {
    case 0:
      return Whole(in);
    case 1:
      return Value(in);
    default:
      return Text(in);
  }
}

const std::vector<model::MetricDef>& KnownMetrics() {
  static const std::vector<model::MetricDef> all = [] {
    std::vector<model::MetricDef> metrics;
    for (const auto& sources : {collect::HostSources(), collect::GpuSources()}) {
      for (const auto& source : sources) {
        metrics.insert(metrics.end(), source.metrics.begin(), source.metrics.end());
      }
    }
    const auto client = ingest::ClientMetrics();
    metrics.insert(metrics.end(), client.begin(), client.end());
    return metrics;
  }();
  return all;
}

model::MetricInfo UnknownMetric(Input& in) {
  return {.name = Text(in),
          .label = Text(in),
          .field = Text(in),
          .prometheus = Text(in),
          .unit = Text(in),
          .kind = static_cast<model::MetricKind>(in.Below(model::kMetricKindCount)),
          .scope = static_cast<model::Scope>(in.Below(model::kScopeCount)),
          .resolution = Value(in),
          .source = Text(in)};
}

model::Labels MakeLabels(Input& in) {
  static constexpr std::array kKeys = {"gpu",  "uuid", "rank",     "name", "pid",   "command",
                                       "host", "gpus", "env.RANK", "job",  "of_job"};
  model::Labels labels(in.Below(4));
  for (auto& [key, value] : labels) {
    key = WordOf(in, kKeys);
    value = in.Bit() ? std::to_string(in.Below(5)) : Text(in);
  }
  return labels;
}

}  // namespace

int64_t MakeTime(Input& in, int64_t* now_ns) {
  const uint8_t step = in.Byte();
  if (step == 255) return static_cast<int64_t>(in.Number(8));
  if (step < 250) *now_ns += step * int64_t{100'000'000};
  return *now_ns;
}

model::RunInfo MakeRunInfo(Input& in) {
  return {.run_id = Text(in),
          .boot_id = Text(in),
          .anchor = {.mono_ns = Whole(in), .boot_ns = Whole(in), .wall_ns = Whole(in)},
          .attributes = MakeLabels(in)};
}

model::EntityDef MakeEntity(Input& in, model::EntityId id) {
  model::EntityDef entity{.id = id,
                          .scope = static_cast<model::Scope>(in.Below(model::kScopeCount)),
                          .name = "entity " + std::to_string(id),
                          .labels = MakeLabels(in),
                          .attributes = MakeLabels(in)};
  if (in.Bit()) entity.name = Text(in);
  return entity;
}

model::SeriesDef MakeSeries(Input& in, model::SeriesId id) {
  const auto& known = KnownMetrics();
  model::SeriesDef series{.id = id, .entity = static_cast<model::EntityId>(in.Below(kEntities))};
  const size_t metric = in.Number(2);
  series.metric = metric < 60000 ? InfoOf(known[metric % known.size()]) : UnknownMetric(in);
  series.period_ns = in.Bit() ? base::kNsPerSecond : Whole(in);
  return series;
}

model::Samples MakeSamples(Input& in, int64_t* now_ns) {
  model::Samples samples{.t_ns = MakeTime(in, now_ns), .values = {}};
  samples.values.resize(in.Below(5));
  for (auto& sample : samples.values) {
    sample.series = static_cast<model::SeriesId>(in.Below(kSeries));
    sample.value = Value(in);
  }
  return samples;
}

model::SeriesState MakeState(Input& in, int64_t* now_ns) {
  return {.t_ns = MakeTime(in, now_ns),
          .series = static_cast<model::SeriesId>(in.Below(kSeries)),
          .condition = static_cast<model::SeriesCondition>(in.Below(model::kSeriesConditionCount)),
          .detail = Text(in)};
}

model::Event MakeEvent(Input& in, int64_t* now_ns) {
  static constexpr std::array kNames = {"eval", "checkpoint",       "train", "sampler", "gpu.xid",
                                        "oom",  "training_started", "data"};
  static constexpr std::array kKeys = {
      "duration_s",  "data_wait_s",     "batch_size", "step_in_epoch",
      "scalar.loss", "scalar.val_loss", "pid",        "gpus",
      "state",       "detail",          "source",     "message",
      "world",       "version.torch",   "gpu",        "uuid",
      "xid",         "samples",         "hook",       "framework",
      "steps",       "reason"};
  model::Event event{.t_ns = MakeTime(in, now_ns),
                     .kind = static_cast<model::EventKind>(in.Below(model::kEventKindCount)),
                     .rank = {},
                     .epoch = {},
                     .step = {},
                     .name = {},
                     .fields = {}};
  const uint8_t has = in.Byte();
  if ((has & 1) != 0) event.rank = static_cast<int32_t>(Whole(in));
  if ((has & 2) != 0) event.epoch = Whole(in);
  if ((has & 4) != 0) event.step = Whole(in);
  if ((has & 8) != 0) event.name = WordOf(in, kNames);
  event.fields.resize(in.Below(5));
  for (auto& field : event.fields) {
    field.key = WordOf(in, kKeys);
    field.value = Field(in);
  }
  return event;
}

model::LogText MakeLog(Input& in, int64_t* now_ns) {
  return {
      .t_ns = MakeTime(in, now_ns), .stream = static_cast<uint8_t>(in.Below(4)), .text = Text(in)};
}

model::Loss MakeLoss(Input& in, int64_t* now_ns) {
  return {.t_ns = MakeTime(in, now_ns),
          .severity = static_cast<model::LossSeverity>(in.Below(3)),
          .kind = Text(in),
          .count = in.Number(in.Bit() ? 8 : 1),
          .detail = Text(in),
          .help = Text(in)};
}

model::RunEnd MakeEnd(Input& in, int64_t* now_ns) {
  static constexpr std::array kReasons = {"exited", "signalled", "detached", "lost"};
  model::RunEnd end{
      .t_ns = MakeTime(in, now_ns), .reason = WordOf(in, kReasons), .exit_code = {}, .signal = {}};
  if (in.Bit()) end.exit_code = static_cast<int32_t>(in.Number(4));
  if (in.Bit()) end.signal = static_cast<int32_t>(in.Number(1));
  return end;
}

std::string Encoded(const model::Record& record) {
  base::ByteWriter out;
  runfile::EncodeRecord(record, out);
  return out.Take();
}

}  // namespace epochmeter::fuzz
