// SPDX-License-Identifier: Apache-2.0
// What the log engine finds: progress records and events. Texts and spans are views, good during
// the call that gives them; keys and units as long as the engine.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ingest/log/log_line.h"

namespace epochmeter::ingest::log {

// What a printed number means.
enum class Role : uint8_t {
  kOther,        // a number with a name and no known meaning
  kEpoch,        // as printed; may have a fraction
  kEpochs,       // of the whole training
  kStep,         // since the training began
  kTotalSteps,   // of the whole training
  kStepInEpoch,  // since the epoch began
  kStepsPerEpoch,
  kLoss,        // the total one
  kLossPart,    // one of several
  kMetric,      // accuracy, AUC, perplexity, ...
  kEvalMetric,  // a metric or loss of an evaluation, "val_loss"
  kLearningRate,
  kGradNorm,
  kLossScale,
  kStepTime,      // of one step, s
  kDataTime,      // of one step, s
  kIntervalTime,  // of all steps since the record before, s
  kElapsed,       // since the training or the epoch began, s
  kEpochTime,     // s
  kEta,           // s
  kThroughput,    // per second
  kMemory,        // bytes
  kBatchSize,
  kSamples,
  kTokens,
  kPercent,
  kRank
};
std::string_view RoleName(Role role);  // "step_in_epoch"

// Where the training is, and steps or how many there are of them.
inline bool IsCounter(Role role) {
  return role == Role::kEpoch || role == Role::kStep || role == Role::kStepInEpoch;
}
inline bool IsSteps(Role role) {
  return role == Role::kStep || role == Role::kStepInEpoch || role == Role::kTotalSteps ||
         role == Role::kStepsPerEpoch;
}

// One printed value. `number` is as printed, also NaN and the infinities; `value` is in the SI unit
// of its role (s, bytes, 1/s) or the same as `number`.
struct LogValue {
  std::string_view key;   // as printed: "CELoss", "batch_cost", "train/loss"
  std::string_view text;  // as printed: "2.04e-06", "1 day, 2:03:04"
  std::string_view unit;  // as printed: "ms", "images/s", "MiB"; may be empty
  double number = 0;
  double value = 0;
  Role role = Role::kOther;
};

enum class RecordKind : uint8_t { kTrain, kEval, kSummary, kInference };

// Of each role 1 + the place of its first value in a record; 0: none.
using RolePlaces = std::array<uint16_t, static_cast<size_t>(Role::kRank) + 1>;

// One logging point of a training: a line, or several that belong together.
struct LogRecord {
  RecordKind kind = RecordKind::kTrain;
  LinePlace place;         // of its main line
  uint64_t last_line = 0;  // of its lines
  uint32_t start = 0;      // which start of the training in this stream, from 0
  uint32_t shape = 0;      // lines that name the same values in the same order have the same
  std::string_view stamp;  // as printed; empty when the line has none
  std::span<const LogValue> values;
  const RolePlaces* places = nullptr;  // of `values`, where they are known
  // The epoch that a header above gave ("Epoch 3/10"), where the record itself prints none.
  std::optional<double> header_epoch;
  std::string_view text;  // of the main line

  // The first value of this role; null when there is none.
  const LogValue* Find(Role role) const {
    if (places == nullptr) return Search(role);
    const uint16_t at = (*places)[static_cast<size_t>(role)];
    return at == 0 ? nullptr : &values[at - 1U];
  }
  // As printed.
  std::optional<double> Number(Role role) const {
    const LogValue* value = Find(role);
    return value == nullptr ? std::nullopt : std::optional(value->number);
  }
  // In SI units.
  std::optional<double> Value(Role role) const {
    const LogValue* value = Find(role);
    return value == nullptr ? std::nullopt : std::optional(value->value);
  }

 private:
  const LogValue* Search(Role role) const;
};

struct EventNumber {
  std::string key;  // "requested_bytes", "gpu", "signal", "node"
  std::variant<int64_t, double, std::string> value;
};

// Something that went wrong or is worth knowing. Kinds: docs/logs.md.
struct LogEvent {
  std::string kind;  // "oom_gpu", "traceback", "slurm_cancelled"
  LinePlace place;   // of the line that names it
  uint64_t last_line = 0;
  std::string text;  // that line, without stamp and logger, at most 500 bytes
  std::vector<EventNumber> numbers;
};

class LogSink {
 public:
  virtual ~LogSink() = default;
  virtual void OnRecord(const LogRecord& record) = 0;
  virtual void OnEvent(const LogEvent& event) = 0;
  // Whether the steps of a shape begin again with each epoch can be known only at the second epoch:
  // those given so far as kStep (kTotalSteps) were kStepInEpoch (kStepsPerEpoch), or the other way.
  virtual void OnStepMeaning(uint32_t /*file*/, uint32_t /*shape*/, bool /*in_epoch*/) {}
};

}  // namespace epochmeter::ingest::log
