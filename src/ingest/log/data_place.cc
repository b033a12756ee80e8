// SPDX-License-Identifier: Apache-2.0
#include "ingest/log/data_place.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace epochmeter::ingest::log {

std::string_view DataPlaceName(DataPlace place) {
  constexpr std::array<std::string_view, 3> kNames = {"unknown", "inside", "beside"};
  return kNames[static_cast<size_t>(place)];
}

void DataPlaceJudge::Add(const IndexedRecord& record, const StepTiming& timing) {
  const auto step_s = record.Value(Role::kStepTime);
  if (!step_s || !timing.data_s) return;
  step_sum_s_ += *step_s;
  data_sum_s_ += *timing.data_s;
  steps_known_ = steps_known_ || timing.steps.has_value();
  times_known_ = times_known_ || timing.interval_s.has_value();
  // Between epochs other things take time, too.
  if (timing.first || timing.new_epoch || !timing.steps || !timing.interval_s) {
    Break(record->place.stream);
    return;
  }
  Stretch& stretch = open_[record->place.stream];
  stretch.wall_s += *timing.interval_s;
  stretch.step_s += *timing.steps * *step_s;
  stretch.data_s += *timing.steps * *timing.data_s;
  if (stretch.data_s < kTellingDataSeconds || stretch.wall_s <= 0) return;
  if (beside_ratio_.size() < kMostStretches) {
    beside_ratio_.push_back((stretch.wall_s - stretch.step_s) / stretch.data_s);
  }
  Break(record->place.stream);
}

DataPlaceJudge::Verdict DataPlaceJudge::Judge() const {
  if (data_sum_s_ > step_sum_s_ * 1.02 && step_sum_s_ > 0) {
    return {.place = DataPlace::kBeside,
            .why = {.en = "the data times are longer than the step times, so they can't be part of "
                          "them",
                    .zh = "数据时间比步时间更长，因此不可能包含在步时间内"}};
  }
  constexpr size_t kLeastStretches = 2;
  if (beside_ratio_.size() < kLeastStretches) {
    if (!times_known_) {
      return {.why = {.en = "no line has a time to check against", .zh = "日志行没有时间可供核对"}};
    }
    if (!steps_known_) {
      return {.why = {.en = "the steps between two records are not known",
                      .zh = "两条记录之间的步数未知"}};
    }
    return {.why = {.en = "the data time is too short to be seen in the times of the lines",
                    .zh = "数据时间太短，从行的时间上看不出来"}};
  }
  std::vector<double> ratios = beside_ratio_;
  std::sort(ratios.begin(), ratios.end());
  const double ratio = ratios[ratios.size() / 2];
  constexpr double kInsideBelow = 0.35, kBesideAbove = 0.65, kBesideMost = 1.5, kInsideLeast = -0.5;
  const std::string figure = fmt::format("{:.2f}", ratio);
  if (ratio > kInsideLeast && ratio < kInsideBelow) {
    return {.place = DataPlace::kInside,
            .why = {.en = "steps times step time fill the time between lines",
                    .zh = "步数乘以步时间等于行间时间"}};
  }
  if (ratio > kBesideAbove && ratio < kBesideMost) {
    return {.place = DataPlace::kBeside,
            .why = {.en = "the time between lines is step time and data time together",
                    .zh = "行间时间等于步时间与数据时间之和"}};
  }
  return {.why = {.en = "the time between lines fits neither (left over: " + figure +
                        " of the data time)",
                  .zh = "行间时间与两种情况都不符（剩余为数据时间的 " + figure + "）"}};
}

}  // namespace epochmeter::ingest::log
