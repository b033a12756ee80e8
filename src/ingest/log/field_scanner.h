// SPDX-License-Identifier: Apache-2.0
// Finds the named numbers of a line, whatever its format. Pure; any thread. Runs once for every new
// kind of line, not for every line.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace epochmeter::ingest::log {

// How a number is bound to its name.
enum class Binding : uint8_t {
  kSeparator,  // "loss: 1", "loss=1", "Loss is 1"
  kBracket,    // "Epoch: [0]", "Batch [20]"
  kSpace,      // "lr 1e-3"
  kNone        // no name in front
};

enum class FieldForm : uint8_t {
  kNumber,
  kPair,      // "3/10": the number and of how many
  kDuration,  // "1 day, 2:03:04", "05:57"
  kStamp,     // a date, a clock that is no duration
  kWord       // "nan", "inf": a value in letters
};

// Offsets are in the text; `end` is behind the last byte.
struct Field {
  std::string key;    // as printed, without quotes; empty when there is none
  std::string group;  // of nested JSON: the keys around, joined by '.'
  std::string_view unit;
  std::string_view after;  // the words behind, up to the next delimiter: "in 0 epoch" has "epoch"
  Binding binding = Binding::kNone;
  FieldForm form = FieldForm::kNumber;
  size_t key_begin = 0;
  size_t begin = 0, end = 0;              // of the value
  size_t total_begin = 0, total_end = 0;  // of kPair
  bool average = false;                   // "(1.2)" behind a value: the same name's running average
  bool listed = false;                    // not the first one of a list in brackets
};

struct ScannedLine {
  std::vector<Field> fields;
  // Words of the line that are neither names nor units, in lower case, with the offset of each.
  struct Word {
    std::string text;
    size_t at = 0;
  };
  std::vector<Word> words;
};

// Looks at text[from, text.size()).
ScannedLine ScanFields(std::string_view text, size_t from);

}  // namespace epochmeter::ingest::log
