// SPDX-License-Identifier: Apache-2.0
// What each line of a training is: a record, a part of one, or another thing.
#include <algorithm>
#include <cmath>
#include <utility>

#include "ingest/log/progress_impl.h"
#include "ingest/log/record_values.h"

namespace epochmeter::ingest::log {
namespace {

// Lines of one evaluation stand no farther apart.
constexpr uint64_t kEvalLines = 2;

}  // namespace

// An epoch's number alone: what follows belongs to it.
void Progress::Impl::Header(Stream& stream, const ProgressLine& line) {
  ReadValues(line, &scratch_);
  if (line.plan->kind == RecordKind::kEval || line.plan->kind == RecordKind::kInference) return;
  if (!Known(scratch_.epoch)) return;
  if (line.plan->kind == RecordKind::kTrain) stream.eval = false;
  stream.header_epoch = scratch_.epoch;
  stream.header_pair =
      line.plan->fields[static_cast<size_t>(line.plan->epoch)].form == FieldForm::kPair;
  if (best_ == Tier::kNone && line.text.substr(0, 6) == ":::MLP") Hold(&scratch_, Tier::kHeader);
}

// Figures without a counter: they belong to the record before, or are a record
// under a header.
void Progress::Impl::Extra(Stream& stream, const ProgressLine& line) {
  const LinePlan& plan = *line.plan;
  if (std::exchange(stream.skip_next, false)) return;
  ReadValues(line, &scratch_);
  // "Evaluating..." stands above.
  const bool told = stream.eval && !plan.told_train && !plan.bar && plan.names_eval_figure;
  const RecordKind kind = told ? RecordKind::kEval : plan.kind;
  scratch_.kind = kind;
  const bool loss = plan.names_loss && kind == RecordKind::kTrain;
  const bool next = loss && stream.has_pending && stream.pending.header_epoch &&
                    (stream.pending.header_epoch != stream.header_epoch ||
                     stream.pending.plan->shape == plan.shape);
  if (stream.has_pending && kind == RecordKind::kTrain && !plan.bar && !next) {
    const bool whole =
        stream.pending.HasRole(Role::kLoss) || stream.pending.HasRole(Role::kLossPart);
    Join(&stream.pending, scratch_);
    if (loss && !whole) stream.pending.tier = std::max(stream.pending.tier, Tier::kLoss);
    return;
  }
  if (kind == RecordKind::kEval) return Evaluation(stream);
  if (!loss || plan.bar || (best_ >= Tier::kFigures && plan.family != header_family_)) return;
  if (Known(stream.header_epoch) && !stream.eval) {
    // A header without "of how many" may be a setting: sure when another one
    // follows.
    const bool sure = stream.header_pair || plan.family == header_family_;
    if (!sure && !(plan.family == waiting_family_ && stream.header_epoch > waiting_epoch_)) {
      waiting_family_ = plan.family;
      waiting_epoch_ = stream.header_epoch;
      scratch_.epoch = stream.header_epoch;
      scratch_.header_epoch = stream.header_epoch;
      scratch_.tier = Tier::kExtra;
      Begin(stream, &scratch_);
      return;
    }
    scratch_.epoch = stream.header_epoch;
    scratch_.header_epoch = stream.header_epoch;
    scratch_.tier = Tier::kLoss;
    header_family_ = plan.family;
    Begin(stream, &scratch_);
    return;
  }
  Hold(&scratch_, Tier::kExtra);
}

// Figures of an evaluation in `scratch_`: neighbouring lines are one, up to the next of the first
// one's kind. Other numbers of evaluations, such as how many samples they have, are none.
void Progress::Impl::Evaluation(Stream& stream) {
  HeldRecord& eval = stream.eval_line;
  const bool begins_step = best_ == Tier::kNone && Known(scratch_.step);
  if (!begins_step && !scratch_.plan->names_eval_figure) return;
  if (stream.has_eval_line) {
    const bool more = eval.plan != scratch_.plan &&
                      scratch_.place.line <= eval.last_line + kEvalLines &&
                      !stream.eval_begins_step;
    if (more) return Join(&eval, scratch_);
    Flush(stream);
    GiveEvaluation(stream);
  }
  std::swap(eval, scratch_);
  stream.has_eval_line = true;
  stream.eval_begins_step = begins_step;
  if (!Known(eval.epoch) && Known(stream.last_seen_epoch)) {
    eval.header_epoch = stream.last_seen_epoch;
  }
}

void Progress::Impl::GiveEvaluation(Stream& stream) {
  const bool given = std::exchange(stream.has_eval_line, false);
  if (given && stream.eval_line.plan->names_eval_figure) Give(stream, &stream.eval_line);
}

// LightGBM prints a step's evaluation and then, in a line of its own, that the
// step is done: what progress it has. Makes one record of both.
bool Progress::Impl::EndsEvalLine(Stream& stream) {
  if (!stream.has_eval_line || !std::exchange(stream.eval_begins_step, false)) return false;
  HeldRecord& eval = stream.eval_line;
  const bool ends = scratch_.plan->tier == Tier::kCounter && scratch_.step == eval.step &&
                    scratch_.place.line <= eval.place.line + 2;
  if (!ends) return false;
  stream.has_eval_line = false;
  eval.kind = RecordKind::kTrain;
  eval.tier = Tier::kCounter;
  Join(&eval, scratch_);
  std::swap(eval, scratch_);
  return true;
}

// Adds the line in `scratch_` to the pending record.
void Progress::Impl::Merge(Stream& stream, const LinePlan& plan) {
  HeldRecord& record = scratch_;
  // "step 0: train loss 4.2, val loss 4.3" next to "iter 0: loss 4.25": an evaluation's.
  if (stream.pending.plan->has_eval_values && !plan.has_eval_values && plan.names_loss &&
      stream.pending.plan->family != plan.family) {
    evals_.insert(stream.pending.plan->family);
    stream.pending.kind = RecordKind::kEval;
    FlushOne(stream);
    Candidate(stream, plan);
    return;
  }
  // The line with the loss is the main one, unless both begin alike.
  if (record.tier > stream.pending.tier && plan.family != stream.pending.plan->family) {
    Forget(&stream);
    std::swap(stream.pending, record);
    Remember(&stream);
  }
  const Tier tier = std::max(stream.pending.tier, record.tier);
  Join(&stream.pending, record);
  stream.pending.tier = tier;
}

// What the lines before say that a line is.
void Progress::Impl::JudgeKind(Stream& stream, const LinePlan& plan, HeldRecord* judged) {
  HeldRecord& record = *judged;
  Shape& shape = ShapeOf(plan.shape);
  if (record.kind == RecordKind::kTrain && IsEvaluation(stream, plan, record)) {
    record.kind = RecordKind::kEval;  // its steps say nothing of the training's
  } else {
    Learn(stream, &shape, plan, record);
  }
  if (record.kind == RecordKind::kTrain && RepeatsEpoch(stream, record)) {
    record.kind = RecordKind::kSummary;
    return;
  }
  const bool steps = plan.has_step || shape.OfSteps();
  const bool main = best_ == Tier::kLoss && stream.train_shape == plan.shape;
  if (record.kind == RecordKind::kTrain && !steps && step_level_ && !main) {
    record.kind = RecordKind::kSummary;
  }
  if (!step_level_) step_family_ = plan.family;
  step_level_ |= record.kind == RecordKind::kTrain && steps && record.tier >= Tier::kFigures;
  if (record.kind == RecordKind::kSummary && plan.has_step && !plan.sure_summary) {
    record.kind = RecordKind::kTrain;
  }
  // "[1] Train-accuracy=0.7" behind "Batch [150] Speed: ...": of the whole
  // epoch.
  if (record.kind == RecordKind::kTrain && plan.bare_step && step_level_ &&
      plan.family != step_family_) {
    record.kind = RecordKind::kSummary;
  }
}

// "[8/100], loss: 0.5" behind "[8/100], [10/11], loss: 0.5": of the whole epoch.
bool Progress::Impl::RepeatsEpoch(const Stream& stream, const HeldRecord& record) {
  const HeldRecord& before = stream.pending;
  if (!stream.has_pending || Known(record.epoch) || !Known(record.total) || !Known(before.step) ||
      record.step != before.epoch || record.total == before.total) {
    return false;
  }
  return std::any_of(before.values.begin(), before.values.end(),
                     [&record](const HeldRecord::Value& value) {
                       return value.role == Role::kEpochs && value.number == record.total;
                     });
}

void Progress::Impl::Candidate(Stream& stream, const LinePlan& plan) {
  HeldRecord& record = scratch_;
  if (IsSaidTwice(stream, record)) {
    stream.pending.last_line = record.place.line;
    return;
  }
  if (evals_.contains(plan.family)) record.kind = RecordKind::kEval;
  if (MergesWith(stream, record)) {
    Merge(stream, plan);
    return;
  }
  JudgeKind(stream, plan, &record);
  if (record.kind == RecordKind::kEval || record.kind == RecordKind::kInference) {
    // "Starting evaluation at step 500" has no figure yet.
    if (plan.tier <= Tier::kCounter && !plan.names_eval_figure && !plan.bar) return;
    Flush(stream);  // in the order of the lines
    GiveEvaluation(stream);
    Give(stream, &record);
    return;
  }
  if (record.kind == RecordKind::kSummary) {
    if (records_ == 0 && !step_level_ && record.tier == Tier::kLoss) Hold(&record, Tier::kHeader);
    return;
  }
  // Without a loss, and with it all the others: the same kind of line where it
  // goes on, as when all steps were skipped.
  if (record.tier < best_ && (plan.family != best_family_ || !GoesOn(stream, record))) return;
  Begin(stream, &record);
}

bool Progress::Impl::GoesOn(const Stream& stream, const HeldRecord& record) {
  if (Known(record.epoch) && Known(stream.last_epoch) && record.epoch != stream.last_epoch) {
    return record.epoch > stream.last_epoch;
  }
  return !(record.step <= stream.last_step);
}

// Two handlers wrote the same message, each in its format.
bool Progress::Impl::IsSaidTwice(const Stream& stream, const HeldRecord& record) {
  const HeldRecord& before = stream.pending;
  if (!stream.has_pending || before.plan->shape != record.plan->shape ||
      record.place.line > before.last_line + 1 || record.place.line == before.place.line ||
      before.values.size() != record.values.size()) {
    return false;
  }
  return std::equal(before.values.begin(), before.values.end(), record.values.begin(),
                    [](const HeldRecord::Value& a, const HeldRecord::Value& b) {
                      return a.number == b.number && a.role == b.role;
                    });
}

// Another line of the same logging point: the same numbers under other names.
bool Progress::Impl::MergesWith(const Stream& stream, const HeldRecord& record) const {
  if (!stream.has_pending || stream.pending.plan->shape == record.plan->shape) return false;
  if (record.kind != RecordKind::kTrain || stream.pending.kind != RecordKind::kTrain) return false;
  if (!Known(record.step) || record.step != stream.pending.step) return false;
  return !Known(record.epoch) || !Known(stream.pending.epoch) ||
         record.epoch == stream.pending.epoch;
}

// Lines of an evaluation that look like those of the training.
bool Progress::Impl::IsEvaluation(const Stream& stream, const LinePlan& plan,
                                  const HeldRecord& record) {
  if (!stream.eval || plan.told_train) return false;
  if (stream.train_shape && *stream.train_shape != plan.shape) return true;
  if (Known(record.total) && Known(stream.train_total) && record.total != stream.train_total)
    return true;
  const double epoch = Known(record.epoch) ? record.epoch : stream.header_epoch;
  const bool same_epoch = Known(epoch) ? epoch == stream.last_seen_epoch : stream.names_phases;
  return same_epoch && record.step <= stream.last_seen_step;
}

// Follows the counters of a shape: whether steps begin again with each epoch.
void Progress::Impl::Learn(const Stream& stream, Shape* shape, const LinePlan& plan,
                           const HeldRecord& record) {
  ++shape->count;
  const double epoch = Known(record.epoch) ? record.epoch : stream.header_epoch;
  const bool both =
      Known(epoch) && Known(record.step) && Known(shape->last_epoch) && Known(shape->last_step);
  if (Known(record.epoch) && record.epoch == shape->last_epoch) ++shape->repeats;
  if (epoch > shape->last_epoch || record.step > shape->last_step) ++shape->rising;
  const bool open = plan.step < 0 || plan.step_in_epoch < 0;
  if (open && both && !shape->meaning_known && epoch > shape->last_epoch) {
    const bool in_epoch = record.step <= shape->last_step;
    shape->meaning_known = true;
    const bool before = *shape->in_epoch;
    shape->in_epoch = in_epoch;
    if (before != in_epoch) {
      for (auto& [id, other] : streams_) Flush(other);
      sink_.OnStepMeaning(file_, plan.shape, in_epoch);
    }
  }
  if (Known(epoch)) shape->last_epoch = epoch;
  if (Known(record.step)) shape->last_step = record.step;
  if (!shape->in_epoch) shape->in_epoch = GuessMeaning(stream, plan, record);
}

// Of a pair next to an epoch: by the time that is left, else as most print it.
bool Progress::Impl::GuessMeaning(const Stream& stream, const LinePlan& plan,
                                  const HeldRecord& record) {
  if (plan.step >= 0) return Known(record.total) && Known(stream.header_epoch);
  const bool named =
      plan.step_in_epoch >= 0 && !plan.fields[static_cast<size_t>(plan.step_in_epoch)].key.empty();
  if (!plan.has_epoch) return named || Known(stream.header_epoch);
  if (plan.pair_in_epoch) return true;
  double eta = 0, time = 0;
  for (const HeldRecord::Value& value : record.values) {
    if (value.role == Role::kEta && eta == 0) eta = value.value;
    if (value.role == Role::kStepTime && time == 0) time = value.value;
  }
  if (eta <= 0 || time <= 0 || !Known(record.total)) return true;
  const double left = eta / time;
  return std::abs(left - (record.total - record.step)) > 0.05 * left;
}

// Of two losses the one that is called just so is the loss.
void Progress::Impl::KeepOneLoss(HeldRecord* record, HeldRecord::Value* value) {
  for (HeldRecord::Value& mine : record->values) {
    if (mine.role != Role::kLoss) continue;
    const bool exact = value->field->key == "loss" && mine.field->key != "loss";
    (exact ? mine : *value).role = Role::kLossPart;
  }
}

// Adds values that the record does not have.
void Progress::Impl::Join(HeldRecord* record, const HeldRecord& other) {
  if (record->text.size() + other.text.size() > kMostSegmentBytes) return;
  const auto shift = static_cast<uint32_t>(record->text.size() + 1);
  const size_t own = record->values.size();
  record->text += '\n';
  record->text += other.text;
  record->last_line = std::max(record->last_line, other.place.line);
  for (HeldRecord::Value value : other.values) {
    const bool known =
        std::any_of(record->values.begin(), record->values.begin() + static_cast<ptrdiff_t>(own),
                    [&value](const HeldRecord::Value& mine) {
                      return mine.total == value.total && mine.field->key == value.field->key &&
                             mine.field->average == value.field->average;
                    });
    if (known) continue;
    value.begin += shift;
    if (value.role == Role::kLoss) KeepOneLoss(record, &value);
    record->values.push_back(value);
  }
  if (!Known(record->epoch)) record->epoch = other.epoch;
}

}  // namespace epochmeter::ingest::log
