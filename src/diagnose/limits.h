// SPDX-License-Identifier: Apache-2.0
// The one table of the rules' thresholds. Each has a number, a unit and the source it was taken
// from; a config file may change it ([limits] in config.toml).
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace epochmeter::diagnose {

struct LimitDef {
  std::string_view id;  // "data_starvation.warning_ratio"
  double value;
  std::string_view unit;    // "1", "s", "By", "{step}"
  std::string_view source;  // where the number comes from, and what it decides
};

std::span<const LimitDef> LimitTable();

// The table with what a config changed. A plain value; readers on any thread.
class Limits {
 public:
  // `id` must be in the table.
  double operator[](std::string_view id) const;
  // False when the table has no such id or the value is not a finite number >= 0.
  bool Set(std::string_view id, double value);

 private:
  std::map<std::string, double, std::less<>> changed_;
};

}  // namespace epochmeter::diagnose
