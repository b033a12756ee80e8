// SPDX-License-Identifier: Apache-2.0
// What a kind of line means and where its values stand: worked out once for a line, kept for all
// lines of the same skeleton. Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ingest/log/field_scanner.h"
#include "ingest/log/line_prefix.h"
#include "ingest/log/log_record.h"
#include "ingest/log/skeleton.h"

namespace epochmeter::ingest::log {

struct FieldPlan {
  Role role = Role::kOther;
  Role total_role = Role::kOther;  // of the second number of a pair
  FieldForm form = FieldForm::kNumber;
  bool eval = false, average = false;
  uint16_t number = 0;        // the number in Skeleton::begin at which the value starts
  uint16_t total_number = 0;  // of a pair
  uint16_t last_number = 0;   // the value's last one: durations have several
  double factor = 1;          // to the SI unit of the role
  double constant = 0;        // of kWord: "nan", "inf"
  std::string key;
  std::string total_key;
  std::string unit;
};

// How far a line speaks of training: what it would be if it is a record.
enum class Tier : uint8_t {
  kNone,
  kExtra,    // figures without a counter: may belong to a record near it
  kHeader,   // an epoch's number and nothing else
  kCounter,  // counters and nothing else
  kFigures,  // a counter, and figures of training that are no loss
  kLoss      // a counter and a loss
};

struct LinePlan {
  Tier tier = Tier::kNone;
  RecordKind kind = RecordKind::kTrain;
  bool told_train = false;    // the line says so itself
  bool sure_summary = false;  // kSummary whatever else is in the log
  bool has_step = false;      // a counter of steps or batches
  bool has_epoch = false;
  bool has_eval_values = false;    // figures of an evaluation among others
  bool names_eval_figure = false;  // a loss or metric of an evaluation
  bool bare_step = false;          // "[12]" at the begin, as boosting libraries print it
  bool names_loss = false;
  bool elapsed = false;         // says how long the epoch or the training took so far
  bool pair = false;            // a counter says of how many
  bool pair_in_epoch = false;   // "Epoch: [3][20/312]": of the epoch, whatever else is printed
  bool counts_samples = false;  // its pair of steps is one of samples
  bool bar = false;
  bool repeats_best = false;                       // the next line shows the best step once more
  bool box = false;                                // a row of a table with one figure a row
  bool events = false;                             // EventReader wants it
  bool begins_eval = false, begins_train = false;  // a line between records that says what follows
  bool titles_train = false;                       // "Train:" alone
  bool columns = false;  // names columns; the numbers of the next lines have no names
  bool rows = false;     // numbers without names: what they are is in the columns above
  uint32_t family = 0;   // of the text up to the first figure: what the line begins with
  uint32_t shape = 0;    // of its keys in order
  int epoch = -1, step = -1, step_in_epoch = -1;  // index in `fields`
  std::vector<FieldPlan> fields;
};

// `prefix` is what ReadLinePrefix says of the text.
LinePlan MakePlan(std::string_view text, const LinePrefix& prefix, const Skeleton& skeleton);

}  // namespace epochmeter::ingest::log
