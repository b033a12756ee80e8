// SPDX-License-Identifier: Apache-2.0
#include "render/curve_ceiling.h"

#include <cmath>

#include "base/strings.h"
#include "model/entity_name.h"

namespace epochmeter::render {

CurveCeilings::CurveCeilings(const model::Run& run, const model::Report& report) : run_(run) {
  for (const model::Curve& curve : report.curves) {
    curves_.emplace(std::pair(curve.entity, std::string_view(curve.field)), &curve);
  }
}

std::optional<double> CurveCeilings::Last(model::EntityId entity, std::string_view field) const {
  const auto found = curves_.find({entity, field});
  if (found == curves_.end()) return {};
  const std::vector<double>& values = found->second->points.value;
  for (auto value = values.rbegin(); value != values.rend(); ++value) {
    if (std::isfinite(*value) && *value > 0) return *value;
  }
  return {};
}

std::optional<double> CurveCeilings::Attribute(const model::EntityDef& entity,
                                               std::string_view key) const {
  const std::optional<double> value = base::ParseDouble(model::Find(entity.attributes, key));
  return value && std::isfinite(*value) && *value > 0 ? value : std::nullopt;
}

std::optional<double> CurveCeilings::Of(const model::Curve& curve) const {
  const std::string_view field = curve.field;
  if (curve.unit == "1" && base::EndsWith(field, "_ratio")) return 1;
  if (curve.entity >= run_.entities.size()) return {};
  const model::EntityDef& entity = run_.entities[curve.entity];
  if (entity.scope != model::Scope::kGpu && entity.scope != model::Scope::kHost) return {};
  if (field == "memory_used_bytes") {
    const std::optional<double> total = Last(curve.entity, "memory_total_bytes");
    return total ? total : Attribute(entity, "memory_total_bytes");
  }
  if (field == "swap_used_bytes") return Last(curve.entity, "swap_total_bytes");
  if (field == "power_w" || field == "power_average_w" || field == "power_instant_w") {
    if (const auto limit = Last(curve.entity, "power_limit_w")) return limit;
    const std::optional<double> milliwatts = Attribute(entity, "power_limit_mw");
    if (milliwatts) return *milliwatts / 1e3;
  }
  return {};
}

}  // namespace epochmeter::render
