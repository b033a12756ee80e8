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
  IndexedRecord(const LogRecord& record) : record_(record), places_(record.places) {
    if (places_ != nullptr) return;
    own_.fill(0);
    for (size_t i = record.values.size(); i-- > 0;) {
      own_[static_cast<size_t>(record.values[i].role)] = static_cast<uint16_t>(i + 1);
    }
    places_ = &own_;
  }
  IndexedRecord(const IndexedRecord&) = delete;
  IndexedRecord& operator=(const IndexedRecord&) = delete;

  const LogRecord& operator*() const { return record_; }
  const LogRecord* operator->() const { return &record_; }
  // As LogRecord's, of the first value of the role.
  const LogValue* Find(Role role) const {
    const uint16_t place = (*places_)[static_cast<size_t>(role)];
    return place == 0 ? nullptr : &record_.values[place - 1U];
  }
  std::optional<double> Number(Role role) const {
    const LogValue* value = Find(role);
    if (value == nullptr) return {};
    return value->number;
  }
  std::optional<double> Value(Role role) const {
    const LogValue* value = Find(role);
    if (value == nullptr) return {};
    return value->value;
  }

 private:
  const LogRecord& record_;
  const RolePlaces* places_;
  RolePlaces own_;  // NOLINT: only where the record has none
};

}  // namespace epochmeter::ingest::log
