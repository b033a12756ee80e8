// SPDX-License-Identifier: Apache-2.0
#include "diagnose/limits.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.h"

namespace epochmeter::diagnose {
namespace {

// In the order of the rules' ids; one block a rule.
constexpr auto kTable = std::to_array<LimitDef>({
    {"data_starvation.info_ratio", 0.05, "1",
     "share of a step spent waiting for data; TensorFlow's profiler calls 5 % moderately "
     "input-bound"},
    {"data_starvation.warning_ratio", 0.20, "1",
     "the same; TensorFlow's profiler calls 20 % highly input-bound"},
});

const LimitDef* Find(std::string_view id) {
  const auto* const found = std::find_if(kTable.begin(), kTable.end(),
                                         [id](const LimitDef& limit) { return limit.id == id; });
  return found == kTable.end() ? nullptr : &*found;
}

}  // namespace

std::span<const LimitDef> LimitTable() { return kTable; }

double Limits::operator[](std::string_view id) const {
  const auto changed = changed_.find(id);
  if (changed != changed_.end()) return changed->second;
  const LimitDef* limit = Find(id);
  EPM_CHECK(limit != nullptr);
  return limit->value;
}

bool Limits::Set(std::string_view id, double value) {
  if (Find(id) == nullptr || !std::isfinite(value) || value < 0) return false;
  changed_.insert_or_assign(std::string(id), value);
  return true;
}

}  // namespace epochmeter::diagnose
