// SPDX-License-Identifier: Apache-2.0
// Runs for the tests of pages and pictures: ordinary ones, and what a damaged or hostile file
// holds.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "model/report.h"
#include "model/run.h"

namespace epochmeter::render {

inline const std::string kHostileName =
    std::string("</script><img src=x onerror=alert(1)>&\"'\x01\x1B[31m\xFF\xEF\xBF\xBF ") +
    "/home/ann/x password=hunter22";

struct MadeRun {
  model::Run run;
  model::Report report;

  explicit MadeRun(double length_s, const std::string& name = "run");
  // Gives the entity's id.
  model::EntityId Entity(model::Scope scope, const std::string& name, model::Labels labels);
  // A curve with all its samples, one a second.
  void Curve(model::EntityId entity, const std::string& field, const std::string& unit,
             const std::function<double(int)>& value, int samples);
  // Steps of a rank, one a `period_s`, each with this duration and loss.
  void Steps(int32_t rank, int count, double period_s, const std::function<double(int)>& duration_s,
             const std::function<double(int)>& loss);
};

inline constexpr int64_t kMadeBeginNs = 1'000'000'000'000;

}  // namespace epochmeter::render
