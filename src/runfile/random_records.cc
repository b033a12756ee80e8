// SPDX-License-Identifier: Apache-2.0
#include "runfile/random_records.h"

namespace epochmeter::runfile {

model::Event RandomRecords::Event(int64_t t_ns) {
  model::Event event{.t_ns = t_ns,
                     .kind = static_cast<model::EventKind>(Below(model::kEventKindCount)),
                     .rank = {},
                     .epoch = {},
                     .step = {},
                     .name = Chance(0.5) ? "" : Text(),
                     .fields = {}};
  if (Chance(0.7)) event.rank = static_cast<int32_t>(Below(8));
  if (Chance(0.7)) event.epoch = static_cast<int64_t>(Below(90));
  if (Chance(0.7)) event.step = static_cast<int64_t>(engine_());
  event.fields.resize(Below(5));
  for (model::EventField& field : event.fields) field = {.key = Text(), .value = Value()};
  return event;
}

model::SeriesDef RandomRecords::Series(model::SeriesId id, model::EntityId entity) {
  constexpr double kResolutions[] = {0, 1, 1e-4, 0.1, 1024};
  return {.id = id,
          .entity = entity,
          .period_ns = Chance(0.2) ? 0 : int64_t{1'000'000'000} << Below(3),
          .metric = {.name = "metric." + std::to_string(id),
                     .label = Text(),
                     .field = "field_" + std::to_string(id),
                     .prometheus = Text(),
                     .unit = "1",
                     .kind = static_cast<model::MetricKind>(Below(model::kMetricKindCount)),
                     .scope = static_cast<model::Scope>(Below(model::kScopeCount)),
                     .resolution = kResolutions[Below(5)],
                     .source = Text()}};
}

model::EntityDef RandomRecords::Entity(model::EntityId id) {
  return {.id = id,
          .scope = static_cast<model::Scope>(Below(model::kScopeCount)),
          .name = "entity " + std::to_string(id),
          .labels = Labels(),
          .attributes = Labels()};
}

model::Record RandomRecords::Any() {
  const int64_t t_ns = Time();
  const base::ClockAnchor clocks{.mono_ns = t_ns, .boot_ns = Time(), .wall_ns = -Time()};
  switch (Below(std::variant_size_v<model::Record>)) {
    case 0:
      return model::RunInfo{
          .run_id = Text(), .boot_id = Text(), .anchor = clocks, .attributes = Labels()};
    case 1:
      return model::Anchor{.clocks = clocks};
    case 2:
      return Entity(static_cast<model::EntityId>(Below(UINT32_MAX)));
    case 3:
      return Series(static_cast<model::SeriesId>(engine_()), 5);
    case 4: {
      model::Samples samples{.t_ns = t_ns, .values = {}};
      samples.values.resize(Below(40));
      for (auto& sample : samples.values) {
        sample = {.series = static_cast<model::SeriesId>(Chance(0.9) ? Below(300) : engine_()),
                  .value = Number()};
      }
      return samples;
    }
    case 5:
      return model::SeriesState{
          .t_ns = t_ns,
          .series = static_cast<model::SeriesId>(engine_()),
          .condition = static_cast<model::SeriesCondition>(Below(model::kSeriesConditionCount)),
          .detail = Text()};
    case 6:
      return Event(t_ns);
    case 7:
      return model::LogText{.t_ns = t_ns, .stream = static_cast<uint8_t>(Below(4)), .text = Text()};
    case 8:
      return Loss(t_ns);
    default: {
      model::RunEnd end{.t_ns = t_ns, .reason = Text(), .exit_code = {}, .signal = {}};
      if (Chance(0.5)) end.exit_code = static_cast<int32_t>(engine_());
      if (Chance(0.5)) end.signal = 9;
      return end;
    }
  }
}

}  // namespace epochmeter::runfile
