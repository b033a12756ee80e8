// SPDX-License-Identifier: Apache-2.0
// A record of a training log as plain values. Lines count from 1, files from 0. Absent is not
// known.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace epochmeter::model {

// One printed value. `role` says what it means ("loss", "step_time", "other"); `number` is as
// printed, `value` in the SI unit of its role.
struct LogField {
  std::string key, text, unit, role;
  double number = 0, value = 0;
};

// One record, kept. `kind` is "train", "eval", "summary" or "inference".
struct LogPoint {
  std::string kind;
  uint32_t file = 0;
  uint64_t line = 0, last_line = 0;
  uint32_t start = 0;  // which start of the training, from 0
  std::optional<int32_t> rank;
  std::optional<int64_t> wall_ns;  // UTC
  std::string stamp;               // as printed
  std::optional<double> header_epoch;
  std::vector<LogField> fields;

  const LogField* Find(std::string_view role) const {
    for (const LogField& field : fields) {
      if (field.role == role) return &field;
    }
    return nullptr;
  }
};

}  // namespace epochmeter::model
