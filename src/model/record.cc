// SPDX-License-Identifier: Apache-2.0
#include "model/record.h"

#include <array>

namespace epochmeter::model {
namespace {

constexpr std::array<std::string_view, kEventKindCount> kEventNames = {
    "hello",       "train_begin", "train_end", "epoch_begin", "epoch_end", "step",
    "phase_begin", "phase_end",   "memory",    "scalar",      "exception", "mark",
    "process",     "source",      "finding",   "alert"};

const FieldValue* Find(const std::vector<EventField>& fields, std::string_view key) {
  for (const EventField& field : fields) {
    if (field.key == key) return &field.value;
  }
  return nullptr;
}

}  // namespace

std::string_view SeriesConditionName(SeriesCondition condition) {
  constexpr std::array<std::string_view, kSeriesConditionCount> kNames = {
      "ok", "not_supported", "no_permission", "not_found", "error", "device_lost", "source_gone"};
  return kNames[static_cast<size_t>(condition)];
}

std::string_view EventKindName(EventKind kind) { return kEventNames[static_cast<size_t>(kind)]; }

std::optional<EventKind> EventKindFromName(std::string_view name) {
  for (size_t i = 0; i < kEventNames.size(); ++i) {
    if (kEventNames[i] == name) return static_cast<EventKind>(i);
  }
  return {};
}

std::optional<double> Event::Number(std::string_view key) const {
  const FieldValue* value = Find(fields, key);
  if (value == nullptr) return {};
  if (const auto* integer = std::get_if<int64_t>(value)) return static_cast<double>(*integer);
  if (const auto* real = std::get_if<double>(value)) return *real;
  return {};
}

std::optional<std::string_view> Event::Text(std::string_view key) const {
  const FieldValue* value = Find(fields, key);
  const auto* text = value == nullptr ? nullptr : std::get_if<std::string>(value);
  if (text == nullptr) return {};
  return std::string_view(*text);
}

}  // namespace epochmeter::model
