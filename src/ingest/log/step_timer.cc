// SPDX-License-Identifier: Apache-2.0
#include "ingest/log/step_timer.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace epochmeter::ingest::log {
namespace {

bool IsTime(double seconds) { return std::isfinite(seconds) && seconds >= 0; }

// `word` is in lower case.
bool HasWord(std::string_view text, std::string_view word) {
  const auto same = [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a | 0x20 : a) == b; };
  return std::search(text.begin(), text.end(), word.begin(), word.end(), same) != text.end();
}

// A rate of steps: "it/s", "steps/s", "iter/sec"; not of samples, images or tokens.
bool CountsSteps(std::string_view unit) {
  constexpr std::string_view kWords[] = {"it/s", "step", "iter", "batch"};
  return std::any_of(std::begin(kWords), std::end(kWords),
                     [unit](std::string_view word) { return HasWord(unit, word); });
}

std::optional<double> FromThroughput(const IndexedRecord& record) {
  std::optional<double> of_samples;
  if (record.Find(Role::kThroughput) == nullptr) return of_samples;
  for (const LogValue& value : record->values) {
    if (value.role != Role::kThroughput || !(value.value > 0) || !std::isfinite(value.value)) {
      continue;
    }
    const std::string_view unit = value.unit.empty() ? value.key : value.unit;
    if (CountsSteps(unit)) return 1 / value.value;
    const bool tokens = HasWord(unit, "tok") || (unit.size() == 3 && HasWord(unit, "wps"));
    const auto batch = record.Number(Role::kBatchSize);
    if (!tokens && !of_samples && batch && *batch > 0) of_samples = *batch / value.value;
  }
  return of_samples;
}

}  // namespace

std::string_view StepTimeFromName(StepTimeFrom from) {
  constexpr std::array<std::string_view, 6> kNames = {"printed",    "interval", "elapsed",
                                                      "throughput", "stamps",   "unknown"};
  return kNames[static_cast<size_t>(from)];
}

// 0 where they are not known.
double StepTimer::StepsSince(const Last& last, const IndexedRecord& record) {
  const auto step = ExactStep(record);
  if (step && last.step) return *step - *last.step;
  const auto inner = record.Number(Role::kStepInEpoch);
  const auto epoch = EpochOf(record);
  if (!inner || !last.step_in_epoch || epoch.has_value() != last.epoch.has_value()) return 0;
  const double epochs = epoch ? std::floor(*epoch) - std::floor(*last.epoch) : 0;
  const double ahead = *inner - *last.step_in_epoch;
  if (epochs == 0) return ahead;
  const auto whole = record.Number(Role::kStepsPerEpoch);
  if (!whole || epochs < 0) return 0;
  return epochs * *whole + ahead;
}

bool StepTimer::GoesBack(const Last& last, const IndexedRecord& record) {
  const auto step = ExactStep(record);
  if (step && last.step) return *step < *last.step;
  const auto epoch = EpochOf(record);
  if (epoch && last.epoch && std::floor(*epoch) != std::floor(*last.epoch))
    return *epoch < *last.epoch;
  const auto inner = record.Number(Role::kStepInEpoch);
  return inner && last.step_in_epoch && *inner < *last.step_in_epoch;
}

// Step times go up and down. Those that fit between the times of their lines are believed.
uint32_t StepTimer::RisesOf(const Last& last, double printed_s, const StepTiming& timing) {
  constexpr double kFits = 1.5, kStampSeconds = 1;
  if (timing.first || !last.printed_s) return 0;
  if (timing.interval_s && !timing.new_epoch &&
      printed_s * timing.steps.value_or(1) <= kFits * *timing.interval_s + kStampSeconds) {
    return 0;
  }
  if (timing.new_epoch || printed_s == *last.printed_s) return last.rises;
  return printed_s > *last.printed_s ? last.rises + 1 : 0;
}

void StepTimer::Derive(const Last& last, const IndexedRecord& record, StepTiming* timing) {
  const auto set = [timing](double seconds, StepTimeFrom from) {
    if (!IsTime(seconds)) return false;
    timing->step_s = seconds;
    timing->from = from;
    return true;
  };
  if (const auto data = record.Value(Role::kDataTime); data && IsTime(*data)) {
    timing->data_s = *data;
  }
  const auto printed = record.Value(Role::kStepTime);
  if (printed && !timing->sums && set(*printed, StepTimeFrom::kPrinted)) return;
  if (printed && timing->sums && last.printed_s && *printed > *last.printed_s && timing->steps &&
      set((*printed - *last.printed_s) / *timing->steps, StepTimeFrom::kElapsed)) {
    return;
  }
  const auto interval = record.Value(Role::kIntervalTime);
  if (interval && timing->steps && set(*interval / *timing->steps, StepTimeFrom::kInterval)) return;
  const auto elapsed = record.Value(Role::kElapsed);
  if (elapsed && last.elapsed_s && *elapsed > *last.elapsed_s && timing->steps &&
      set((*elapsed - *last.elapsed_s) / *timing->steps, StepTimeFrom::kElapsed)) {
    return;
  }
  const auto rate = FromThroughput(record);
  if (rate && set(*rate, StepTimeFrom::kThroughput)) return;
  if (timing->interval_s && *timing->interval_s > 0 && timing->steps && !timing->new_epoch) {
    set(*timing->interval_s / *timing->steps, StepTimeFrom::kStamps);
  }
}

StepTiming StepTimer::Next(const IndexedRecord& record) {
  StepTiming timing;
  const Key key(record->place.stream, record->place.rank.value_or(-1));
  if (found_ == last_.end() || found_->first != key) found_ = last_.find(key);
  const bool known = found_ != last_.end();
  if (!known && last_.size() < kMostStreams) found_ = last_.emplace(key, Last{}).first;
  static constexpr Last kNothing;
  const Last& before = known ? found_->second : kNothing;
  timing.goes_back = known && GoesBack(before, record);
  timing.first = !known || before.start != record->start || timing.goes_back;
  const auto epoch = EpochOf(record);
  timing.new_epoch = epoch && before.epoch && std::floor(*epoch) != std::floor(*before.epoch);
  // A line for a whole epoch tells all its steps, also where none was printed before.
  const auto inner = record.Number(Role::kStepInEpoch);
  const auto whole = record.Number(Role::kStepsPerEpoch);
  if (timing.first && inner && whole && *inner == *whole && *inner >= 1) timing.steps = *inner;
  if (!timing.first) {
    if (const double steps = StepsSince(before, record); steps > 0) timing.steps = steps;
    if (record->place.wall_ns && before.wall_ns && *record->place.wall_ns >= *before.wall_ns) {
      timing.interval_s = static_cast<double>(*record->place.wall_ns - *before.wall_ns) * 1e-9;
    }
  }
  const auto printed = record.Value(Role::kStepTime);
  const uint32_t rises = printed ? RisesOf(before, *printed, timing) : before.rises;
  timing.sums = before.sums || rises >= kRisesOfSums;
  Derive(timing.first ? kNothing : before, record, &timing);
  if (found_ != last_.end()) {
    found_->second = {.start = record->start,
                      .epoch = epoch,
                      .step = ExactStep(record),
                      .step_in_epoch = record.Number(Role::kStepInEpoch),
                      .elapsed_s = record.Value(Role::kElapsed),
                      .printed_s = printed,
                      .rises = rises,
                      .sums = timing.sums,
                      .wall_ns = record->place.wall_ns};
  }
  return timing;
}

}  // namespace epochmeter::ingest::log
