// SPDX-License-Identifier: Apache-2.0
// A line's plan while it is being worked out: shared by the planner's own files only.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "ingest/log/line_plan.h"

namespace epochmeter::ingest::log {

struct LineDraft {
  std::string_view text;
  const LinePrefix& prefix;
  const Skeleton& skeleton;
  ScannedLine scanned;
  LinePlan plan;
  std::vector<size_t> key_at;  // of each of plan.fields: where its name begins
  bool train_key = false;      // a name says "train"
  bool eval_counter = false;   // a counter counts an evaluation
  bool run_total = false;      // a figure of a whole epoch or run
  bool named_eval = false;     // a named format says that this is an evaluation's line
  int train_names = 0;

  std::string_view Message() const {
    return text.substr(prefix.message < text.size() ? prefix.message : text.size());
  }
};

inline bool IsLoss(const FieldPlan& field) {
  return !field.eval && (field.role == Role::kLoss || field.role == Role::kLossPart);
}
bool IsFigure(Role role);  // that a training step has

// The steps, in this order.
void PlanFields(LineDraft* draft);    // what each named number is
void PlanCounters(LineDraft* draft);  // which of them say where the training is
void JudgeLine(LineDraft* draft);     // what kind of line it is

}  // namespace epochmeter::ingest::log
