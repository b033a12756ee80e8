// SPDX-License-Identifier: Apache-2.0
// The value that a curve can't or must not pass: a picture's limit line.
#pragma once

#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "model/report.h"
#include "model/run.h"

namespace epochmeter::render {

// Borrows both.
class CurveCeilings {
 public:
  CurveCeilings(const model::Run& run, const model::Report& report);
  // 1 of ratios, the total memory of a GPU or the host, the power limit of a GPU.
  std::optional<double> Of(const model::Curve& curve) const;

 private:
  std::optional<double> Attribute(const model::EntityDef& entity, std::string_view key) const;
  std::optional<double> Last(model::EntityId entity, std::string_view field) const;

  const model::Run& run_;
  std::map<std::pair<model::EntityId, std::string_view>, const model::Curve*> curves_;
};

}  // namespace epochmeter::render
