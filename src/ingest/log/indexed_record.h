// SPDX-License-Identifier: Apache-2.0
// A record whose values are found by their role at once. Borrows the record.
#pragma once

#include <array>
#include <cstddef>
#include <optional>

#include "ingest/log/log_record.h"

namespace epochmeter::ingest::log {

class IndexedRecord {
 public:
  // A record is a few values with as many roles: one pass, for all who ask.
  // NOLINTNEXTLINE(google-explicit-constructor)
  IndexedRecord(const LogRecord& record) : record_(record) {
    for (const LogValue& value : record.values) {
      const LogValue*& first = first_[static_cast<size_t>(value.role)];
      if (first == nullptr) first = &value;
    }
  }

  const LogRecord& operator*() const { return record_; }
  const LogRecord* operator->() const { return &record_; }
  // As LogRecord's, of the first value of the role.
  const LogValue* Find(Role role) const { return first_[static_cast<size_t>(role)]; }
  std::optional<double> Number(Role role) const {
    const LogValue* value = Find(role);
    return value == nullptr ? std::nullopt : std::optional(value->number);
  }
  std::optional<double> Value(Role role) const {
    const LogValue* value = Find(role);
    return value == nullptr ? std::nullopt : std::optional(value->value);
  }

 private:
  const LogRecord& record_;
  std::array<const LogValue*, static_cast<size_t>(Role::kRank) + 1> first_{};
};

}  // namespace epochmeter::ingest::log
