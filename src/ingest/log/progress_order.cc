// SPDX-License-Identifier: Apache-2.0
// Records on their way out, in the order of the file.
#include <algorithm>
#include <utility>

#include "ingest/log/progress_impl.h"
#include "ingest/log/record_values.h"

namespace epochmeter::ingest::log {

// A training record begins: the one before is complete.
void Progress::Impl::Begin(Stream& stream, HeldRecord* record) {
  Flush(stream);
  GiveEvaluation(stream);
  if (Known(stream.header_epoch) && !record->header_epoch && !Known(record->epoch)) {
    record->header_epoch = stream.header_epoch;
  }
  stream.eval = false;
  const bool titled = stream.title_line > 0 && record->place.line == stream.title_line + 1;
  stream.names_phases |= titled;
  stream.last_seen_epoch = Known(record->epoch) ? record->epoch : stream.header_epoch;
  stream.last_seen_step = record->step;
  if (record->tier == Tier::kLoss) {
    stream.train_shape = record->plan->shape;
    if (Known(record->total)) stream.train_total = record->total;
  }
  stream.pending.Swap(*record);
  Remember(&stream);
}

// A line of another kind behind several records of an epoch, at its end: what
// the epoch was on the whole. Sure when the records go on with the next epoch.
bool Progress::Impl::IsEpochSummary(Stream& stream, const HeldRecord& record) {
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

void Progress::Impl::GiveTrain(Stream& stream, HeldRecord* record) {
  if (record->tier == Tier::kLoss) Promote(*record);
  Give(stream, record);
}

void Progress::Impl::Remember(Stream* stream) {
  stream->has_pending = true;
  if (streams_.size() <= 1) return;
  if (spare_.empty()) {
    pending_.emplace(stream->pending.place.line, stream);
    return;
  }
  spare_.key() = stream->pending.place.line;
  spare_.mapped() = stream;
  pending_.insert(std::move(spare_));
}

// The first one's record was pending while it was the only stream.
void Progress::Impl::RememberAll() {
  for (auto& [id, stream] : streams_) {
    if (stream.has_pending) pending_.emplace(stream.pending.place.line, &stream);
  }
}

void Progress::Impl::Forget(Stream* stream) {
  stream->has_pending = false;
  if (pending_.empty()) return;
  const auto range = pending_.equal_range(stream->pending.place.line);
  for (auto at = range.first; at != range.second; ++at) {
    if (at->second != stream) continue;
    spare_ = pending_.extract(at);
    return;
  }
}

// Gives away what is complete, or keeps it until it is sure what it is.
void Progress::Impl::Flush(Stream& stream) {
  if (!stream.has_pending) return;
  // In the order of the file, also over its sources.
  while (!pending_.empty() && pending_.begin()->first < stream.pending.place.line) {
    FlushOne(*pending_.begin()->second);
  }
  FlushOne(stream);
}

void Progress::Impl::FlushOne(Stream& stream) {
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

void Progress::Impl::Give(Stream& stream, HeldRecord* record) {
  if (record->kind == RecordKind::kTrain) {
    CountStart(stream, *record);
    if (Known(record->total)) stream.train_total = record->total;
    stream.train_shape = record->plan->shape;
    ++records_;
  } else if (record->kind == RecordKind::kEval) {
    ++eval_records_;
  }
  const Shape* shape = FindShape(record->plan->shape);
  const bool both = record->plan->step >= 0 && record->plan->step_in_epoch >= 0;
  const std::optional<bool> in_epoch = shape == nullptr || both ? std::nullopt : shape->in_epoch;
  GiveRecord(*record, stream.start, in_epoch, &values_, &sink_);
}

void Progress::Impl::CountStart(Stream& stream, const HeldRecord& record) {
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

}  // namespace epochmeter::ingest::log
