// SPDX-License-Identifier: Apache-2.0
// Figures over any number of values in bounded memory. One thread.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ingest/log/log_line.h"
#include "model/log_report.h"

namespace epochmeter::ingest::log {

// Count, mean and extremes of finite values, exactly; the median exactly up to kMostKept values,
// beyond of every second, fourth, ... value.
class FigureSpread {
 public:
  void Add(double value, const LinePlace& place);
  uint64_t count() const { return count_; }
  double sum() const { return sum_; }
  std::optional<model::LogSpread> Take();

 private:
  static constexpr size_t kMostKept = size_t{1} << 19;
  std::vector<double> kept_;
  uint64_t stride_ = 1;  // a power of two
  uint64_t count_ = 0;
  double sum_ = 0, min_ = 0, max_ = 0;
  LinePlace max_place_;
};

// Means over equally many values each, at most kMostParts of them.
class FigureTrend {
 public:
  void Add(double value);
  std::vector<double> Means() const;

 private:
  static constexpr size_t kMostParts = 240;
  struct Part {
    double sum = 0;
    uint64_t finite = 0, all = 0;
  };
  std::vector<Part> parts_;
  uint64_t per_part_ = 1;
};

}  // namespace epochmeter::ingest::log
