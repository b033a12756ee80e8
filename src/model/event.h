// SPDX-License-Identifier: Apache-2.0
// Events of a run: what a training, a client or we ourselves did, and when.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace epochmeter::model {

enum class EventKind : uint8_t {
  kHello,
  kTrainBegin,
  kTrainEnd,
  kEpochBegin,
  kEpochEnd,
  kStep,
  kPhaseBegin,
  kPhaseEnd,
  kMemory,
  kScalar,
  kException,
  kMark,
  kProcess,
  kSource,
  kFinding,
  kAlert
};
inline constexpr int kEventKindCount = 16;
std::string_view EventKindName(EventKind kind);  // "epoch_begin"
std::optional<EventKind> EventKindFromName(std::string_view name);

using FieldValue = std::variant<int64_t, double, std::string>;
struct EventField {
  std::string key;
  FieldValue value;
  bool operator==(const EventField&) const = default;
};

// Something that happened. `name` is the phase, mark, exception type or source it speaks of.
// Numbers of a step are fields: duration_s, data_wait_s, batch_size, step_in_epoch, and scalars as
// "scalar.loss". rank, epoch and step are absent when not known.
struct Event {
  int64_t t_ns = 0;
  EventKind kind = EventKind::kMark;
  std::optional<int32_t> rank;
  std::optional<int64_t> epoch;
  std::optional<int64_t> step;
  std::string name;
  std::vector<EventField> fields;
  bool operator==(const Event&) const = default;

  // The field as a number (integers widened) or as text; nothing when absent or of the other type.
  std::optional<double> Number(std::string_view key) const;
  std::optional<std::string_view> Text(std::string_view key) const;
};

}  // namespace epochmeter::model
