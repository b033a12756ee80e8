// SPDX-License-Identifier: Apache-2.0
#include "model/limits.h"

#include <type_traits>

namespace epochmeter::model {
namespace {

bool ArePossible(const base::ClockAnchor& clocks) {
  return IsPossibleTime(clocks.mono_ns) && IsPossibleTime(clocks.boot_ns) &&
         -kMostWallNs <= clocks.wall_ns && clocks.wall_ns <= kMostWallNs;
}

}  // namespace

bool HasPossibleTimes(const Record& record) {
  if (const auto* info = std::get_if<RunInfo>(&record)) return ArePossible(info->anchor);
  if (const auto* anchor = std::get_if<Anchor>(&record)) return ArePossible(anchor->clocks);
  if (const auto* series = std::get_if<SeriesDef>(&record)) {
    return series->period_ns >= 0 && IsPossibleTime(series->period_ns);
  }
  return std::visit(
      [](const auto& typed) {
        if constexpr (requires { typed.t_ns; }) return IsPossibleTime(typed.t_ns);
        return true;
      },
      record);
}

}  // namespace epochmeter::model
