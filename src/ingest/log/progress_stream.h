// SPDX-License-Identifier: Apache-2.0
// What Progress remembers of the lines of a stream: for its own files only.
#pragma once

#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "ingest/log/progress.h"

namespace epochmeter::ingest::log {

inline bool Known(double number) { return !std::isnan(number); }

// What is known of lines that name the same values.
struct ProgressShape {
  uint64_t count = 0;
  uint64_t rising = 0;  // of its counters, from line to line
  double last_epoch = std::numeric_limits<double>::quiet_NaN();
  double last_step = std::numeric_limits<double>::quiet_NaN();
  uint64_t repeats = 0;  // of an epoch's number
  std::optional<bool> in_epoch;
  bool meaning_known = false;

  // Several lines an epoch: they are of steps, also when they don't say so.
  bool OfSteps() const { return repeats >= 2 && repeats * 2 >= count; }
};

// A bar that is drawn again and again.
struct ProgressBar {
  double total = 0, last = 0;
  double epoch = std::numeric_limits<double>::quiet_NaN();
  bool whole = false;  // it goes on over epochs: each state is a record
  bool sure = false;   // that it is, or is not
  double header_at_last = std::numeric_limits<double>::quiet_NaN();
  double done_epoch = std::numeric_limits<double>::quiet_NaN();  // given already
  double done_header = std::numeric_limits<double>::quiet_NaN();
  double done_total = 0;
  std::vector<HeldRecord> states;       // until it is sure
  const LinePlan* open_plan = nullptr;  // of the last state, while the bar is not full
  LinePlace open_place;
  std::string open_text;
};

struct ProgressStream {
  bool eval = false;          // a line said that an evaluation begins
  uint64_t title_line = 0;    // "Train:" alone, as settings have it, too
  bool names_phases = false;  // records stood right below such lines
  bool skip_next = false;
  double header_epoch = std::numeric_limits<double>::quiet_NaN();
  bool header_pair = false;  // "3/10"
  double train_total = std::numeric_limits<double>::quiet_NaN();
  double last_epoch = std::numeric_limits<double>::quiet_NaN();
  double last_step = std::numeric_limits<double>::quiet_NaN();
  uint32_t start = 0;
  double last_seen_epoch =
      std::numeric_limits<double>::quiet_NaN();  // of training, given or pending
  double last_seen_step = std::numeric_limits<double>::quiet_NaN();
  uint64_t drawn_line = 0;  // the pending record's, when more was drawn over it
  bool has_box = false;
  HeldRecord box;                       // a table with one figure a row
  std::optional<uint32_t> train_shape;  // of the last record of training
  std::optional<uint32_t> main_family;  // of the records that go on
  double main_epoch = std::numeric_limits<double>::quiet_NaN();
  uint64_t in_epoch = 0;                   // records of it
  std::optional<uint32_t> summary_family;  // perhaps of whole epochs
  bool has_summary = false;
  HeldRecord summary;
  bool has_eval_line = false;
  HeldRecord eval_line;           // of an evaluation without a counter, until training goes on
  bool eval_begins_step = false;  // it may be a step's progress, too
  bool has_pending = false;
  HeldRecord pending;
  ProgressBar bar;
};

}  // namespace epochmeter::ingest::log
