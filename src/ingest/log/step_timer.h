// SPDX-License-Identifier: Apache-2.0
// How long training steps took, by what their records print: per step, per interval, since the
// start, as a rate, or by the times of their lines only. Pure arithmetic on records; one thread.
#pragma once

#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "ingest/log/indexed_record.h"

namespace epochmeter::ingest::log {

// Where a step time comes from; the surest first.
enum class StepTimeFrom : uint8_t { kPrinted, kInterval, kElapsed, kThroughput, kStamps, kUnknown };
inline constexpr size_t kStepTimeFromCount = 6;
std::string_view StepTimeFromName(StepTimeFrom from);  // "printed"; "unknown"

struct StepTiming {
  std::optional<double> steps;       // since the record before it of the same start; above 0
  std::optional<double> interval_s;  // since that record, by the times of their lines
  std::optional<double> step_s;      // of one step
  std::optional<double> data_s;      // of one step, as printed
  std::optional<double> epoch_s;     // of the whole epoch, where its one line prints that
  // The epoch it is of. A series of fractions counts what is over: 3.0 is the end of epoch 2.
  std::optional<double> epoch;
  StepTimeFrom from = StepTimeFrom::kUnknown;
  bool first = true;       // of its stream or start
  bool goes_back = false;  // its step is lower than that of the record before it
  bool new_epoch = false;
  bool ends_below = false;  // as of its stream (Last)
  bool ends_epoch = false;  // no step of its epoch comes after it
  bool fractions = false;   // its epochs are printed with a fraction
  // What is printed as step time only ever rises: it is the time since a start, also in the records
  // before this one, which said otherwise.
  bool sums = false;
};

// What a record counts with, as whole as it was printed.
inline std::optional<double> EpochOf(const IndexedRecord& record) {
  const LogValue* printed = record.Find(Role::kEpoch);
  if (printed != nullptr) return printed->number;
  if (record->header_epoch) return *record->header_epoch;
  return {};
}

// The step since the training began, where it is printed exactly ("50K" is not).
inline std::optional<double> ExactStep(const IndexedRecord& record) {
  const LogValue* step = record.Find(Role::kStep);
  if (step == nullptr || !std::isfinite(step->number)) return {};
  const char last = step->text.empty() ? '\0' : step->text.back();
  if (last == 'K' || last == 'k' || last == 'M') return {};
  return step->number;
}

// How far it counts steps: in its epoch, else since the training began.
inline std::optional<double> CountOf(const IndexedRecord& record) {
  const auto inner = record.Number(Role::kStepInEpoch);
  return inner ? inner : ExactStep(record);
}

// Whether a record whose counter is `count` is the first of a series of each `interval`th step:
// 10, 20, 30 or 9, 19, 29. One that begins with 0, or in the middle, is none.
inline bool BeginsSeries(double count, double interval) {
  return interval >= 1 && (count == interval || count + 1 == interval);
}

class StepTimer {
 public:
  // Training records in the order of their lines.
  StepTiming Next(const IndexedRecord& record);

 private:
  struct Last {
    uint32_t start = 0;
    std::optional<double> epoch, step, step_in_epoch, elapsed_s, printed_s;
    double ahead = 0;          // steps since the record before it
    double interval = 0;       // the same, where it repeats
    bool fractions = false;    // of its epochs
    bool ends_below = false;   // an epoch's last step is one below their number
    bool epoch_again = false;  // two records in a row were of one epoch
    uint32_t rises = 0;        // of the printed step time, in a row
    bool sums = false;
    std::optional<int64_t> wall_ns;
  };
  static double StepsSince(const Last& last, const IndexedRecord& record, const StepTiming& timing);
  static bool GoesBack(const Last& last, const IndexedRecord& record, const StepTiming& timing);
  static void SetEpoch(const Last& last, const IndexedRecord& record, StepTiming* timing);
  static void SetSteps(const Last& last, const IndexedRecord& record, StepTiming* timing);
  static bool IsEpochLine(const Last& last, const IndexedRecord& record);
  static uint32_t RisesOf(const Last& last, double printed_s, const StepTiming& timing);
  static void Derive(const Last& last, const IndexedRecord& record, StepTiming* timing);

  // By stream and rank; kMostStreams at most, then the rest have no record before them.
  static constexpr uint32_t kRisesOfSums = 24;
  static constexpr size_t kMostStreams = 4096;
  using Key = std::pair<uint32_t, int32_t>;
  std::map<Key, Last> last_;
  std::map<Key, Last>::iterator found_ = last_.end();  // of the record before
};

}  // namespace epochmeter::ingest::log
