// SPDX-License-Identifier: Apache-2.0
// Formats whose keys no vocabulary can know ("s:12 trl:3.1"), from formats/*.json, which are part
// of the program. How to write one: docs/logs.md. Any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "ingest/log/field_scanner.h"
#include "ingest/log/log_record.h"

namespace epochmeter::ingest::log {

// A value by its name, or by its place in the line when it has none.
struct ValueName {
  std::string name;             // as NameOfField says it; empty with a place
  std::optional<size_t> place;  // "#2" is the third value of the line
};

struct NamedFormat {
  struct ValueRole {
    ValueName value;
    Role role = Role::kOther;
    std::optional<Role> total;  // of the second number of "3/10"
  };
  struct Sample {
    std::string text;
    std::vector<std::pair<Role, std::string>> expected;  // each value as the line prints it
  };

  std::string name;
  std::string summary;  // a sentence
  RecordKind kind = RecordKind::kTrain;
  std::vector<ValueName> keys;  // a line has this format when it has all of them
  std::vector<ValueRole> roles;
  std::vector<Sample> samples;

  // The role of a value of a line of this format; null where the format says nothing of it.
  const ValueRole* Find(std::string_view field_name, size_t place) const;
};

// A file of formats/. The error names the file and the member that is wrong.
base::Result<NamedFormat> ParseNamedFormat(std::string_view file, std::string_view json);

// All formats of the program, in the order of their file names.
std::span<const NamedFormat> NamedFormats();

// What a format calls a value: its key ("sec/tick" is "sec_tick"), else its unit, else the word
// behind it ("0.001 rate"); empty when it has none of them.
std::string NameOfField(const Field& field);

// The names of a line's values in order (NameOfField). Of several formats that fit the one that
// asks for the most; null when none fits.
const NamedFormat* FindNamedFormat(std::span<const std::string_view> keys);

}  // namespace epochmeter::ingest::log
