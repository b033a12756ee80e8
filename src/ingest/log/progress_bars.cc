// SPDX-License-Identifier: Apache-2.0
// Bars that are drawn again and again, and tables with one figure a row.
#include <algorithm>
#include <utility>

#include "ingest/log/progress_impl.h"
#include "ingest/log/record_values.h"

namespace epochmeter::ingest::log {

// "| fps | 141 |": rows between rules are one record.
void Progress::Impl::BoxRow(Stream& stream, const ProgressLine& line) {
  ReadValues(line, &scratch_);
  const bool follows = stream.has_box && line.place.line <= stream.box.last_line + 2;
  if (!follows) EndBox(stream);
  if (!stream.has_box) {
    stream.has_box = true;
    std::swap(stream.box, scratch_);
    return;
  }
  if (std::isnan(stream.box.step)) {
    stream.box.step = scratch_.step;
    if (Known(scratch_.step)) {
      stream.box.place = scratch_.place;
      stream.box.plan = scratch_.plan;
    }
  }
  Join(&stream.box, scratch_);
  stream.box.last_line = line.place.line;
}

void Progress::Impl::EndBox(Stream& stream) {
  if (!stream.has_box) return;
  stream.has_box = false;
  HeldRecord& box = stream.box;
  if (!Known(box.step) || box.values.size() < 3) return;
  box.kind = RecordKind::kTrain;
  box.tier = Tier::kFigures;
  ++ShapeOf(box.plan->shape).count;
  Begin(stream, &box);
}

// `scratch_` has the counters only: most states are drawn over.
void Progress::Impl::BarState(Stream& stream, const ProgressLine& line) {
  const LinePlan& plan = *line.plan;
  HeldRecord& record = scratch_;
  record.tier = plan.tier;
  if (plan.tier < Tier::kFigures || !Known(record.total) || record.total <= 0) return;
  if (record.kind == RecordKind::kTrain && IsEvaluation(stream, plan, record))
    record.kind = RecordKind::kEval;
  Bar& bar = stream.bar;
  if (record.kind != RecordKind::kTrain) {
    if (bar.whole && bar.last >= bar.total) EndBar(stream);  // the next one is another
    return;
  }
  const bool own_epoch = plan.has_epoch && Known(record.epoch);
  const double epoch = own_epoch ? record.epoch : stream.header_epoch;
  // The header's epoch is done: what is drawn now is another loop, an
  // evaluation.
  if (!own_epoch && Known(epoch) && epoch == bar.done_header && record.total != bar.done_total) {
    ++eval_records_;
    return;
  }
  const bool again = record.step < bar.last || record.total != bar.total ||
                     (own_epoch && epoch != bar.epoch) ||
                     (bar.last >= bar.total && Known(epoch) && epoch != bar.header_at_last);
  if (again) {
    EndBar(stream);
    bar.total = record.total;
    bar.epoch = epoch;
    bar.whole = !Known(epoch);
    bar.sure = own_epoch || bar.whole;
  } else if (!bar.sure && epoch != bar.epoch) {
    // The epoch changed and the bar went on.
    bar.whole = bar.sure = true;
    for (HeldRecord& state : bar.states) GiveState(stream, &state);
    bar.states.clear();
  }
  const bool same = !again && record.step == bar.last;
  bar.last = record.step;
  bar.header_at_last = epoch;
  KeepBarState(stream, line, own_epoch, same);
}

// `same`: as far as the state before.
void Progress::Impl::KeepBarState(Stream& stream, const ProgressLine& line, bool own_epoch,
                                  bool same) {
  const LinePlan& plan = *line.plan;
  HeldRecord& record = scratch_;
  Bar& bar = stream.bar;
  const auto read = [&] {
    ReadValues(line, &record);
    if (!own_epoch && Known(stream.header_epoch)) record.header_epoch = stream.header_epoch;
  };
  if (bar.whole) {
    if (record.step <= 0 || plan.tier < Tier::kLoss) return;
    if (same && stream.has_pending) Forget(&stream);
    read();
    GiveState(stream, &record);
    return;
  }
  bar.open_plan = nullptr;
  if (record.step < bar.total) {
    if (record.step > 0 && plan.tier == Tier::kLoss) {
      bar.open_plan = &plan;
      bar.open_place = line.place;
      bar.open_text.assign(line.text);
    }
    if (!bar.sure && bar.states.size() < kMostHeld && record.step > 0 && plan.tier == Tier::kLoss) {
      if (same && !bar.states.empty()) bar.states.pop_back();
      read();
      bar.states.push_back(record);
    }
    return;
  }
  bar.states.clear();
  if (own_epoch && record.epoch == bar.done_epoch) return;
  if (!own_epoch && Known(stream.header_epoch)) {
    bar.done_header = stream.header_epoch;
    bar.done_total = record.total;
  }
  // Drawn several times when it is full: the last one has the most to say.
  if (same && stream.has_pending) Forget(&stream);
  read();
  GiveState(stream, &record);
}

void Progress::Impl::GiveState(Stream& stream, HeldRecord* record) {
  Shape& shape = ShapeOf(record->plan->shape);
  shape.in_epoch = !stream.bar.whole;
  ++shape.count;
  if (record->tier < best_) return;
  Begin(stream, record);
}

// The training was ended in the middle of a bar: its last state is what is
// known of the epoch.
void Progress::Impl::GiveOpenBar(Stream& stream) {
  Bar& bar = stream.bar;
  const LinePlan* plan = std::exchange(bar.open_plan, nullptr);
  if (plan == nullptr || bar.whole) return;
  Skeleton skeleton;
  ReadSkeleton(bar.open_text, &skeleton);
  HeldRecord record;
  ReadValues({.place = bar.open_place, .text = bar.open_text, .skeleton = &skeleton, .plan = plan},
             &record);
  record.tier = plan->tier;
  if (!Known(record.epoch) && Known(stream.header_epoch)) {
    record.header_epoch = stream.header_epoch;
  }
  GiveState(stream, &record);
}

void Progress::Impl::EndBar(Stream& stream) {
  stream.bar.done_epoch =
      stream.bar.last >= stream.bar.total ? stream.bar.epoch : stream.bar.done_epoch;
  stream.bar.states.clear();
  stream.bar.open_plan = nullptr;
  stream.bar.last = 0;
  stream.bar.total = 0;
}

}  // namespace epochmeter::ingest::log
