// SPDX-License-Identifier: Apache-2.0
#include "render/hostile_run.h"

#include <cmath>

#include "base/clock.h"

namespace epochmeter::render {

MadeRun::MadeRun(double length_s, const std::string& name) {
  run.info =
      model::RunInfo{.run_id = name,
                     .anchor = {.mono_ns = kMadeBeginNs, .wall_ns = 1'796'020'882'000'000'000},
                     .attributes = {{"name", name}, {"api_key", "abc"}}};
  run.span = {.begin_ns = kMadeBeginNs, .end_ns = kMadeBeginNs + std::llround(length_s * 1e9)};
  report.duration_s = length_s;
}

model::EntityId MadeRun::Entity(model::Scope scope, const std::string& name, model::Labels labels) {
  const auto id = static_cast<model::EntityId>(run.entities.size());
  run.entities.push_back(
      {.id = id, .scope = scope, .name = name, .labels = std::move(labels), .attributes = {}});
  return id;
}

void MadeRun::Curve(model::EntityId entity, const std::string& field, const std::string& unit,
                    const std::function<double(int)>& value, int samples) {
  model::Curve curve{.entity = entity,
                     .field = field,
                     .unit = unit,
                     .period_ns = base::kNsPerSecond,
                     .exact = true,
                     .begin_ns = run.span.begin_ns,
                     .bucket_ns = (run.span.end_ns - run.span.begin_ns) / model::kCurveBuckets + 1};
  for (int i = 0; i < samples; ++i) {
    curve.points.t_ns.push_back(run.span.begin_ns + i * base::kNsPerSecond);
    curve.points.value.push_back(value(i));
  }
  report.curves.push_back(std::move(curve));
}

void MadeRun::Steps(int32_t rank, int count, double period_s,
                    const std::function<double(int)>& duration_s,
                    const std::function<double(int)>& loss) {
  model::StepTable& table = run.steps[model::ProcessKey(rank)];
  for (int i = 0; i < count; ++i) {
    model::Event event{.t_ns = run.span.begin_ns + std::llround((i + 1) * period_s * 1e9),
                       .kind = model::EventKind::kStep,
                       .rank = rank,
                       .epoch = 0,
                       .step = i + 1};
    event.fields.push_back({.key = "duration_s", .value = duration_s(i)});
    if (loss) event.fields.push_back({.key = "scalar.loss", .value = loss(i)});
    table.Add(event);
  }
}

}  // namespace epochmeter::render
