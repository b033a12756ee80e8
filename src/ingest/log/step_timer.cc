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

// What a line for a whole epoch prints as a time, unless it says that it is of a step.
std::optional<double> EpochSeconds(const IndexedRecord& record) {
  const LogValue* time = record.Find(Role::kStepTime);
  if (time == nullptr || !IsTime(time->value)) return {};
  const bool of_step = CountsSteps(time->key) || CountsSteps(time->unit) ||
                       time->unit.find('/') != std::string_view::npos;
  return of_step ? std::nullopt : std::optional(time->value);
}

}  // namespace

std::string_view StepTimeFromName(StepTimeFrom from) {
  constexpr std::array<std::string_view, 6> kNames = {"printed",    "interval", "elapsed",
                                                      "throughput", "stamps",   "unknown"};
  return kNames[static_cast<size_t>(from)];
}

// 0 where they are not known.
double StepTimer::StepsSince(const Last& last, const IndexedRecord& record,
                             const StepTiming& timing) {
  const auto step = ExactStep(record);
  if (step && last.step) return *step - *last.step;
  const auto inner = record.Number(Role::kStepInEpoch);
  const auto& epoch = timing.epoch;
  if (!inner || !last.step_in_epoch || epoch.has_value() != last.epoch.has_value()) return 0;
  const double epochs = epoch ? *epoch - *last.epoch : 0;
  const double ahead = *inner - *last.step_in_epoch;
  if (epochs == 0) return ahead;
  const auto whole = record.Number(Role::kStepsPerEpoch);
  if (!whole || epochs < 0) return 0;
  return epochs * *whole + ahead;
}

bool StepTimer::GoesBack(const Last& last, const IndexedRecord& record, const StepTiming& timing) {
  const auto step = ExactStep(record);
  if (step && last.step) return *step < *last.step;
  if (timing.epoch && last.epoch && *timing.epoch != *last.epoch)
    return *timing.epoch < *last.epoch;
  const auto inner = record.Number(Role::kStepInEpoch);
  return inner && last.step_in_epoch && *inner < *last.step_in_epoch;
}

void StepTimer::SetEpoch(const Last& last, const IndexedRecord& record, StepTiming* timing) {
  const auto epoch = EpochOf(record);
  timing->fractions = last.fractions;
  if (!epoch || !std::isfinite(*epoch)) return;
  const double whole = std::floor(*epoch);
  timing->fractions = last.fractions || whole != *epoch;
  const bool is_end = timing->fractions && whole == *epoch && whole >= 1;
  timing->epoch = is_end ? whole - 1 : whole;
}

// A line that counts epochs only, one for each: its time is that of the epoch, unless it says
// otherwise. A second line of the same epoch shows that lines are of steps.
bool StepTimer::IsEpochLine(const Last& last, const IndexedRecord& record) {
  const LogValue* epoch = record.Find(Role::kEpoch);
  if (epoch == nullptr || last.fractions || last.epoch_again || CountOf(record)) return false;
  if (record.Find(Role::kStep) != nullptr || *EpochOf(record) == last.epoch) return false;
  return std::floor(epoch->number) == epoch->number;
}

// A record begins a series of its start or epoch, or goes on with one.
void StepTimer::SetSteps(const Last& last, const IndexedRecord& record, StepTiming* timing) {
  const auto inner = record.Number(Role::kStepInEpoch);
  const auto whole = record.Number(Role::kStepsPerEpoch);
  const auto total = record.Number(Role::kTotalSteps);
  const auto step = ExactStep(record);
  // A line for a whole epoch tells all its steps, also where none was printed before.
  if (timing->first && inner && whole && *inner == *whole && *inner >= 1) timing->steps = *inner;
  if (!timing->first) {
    if (const double steps = StepsSince(last, record, *timing); steps > 0) timing->steps = steps;
  }
  timing->ends_below = last.ends_below || (timing->new_epoch && !timing->first && whole &&
                                           last.step_in_epoch && *last.step_in_epoch + 1 == *whole);
  const double zero = timing->ends_below ? 1 : 0;
  const auto epoch = EpochOf(record);
  const bool whole_epoch =
      timing->fractions && epoch && timing->epoch < epoch && std::floor(*epoch) == *epoch;
  timing->ends_epoch = whole_epoch || (inner && whole && *whole >= 1 && *inner + zero >= *whole) ||
                       (step && total && *total >= 1 && *step >= *total);
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
  const auto printed = timing->epoch_s ? std::nullopt : record.Value(Role::kStepTime);
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
  SetEpoch(before, record, &timing);
  timing.goes_back = known && GoesBack(before, record, timing);
  timing.first = !known || before.start != record->start || timing.goes_back;
  timing.new_epoch = timing.epoch && before.epoch && *timing.epoch != *before.epoch;
  SetSteps(before, record, &timing);
  if (!timing.first && record->place.wall_ns && before.wall_ns &&
      *record->place.wall_ns >= *before.wall_ns) {
    timing.interval_s = static_cast<double>(*record->place.wall_ns - *before.wall_ns) * 1e-9;
  }
  const auto printed = record.Value(Role::kStepTime);
  const uint32_t rises = printed ? RisesOf(before, *printed, timing) : before.rises;
  timing.sums = before.sums || rises >= kRisesOfSums;
  const bool epoch_line = IsEpochLine(before, record);
  if (epoch_line) timing.epoch_s = EpochSeconds(record);
  Derive(timing.first ? kNothing : before, record, &timing);
  // How long it took is not known where what lies before it in another epoch is not.
  const auto count = CountOf(record);
  const bool anew = timing.first || timing.new_epoch;
  if (anew && !timing.steps && known && count && BeginsSeries(*count, before.interval)) {
    timing.steps = before.interval;
  }
  if (found_ == last_.end()) return timing;
  const double ahead = anew ? 0 : timing.steps.value_or(0);
  const bool repeats = ahead > 0 && (ahead == before.ahead || before.interval == 0);
  timing.ends_epoch = timing.ends_epoch || (epoch_line && known);
  const bool again = timing.epoch && timing.epoch == before.epoch && !timing.first;
  found_->second = {.start = record->start,
                    .epoch = timing.epoch,
                    .step = ExactStep(record),
                    .step_in_epoch = record.Number(Role::kStepInEpoch),
                    .elapsed_s = record.Value(Role::kElapsed),
                    .printed_s = printed,
                    .ahead = ahead,
                    .interval = repeats ? ahead : before.interval,
                    .fractions = timing.fractions,
                    .ends_below = timing.ends_below,
                    .epoch_again = before.epoch_again || again,
                    .rises = rises,
                    .sums = timing.sums,
                    .wall_ns = record->place.wall_ns};
  return timing;
}

}  // namespace epochmeter::ingest::log
