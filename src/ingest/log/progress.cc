// SPDX-License-Identifier: Apache-2.0
#include "ingest/log/progress.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_set>
#include <utility>

#include "ingest/log/quantities.h"
#include "ingest/log/record_values.h"

namespace epochmeter::ingest::log {
namespace {

constexpr size_t kMostHeld = 4096;
constexpr size_t kMostStreams = 4096;
constexpr size_t kMostShapes = 4096;
// Lines that belong to a record stand no farther behind it.
constexpr uint64_t kJoinLines = 10;
// Records of one shape that make it progress although no loss is printed.
constexpr size_t kSureCount = 3;

bool Known(double number) { return !std::isnan(number); }

// What is known of lines that name the same values.
struct Shape {
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
struct Bar {
  double total = 0, last = 0;
  double epoch = std::numeric_limits<double>::quiet_NaN();
  bool whole = false;  // it goes on over epochs: each state is a record
  bool sure = false;   // that it is, or is not
  double header_at_begin = std::numeric_limits<double>::quiet_NaN();
  double done_epoch = std::numeric_limits<double>::quiet_NaN();  // given already
  double done_header = std::numeric_limits<double>::quiet_NaN();
  double done_total = 0;
  std::vector<HeldRecord> states;  // until it is sure
};

struct Stream {
  bool eval = false;  // a line said that an evaluation begins
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
  HeldRecord eval_line;  // may be a step's progress, too
  bool has_pending = false;
  HeldRecord pending;
  Bar bar;
};

}  // namespace

class Progress::Impl {
 public:
  Impl(LogSink& sink, uint32_t file) : sink_(sink), file_(file) {}

  void Line(const ProgressLine& line) {
    Stream& stream = StreamOf(line.place.stream);
    const LinePlan& plan = *line.plan;
    if (plan.begins_eval) stream.eval = true;
    if (plan.begins_train) stream.eval = false;
    if (stream.has_pending && line.place.line > stream.pending.last_line + kJoinLines)
      Flush(stream);
    if (plan.repeats_best) {
      stream.skip_next = true;
      return;
    }
    if (plan.box) return BoxRow(stream, line);
    switch (plan.tier) {
      case Tier::kNone:
        return;
      case Tier::kExtra:
        return Extra(stream, line);
      case Tier::kHeader:
        return Header(stream, line);
      default:
        break;
    }
    ReadValues(line, &scratch_);
    scratch_.kind = plan.kind;
    scratch_.tier = plan.tier;
    if (std::exchange(stream.skip_next, false)) return;
    if (!Known(scratch_.epoch) && !Known(scratch_.step)) return;
    if (plan.bar) return BarState(stream, line);
    // A line that is drawn again and again is one record an epoch: its last state.
    const bool redraws = stream.has_pending && stream.drawn_line == line.place.line &&
                         stream.pending.plan->family == plan.family &&
                         !(stream.pending.epoch < scratch_.epoch);
    if (redraws) Forget(&stream);
    stream.drawn_line = line.redrawn && plan.elapsed && !plan.pair ? line.place.line : 0;
    if (EndsEvalLine(stream)) return Candidate(stream, *scratch_.plan);
    Candidate(stream, plan);
  }

  void Other(uint32_t id, uint64_t line) {
    Stream& stream = StreamOf(id);
    if (stream.has_box && line > stream.box.last_line + 2) EndBox(stream);
    if (stream.has_pending && line > stream.pending.last_line + kJoinLines) Flush(stream);
  }

  void Idle() {
    for (auto& [id, stream] : streams_) Flush(stream);
    if (best_ < Tier::kFigures && !held_.empty() && HeldTier() == Tier::kFigures)
      GiveHeld(Tier::kFigures);
  }

  void Finish() {
    for (auto& [id, stream] : streams_) {
      EndBox(stream);
      Flush(stream);
      EndBar(stream);
    }
    if (records_ == 0) Decide();
    held_.clear();
  }

  uint64_t records_ = 0, eval_records_ = 0;

 private:
  Stream& StreamOf(uint32_t id) { return streams_[streams_.size() < kMostStreams ? id : 0]; }
  Shape& ShapeOf(uint32_t id) { return shapes_[shapes_.size() < kMostShapes ? id : 0]; }

  // An epoch's number alone: what follows belongs to it.
  void Header(Stream& stream, const ProgressLine& line) {
    ReadValues(line, &scratch_);
    if (line.plan->kind == RecordKind::kEval || line.plan->kind == RecordKind::kInference) return;
    if (!Known(scratch_.epoch)) return;
    const bool next = scratch_.epoch != stream.header_epoch;
    if (line.plan->kind == RecordKind::kTrain) stream.eval = false;
    if (next && stream.bar.last > 0 && stream.bar.last < stream.bar.total)
      stream.bar.header_at_begin = stream.header_epoch;
    stream.header_epoch = scratch_.epoch;
    stream.header_pair =
        line.plan->fields[static_cast<size_t>(line.plan->epoch)].form == FieldForm::kPair;
    if (best_ == Tier::kNone && line.text.substr(0, 6) == ":::MLP") Hold(&scratch_, Tier::kHeader);
  }

  // Figures without a counter: they belong to the record before, or are a record under a header.
  void Extra(Stream& stream, const ProgressLine& line) {
    const LinePlan& plan = *line.plan;
    if (std::exchange(stream.skip_next, false)) return;
    ReadValues(line, &scratch_);
    scratch_.kind = plan.kind;
    const bool loss = plan.names_loss && plan.kind == RecordKind::kTrain;
    const bool next = loss && stream.has_pending && stream.pending.header_epoch &&
                      stream.pending.HasRole(Role::kLoss);
    if (stream.has_pending && plan.kind == RecordKind::kTrain && !plan.bar && !next) {
      const bool whole =
          stream.pending.HasRole(Role::kLoss) || stream.pending.HasRole(Role::kLossPart);
      Join(&stream.pending, scratch_);
      if (loss && !whole) stream.pending.tier = std::max(stream.pending.tier, Tier::kLoss);
      return;
    }
    if (plan.kind == RecordKind::kEval) {
      ++eval_records_;
      stream.has_eval_line = best_ == Tier::kNone && Known(scratch_.step);
      if (stream.has_eval_line) std::swap(stream.eval_line, scratch_);
      return;
    }
    if (!loss || plan.bar || (best_ >= Tier::kFigures && plan.family != header_family_)) return;
    if (Known(stream.header_epoch) && !stream.eval) {
      // A header without "of how many" may be a setting: sure when another one follows.
      const bool sure = stream.header_pair || plan.family == header_family_;
      if (!sure && !(plan.family == waiting_family_ && stream.header_epoch > waiting_epoch_)) {
        waiting_family_ = plan.family;
        waiting_epoch_ = stream.header_epoch;
        scratch_.epoch = stream.header_epoch;
        scratch_.header_epoch = stream.header_epoch;
        Hold(&scratch_, Tier::kExtra);
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

  // "| fps | 141 |": rows between rules are one record.
  void BoxRow(Stream& stream, const ProgressLine& line) {
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

  void EndBox(Stream& stream) {
    if (!stream.has_box) return;
    stream.has_box = false;
    HeldRecord& box = stream.box;
    if (!Known(box.step) || box.values.size() < 3) return;
    box.kind = RecordKind::kTrain;
    box.tier = Tier::kFigures;
    ++ShapeOf(box.plan->shape).count;
    Begin(stream, &box);
  }

  // LightGBM prints a step's evaluation and then, in a line of its own, that the step is done: what
  // progress it has. Makes one record of both.
  bool EndsEvalLine(Stream& stream) {
    if (!stream.has_eval_line) return false;
    stream.has_eval_line = false;
    HeldRecord& eval = stream.eval_line;
    const bool ends = scratch_.plan->tier == Tier::kCounter && scratch_.step == eval.step &&
                      scratch_.place.line <= eval.place.line + 2;
    if (!ends) return false;
    eval.kind = RecordKind::kTrain;
    eval.tier = Tier::kCounter;
    Join(&eval, scratch_);
    std::swap(eval, scratch_);
    --eval_records_;
    return true;
  }

  void Candidate(Stream& stream, const LinePlan& plan) {
    HeldRecord& record = scratch_;
    if (evals_.contains(plan.family)) record.kind = RecordKind::kEval;
    if (MergesWith(stream, record)) {
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
      return;
    }
    Shape& shape = ShapeOf(plan.shape);
    Learn(stream, &shape, plan, record);
    if (record.kind == RecordKind::kTrain && IsEvaluation(stream, plan, record))
      record.kind = RecordKind::kEval;
    const bool steps = plan.has_step || shape.OfSteps();
    if (record.kind == RecordKind::kTrain && !steps && step_level_) {
      record.kind = RecordKind::kSummary;
    }
    step_level_ |= record.kind == RecordKind::kTrain && steps && record.tier >= Tier::kFigures;
    if (record.kind == RecordKind::kSummary && plan.has_step && !plan.sure_summary) {
      record.kind = RecordKind::kTrain;
    }
    if (record.kind == RecordKind::kEval || record.kind == RecordKind::kInference) {
      Give(stream, &record);
      return;
    }
    if (record.kind == RecordKind::kSummary) {
      if (records_ == 0 && !step_level_ && record.tier == Tier::kLoss) Hold(&record, Tier::kHeader);
      return;
    }
    // Without a loss, and with it all the others: the same kind of line where it goes on, as when
    // all steps were skipped.
    if (record.tier < best_ && (plan.family != best_family_ || !GoesOn(stream, record))) return;
    Begin(stream, &record);
  }

  static bool GoesOn(const Stream& stream, const HeldRecord& record) {
    if (Known(record.epoch) && Known(stream.last_epoch) && record.epoch != stream.last_epoch) {
      return record.epoch > stream.last_epoch;
    }
    return !(record.step <= stream.last_step);
  }

  // A training record begins: the one before is complete.
  void Begin(Stream& stream, HeldRecord* record) {
    Flush(stream);
    if (Known(stream.header_epoch) && !record->header_epoch && !Known(record->epoch)) {
      record->header_epoch = stream.header_epoch;
    }
    stream.eval = false;
    stream.last_seen_epoch = record->epoch;
    stream.last_seen_step = record->step;
    if (record->tier == Tier::kLoss) {
      stream.train_shape = record->plan->shape;
      if (Known(record->total)) stream.train_total = record->total;
    }
    std::swap(stream.pending, *record);
    Remember(&stream);
  }

  // Another line of the same logging point: the same numbers under other names.
  bool MergesWith(const Stream& stream, const HeldRecord& record) const {
    if (!stream.has_pending || stream.pending.plan->shape == record.plan->shape) return false;
    if (record.kind != RecordKind::kTrain || stream.pending.kind != RecordKind::kTrain)
      return false;
    if (!Known(record.step) || record.step != stream.pending.step) return false;
    return !Known(record.epoch) || !Known(stream.pending.epoch) ||
           record.epoch == stream.pending.epoch;
  }

  // Lines of an evaluation that look like those of the training.
  static bool IsEvaluation(const Stream& stream, const LinePlan& plan, const HeldRecord& record) {
    if (!stream.eval || plan.told_train) return false;
    if (stream.train_shape && *stream.train_shape != plan.shape) return true;
    if (Known(record.total) && Known(stream.train_total) && record.total != stream.train_total)
      return true;
    return Known(record.epoch) && record.epoch == stream.last_seen_epoch &&
           record.step <= stream.last_seen_step;
  }

  // Follows the counters of a shape: whether steps begin again with each epoch.
  void Learn(const Stream& stream, Shape* shape, const LinePlan& plan, const HeldRecord& record) {
    ++shape->count;
    const double epoch = Known(record.epoch) ? record.epoch : stream.header_epoch;
    const bool both =
        Known(epoch) && Known(record.step) && Known(shape->last_epoch) && Known(shape->last_step);
    if (Known(record.epoch) && record.epoch == shape->last_epoch) ++shape->repeats;
    if (epoch > shape->last_epoch || record.step > shape->last_step) ++shape->rising;
    if (both && !shape->meaning_known && epoch > shape->last_epoch) {
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
  static bool GuessMeaning(const Stream& stream, const LinePlan& plan, const HeldRecord& record) {
    if (plan.step >= 0) return Known(record.total) && Known(stream.header_epoch);
    if (!plan.has_epoch) return true;
    double eta = 0, time = 0;
    for (const HeldRecord::Value& value : record.values) {
      if (value.role == Role::kEta && eta == 0) eta = value.value;
      if (value.role == Role::kStepTime && time == 0) time = value.value;
    }
    if (eta <= 0 || time <= 0 || !Known(record.total)) return true;
    const double left = eta / time;
    return std::abs(left - (record.total - record.step)) > 0.05 * left;
  }

  void BarState(Stream& stream, const ProgressLine& line) {
    const LinePlan& plan = *line.plan;
    HeldRecord& record = scratch_;
    record.tier = plan.tier;
    if (plan.tier < Tier::kFigures || !Known(record.total) || record.total <= 0) return;
    if (record.kind == RecordKind::kTrain && IsEvaluation(stream, plan, record))
      record.kind = RecordKind::kEval;
    if (record.kind != RecordKind::kTrain) return;
    Bar& bar = stream.bar;
    const bool own_epoch = plan.has_epoch && Known(record.epoch);
    const double epoch = own_epoch ? record.epoch : stream.header_epoch;
    // The header's epoch is done: what is drawn now is another loop, an evaluation.
    if (!own_epoch && Known(epoch) && epoch == bar.done_header && record.total != bar.done_total) {
      ++eval_records_;
      return;
    }
    const bool again = record.step < bar.last || record.total != bar.total ||
                       (own_epoch && epoch != bar.epoch) ||
                       (!bar.whole && bar.last >= bar.total && Known(epoch) && epoch != bar.epoch);
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
    if (!own_epoch && Known(stream.header_epoch)) record.header_epoch = stream.header_epoch;
    if (bar.whole) {
      if (record.step <= 0 || plan.tier < Tier::kLoss) return;
      if (same && stream.has_pending) Forget(&stream);
      GiveState(stream, &record);
      return;
    }
    if (record.step < bar.total) {
      if (!bar.sure && bar.states.size() < kMostHeld && record.step > 0 &&
          plan.tier == Tier::kLoss) {
        if (same && !bar.states.empty()) bar.states.pop_back();
        bar.states.push_back(record);
      }
      return;
    }
    bar.states.clear();
    if (own_epoch && record.epoch == bar.done_epoch) return;
    if (!own_epoch && Known(epoch)) {
      bar.done_header = epoch;
      bar.done_total = record.total;
    }
    // Drawn several times when it is full: the last one has the most to say.
    if (same && stream.has_pending) Forget(&stream);
    GiveState(stream, &record);
  }

  void GiveState(Stream& stream, HeldRecord* record) {
    Shape& shape = ShapeOf(record->plan->shape);
    shape.in_epoch = !stream.bar.whole;
    ++shape.count;
    if (record->tier < best_) return;
    Begin(stream, record);
  }

  void EndBar(Stream& stream) {
    stream.bar.done_epoch =
        stream.bar.last >= stream.bar.total ? stream.bar.epoch : stream.bar.done_epoch;
    stream.bar.states.clear();
    stream.bar.last = 0;
    stream.bar.total = 0;
  }

  // A line of another kind behind several records of an epoch, at its end: what the epoch was on
  // the whole. Sure when the records go on with the next epoch.
  bool IsEpochSummary(Stream& stream, const HeldRecord& record) {
    const uint32_t family = record.plan->family;
    if (summaries_.contains(family)) return true;
    if (!stream.main_family) {
      stream.main_family = family;
      stream.in_epoch = 0;
    }
    const bool main = family == *stream.main_family;
    const double epoch = Known(record.epoch) ? record.epoch : stream.header_epoch;
    if (main) {
      const bool goes_on = Known(epoch) && Known(stream.main_epoch) && epoch > stream.main_epoch;
      if (stream.summary_family && goes_on) {
        summaries_.insert(*stream.summary_family);
        stream.has_summary = false;
      }
      if (epoch != stream.main_epoch) stream.in_epoch = 0;
      ++stream.in_epoch;
      stream.main_epoch = epoch;
      stream.summary_family.reset();
      if (stream.has_summary) {
        stream.has_summary = false;
        HeldRecord kept = std::move(stream.summary);
        GiveTrain(stream, &kept);
      }
      return false;
    }
    const bool at_end = stream.in_epoch >= 2 && Known(epoch) && epoch == stream.main_epoch &&
                        !(record.step < stream.last_step) && !stream.has_summary;
    if (at_end) {
      stream.summary_family = family;
      stream.summary = record;
      stream.has_summary = true;
      return true;
    }
    // Another kind of line goes on by itself: the format changed.
    if (stream.has_summary) {
      stream.has_summary = false;
      HeldRecord kept = std::move(stream.summary);
      GiveTrain(stream, &kept);
    }
    stream.main_family = family;
    stream.main_epoch = epoch;
    stream.in_epoch = 1;
    stream.summary_family.reset();
    return false;
  }

  void GiveTrain(Stream& stream, HeldRecord* record) {
    if (record->tier == Tier::kLoss) Promote(*record);
    Give(stream, record);
  }

  void Remember(Stream* stream) {
    stream->has_pending = true;
    if (streams_.size() > 1) pending_.emplace(stream->pending.place.line, stream);
  }
  void Forget(Stream* stream) {
    stream->has_pending = false;
    if (pending_.empty()) return;
    const auto range = pending_.equal_range(stream->pending.place.line);
    for (auto at = range.first; at != range.second; ++at) {
      if (at->second != stream) continue;
      pending_.erase(at);
      return;
    }
  }

  // Gives away what is complete, or keeps it until it is sure what it is.
  void Flush(Stream& stream) {
    if (!stream.has_pending) return;
    // In the order of the file, also over its sources.
    while (!pending_.empty() && pending_.begin()->first < stream.pending.place.line) {
      FlushOne(*pending_.begin()->second);
    }
    FlushOne(stream);
  }

  void FlushOne(Stream& stream) {
    Forget(&stream);
    HeldRecord& record = stream.pending;
    if (record.kind != RecordKind::kTrain) return Give(stream, &record);
    if (IsEpochSummary(stream, record)) return;
    // Counters alone, to which a loss was joined: as sure as the counters are.
    if (record.plan->tier <= Tier::kCounter && record.tier == Tier::kLoss &&
        record.plan->tier != Tier::kExtra && ShapeOf(record.plan->shape).count < 2) {
      record.tier = Tier::kCounter;
      if (best_ < Tier::kFigures) Hold(&record, Tier::kCounter);
      return;
    }
    if (record.tier < best_ && record.plan->family != best_family_) return;
    if (record.tier == Tier::kLoss) {
      Promote(record);
      Give(stream, &record);
    } else if (best_ == record.tier || (best_ > record.tier)) {
      Give(stream, &record);
    } else {
      Hold(&record, record.tier);
      if (held_.size() >= kMostHeld) GiveHeld(HeldTier());
    }
  }

  // The first records with a loss: what was held before is of the same kind, or none.
  void Promote(const HeldRecord& record) {
    if (best_ == Tier::kLoss) return;
    best_ = Tier::kLoss;
    best_family_ = record.plan->family;
    for (HeldRecord& held : held_) {
      if (held.plan->family == best_family_ && (held.tier >= Tier::kCounter || held.header_epoch))
        Give(StreamOf(held.place.stream), &held);
    }
    held_.clear();
  }

  void Hold(HeldRecord* record, Tier as) {
    if (held_.size() >= kMostHeld) return;
    held_.push_back(*record);
    held_.back().tier = as;
  }

  Tier HeldTier() const {
    Tier tier = Tier::kNone;
    for (const HeldRecord& held : held_) {
      if (Sure(held)) tier = std::max(tier, held.tier);
    }
    return tier;
  }

  // Whether a held record's shape behaves like progress.
  bool Sure(const HeldRecord& held) const {
    const auto found = shapes_.find(held.plan->shape);
    const uint64_t count = found == shapes_.end() ? 0 : found->second.count;
    const uint64_t rising = found == shapes_.end() ? 0 : found->second.rising;
    switch (held.tier) {
      case Tier::kFigures:
        return count >= 2;
      case Tier::kCounter:
        return count >= kSureCount && rising * 5 >= count * 3;
      default:
        return false;
    }
  }

  void GiveHeld(Tier tier) {
    if (tier == Tier::kNone) {
      held_.clear();
      return;
    }
    best_ = tier;
    std::vector<HeldRecord> held = std::move(held_);
    held_.clear();
    for (HeldRecord& record : held) {
      if (record.tier != tier) continue;
      best_family_ = record.plan->family;
      Give(StreamOf(record.place.stream), &record);
    }
  }

  // At the end of a file without any record: what was held may be what there is.
  void Decide() {
    const Tier tier = HeldTier();
    if (tier >= Tier::kFigures) return GiveHeld(tier);
    std::vector<HeldRecord> held = std::move(held_);
    held_.clear();
    // Epochs' summaries, when nothing finer was printed; then losses without any counter; then
    // counters alone.
    for (const Tier as : {Tier::kHeader, Tier::kExtra, Tier::kCounter}) {
      std::unordered_map<uint32_t, size_t> counts;
      for (const HeldRecord& record : held) counts[record.plan->shape] += record.tier == as;
      for (HeldRecord& record : held) {
        if (record.tier != as) continue;
        const bool enough = as == Tier::kCounter                 ? Sure(record)
                            : record.plan->tier == Tier::kHeader ? true
                                                                 : counts[record.plan->shape] >= 2;
        if (!enough) continue;
        record.kind = RecordKind::kTrain;
        Give(StreamOf(record.place.stream), &record);
      }
      if (records_ > 0) return;
    }
  }

  // Adds values that the record does not have.
  static void Join(HeldRecord* record, const HeldRecord& other) {
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
      if (record->HasRole(value.role) && value.role == Role::kLoss) value.role = Role::kLossPart;
      record->values.push_back(value);
    }
    if (!Known(record->epoch)) record->epoch = other.epoch;
  }

  void Give(Stream& stream, HeldRecord* record) {
    if (record->kind == RecordKind::kTrain) {
      CountStart(stream, *record);
      if (Known(record->total)) stream.train_total = record->total;
      stream.train_shape = record->plan->shape;
      ++records_;
    } else if (record->kind == RecordKind::kEval) {
      ++eval_records_;
    }
    const auto shape = shapes_.find(record->plan->shape);
    const std::optional<bool> in_epoch =
        shape == shapes_.end() ? std::nullopt : shape->second.in_epoch;
    GiveRecord(*record, stream.start, in_epoch, &values_, &sink_);
  }

  void CountStart(Stream& stream, const HeldRecord& record) {
    const bool epoch_back =
        Known(record.epoch) && Known(stream.last_epoch) && record.epoch < stream.last_epoch;
    const bool step_back =
        Known(record.step) && Known(stream.last_step) && record.step < stream.last_step;
    const bool epoch_on =
        Known(record.epoch) && Known(stream.last_epoch) && record.epoch > stream.last_epoch;
    const bool header = record.header_epoch.has_value() || record.plan->bar;
    if (epoch_back || (step_back && !epoch_on && !header)) ++stream.start;
    stream.last_epoch = record.epoch;
    stream.last_step = record.step;
  }

  LogSink& sink_;
  uint32_t file_;
  std::unordered_map<uint32_t, Stream> streams_;
  std::unordered_map<uint32_t, Shape> shapes_;
  std::multimap<uint64_t, Stream*> pending_;  // by line, where there are several streams
  std::vector<HeldRecord> held_;
  std::vector<LogValue> values_;
  HeldRecord scratch_;
  std::unordered_set<uint32_t> evals_;      // families of lines that are of evaluations
  std::unordered_set<uint32_t> summaries_;  // and of whole epochs
  Tier best_ = Tier::kNone;                 // of the records given
  uint32_t best_family_ = 0;
  uint32_t waiting_family_ = 0;
  double waiting_epoch_ = std::numeric_limits<double>::infinity();
  uint32_t header_family_ = 0;  // of records whose epoch stands above them
  bool step_level_ = false;     // records of steps were given: those of epochs are summaries
};

bool HeldRecord::HasRole(Role role) const {
  return std::any_of(values.begin(), values.end(),
                     [role](const Value& value) { return value.role == role; });
}

Progress::Progress(LogSink& sink, uint32_t file) : impl_(std::make_unique<Impl>(sink, file)) {}
Progress::~Progress() = default;
void Progress::Line(const ProgressLine& line) { impl_->Line(line); }
void Progress::Other(uint32_t stream, uint64_t line) { impl_->Other(stream, line); }
void Progress::Idle() { impl_->Idle(); }
void Progress::Finish() { impl_->Finish(); }
uint64_t Progress::records() const { return impl_->records_; }
uint64_t Progress::eval_records() const { return impl_->eval_records_; }

}  // namespace epochmeter::ingest::log
