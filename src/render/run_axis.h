// SPDX-License-Identifier: Apache-2.0
// Time of a run as the x of a picture: seconds, steps or epochs. Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "model/report.h"
#include "model/run.h"
#include "render/axis.h"

namespace epochmeter::render {

enum class PictureX : uint8_t { kTime, kStep, kEpoch };
std::optional<PictureX> PictureXFromName(std::string_view name);  // "time", "step", "epoch"

// By the steps or epochs of the process that has most of them. Between two of its instants x is
// interpolated; before the first and after the last there is none.
class RunAxis {
 public:
  // Nothing when the run has no steps (or no numbers of epochs) to lay out by.
  static std::optional<RunAxis> Make(const model::Run& run, const model::Report& report,
                                     PictureX kind);

  // NaN where there is none. Fast for times that rise.
  double At(int64_t t_ns) const;
  AxisRange range() const { return range_; }
  PictureX kind() const { return kind_; }
  std::vector<Tick> Ticks(Language language) const;

 private:
  explicit RunAxis(PictureX kind) : kind_(kind) {}
  void Anchor(int64_t t_ns, double x);
  PictureX kind_;
  std::vector<int64_t> t_ns_;  // rising
  std::vector<double> x_;
  AxisRange range_;
  mutable size_t near_ = 0;
};

// Where the epochs of the process with most steps begin and end, on the axis; at most 200.
std::vector<double> EpochMarks(const model::Report& report, const RunAxis& axis);

}  // namespace epochmeter::render
