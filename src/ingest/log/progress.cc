// SPDX-License-Identifier: Apache-2.0
#include "ingest/log/progress.h"

#include <algorithm>
#include <utility>

#include "ingest/log/progress_impl.h"
#include "ingest/log/record_values.h"

namespace epochmeter::ingest::log {
namespace {

// Lines that belong to a record stand no farther behind it.
constexpr uint64_t kJoinLines = 10;

}  // namespace

void Progress::Impl::Line(const ProgressLine& line) {
  Stream& stream = StreamOf(line.place.stream);
  const LinePlan& plan = *line.plan;
  if (plan.begins_eval) stream.eval = true;
  if (plan.begins_train) stream.eval = false;
  if (plan.titles_train) stream.title_line = line.place.line;
  if (stream.has_pending && line.place.line > stream.pending.last_line + kJoinLines) Flush(stream);
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
  if (plan.bar) {
    ReadCounters(line, &scratch_);
  } else {
    ReadValues(line, &scratch_);
  }
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

void Progress::Impl::Other(uint32_t id, uint64_t line) {
  Stream& stream = StreamOf(id);
  if (stream.has_box && line > stream.box.last_line + 2) EndBox(stream);
  if (stream.has_pending && line > stream.pending.last_line + kJoinLines) Flush(stream);
}

void Progress::Impl::Idle() {
  for (auto& [id, stream] : streams_) {
    Flush(stream);
    GiveEvaluation(stream);
  }
  if (best_ < Tier::kFigures && !held_.empty() && HeldTier() == Tier::kFigures)
    GiveHeld(Tier::kFigures);
}

void Progress::Impl::Finish() {
  for (auto& [id, stream] : streams_) {
    EndBox(stream);
    Flush(stream);
    GiveOpenBar(stream);
    Flush(stream);
    EndBar(stream);
    GiveEvaluation(stream);
  }
  if (records_ == 0) Decide();
  held_.clear();
}

// Exchanges what is held, not the bytes around it.
void HeldRecord::Swap(HeldRecord& other) noexcept {
  std::swap(plan, other.plan);
  std::swap(kind, other.kind);
  std::swap(tier, other.tier);
  std::swap(place, other.place);
  std::swap(last_line, other.last_line);
  text.swap(other.text);
  std::swap(main_size, other.main_size);
  stamp.swap(other.stamp);
  values.swap(other.values);
  std::swap(header_epoch, other.header_epoch);
  std::swap(epoch, other.epoch);
  std::swap(step, other.step);
  std::swap(total, other.total);
}

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
