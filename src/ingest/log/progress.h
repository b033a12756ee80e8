// SPDX-License-Identifier: Apache-2.0
// Which lines of a file are progress records of a training: learned from the lines themselves. One
// thread; memory does not grow with the file.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ingest/log/line_plan.h"
#include "ingest/log/log_record.h"

namespace epochmeter::ingest::log {

// A line as the engine hands it on.
struct ProgressLine {
  LinePlace place;
  std::string_view text;
  bool redrawn = false;
  std::string_view stamp;  // as printed
  const Skeleton* skeleton = nullptr;
  const LinePlan* plan = nullptr;  // lives as long as the file's Progress
};

// A record that is not given away yet: its line may be followed by others that belong to it, or it
// is not sure that it is one.
struct HeldRecord {
  struct Value {
    const FieldPlan* field = nullptr;
    bool total = false;  // the second number of a pair
    Role role = Role::kOther;
    uint32_t begin = 0, size = 0;  // in `text`
    double number = 0, value = 0;
  };
  const LinePlan* plan = nullptr;
  RecordKind kind = RecordKind::kTrain;
  Tier tier = Tier::kNone;
  LinePlace place;
  uint64_t last_line = 0;
  std::string text;        // the main line, then others that joined it
  uint32_t main_size = 0;  // of the main line
  std::string stamp;
  std::vector<Value> values;
  std::optional<double> header_epoch;
  double epoch = std::numeric_limits<double>::quiet_NaN();
  double step = std::numeric_limits<double>::quiet_NaN();  // of either kind
  double total = std::numeric_limits<double>::quiet_NaN();

  bool HasRole(Role role) const;
  void Swap(HeldRecord& other) noexcept;
};

// The records of one file.
class Progress {
 public:
  // Borrows both.
  Progress(LogSink& sink, uint32_t file);
  ~Progress();

  // A line whose plan is not of Tier::kNone, or that says what the next ones are.
  void Line(const ProgressLine& line);
  // A line that is nothing of this, but stands between others.
  void Other(uint32_t stream, uint64_t line);
  // Nothing more for now: what is decided, and what is likely, goes out.
  void Idle();
  void Finish();

  uint64_t records() const;
  uint64_t eval_records() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace epochmeter::ingest::log
