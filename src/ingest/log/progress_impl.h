// SPDX-License-Identifier: Apache-2.0
// How Progress works inside: shared by its own files only.
#pragma once

#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <unordered_map>
#include <unordered_set>
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
  double header_at_begin = std::numeric_limits<double>::quiet_NaN();
  double done_epoch = std::numeric_limits<double>::quiet_NaN();  // given already
  double done_header = std::numeric_limits<double>::quiet_NaN();
  double done_total = 0;
  std::vector<HeldRecord> states;       // until it is sure
  const LinePlan* open_plan = nullptr;  // of the last state, while the bar is not full
  LinePlace open_place;
  std::string open_text;
};

struct ProgressStream {
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
  ProgressBar bar;
};

class Progress::Impl {
 public:
  using Shape = ProgressShape;
  using Bar = ProgressBar;
  using Stream = ProgressStream;

  Impl(LogSink& sink, uint32_t file) : sink_(sink), file_(file) {}
  void Line(const ProgressLine& line);
  void Other(uint32_t id, uint64_t line);
  void Idle();
  void Finish();

  uint64_t records_ = 0, eval_records_ = 0;

 private:
  static constexpr size_t kMostHeld = 4096;
  static constexpr size_t kMostStreams = 4096;
  static constexpr size_t kMostShapes = 4096;

  Stream& StreamOf(uint32_t id) {
    if (last_stream_ == nullptr || last_stream_->first != id) {
      const uint32_t key = streams_.size() < kMostStreams ? id : 0;
      last_stream_ = &*streams_.try_emplace(key).first;
    }
    return last_stream_->second;
  }
  Shape& ShapeOf(uint32_t id) {
    if (last_shape_ == nullptr || last_shape_->first != id) {
      const uint32_t key = shapes_.size() < kMostShapes ? id : 0;
      last_shape_ = &*shapes_.try_emplace(key).first;
    }
    return last_shape_->second;
  }
  const Shape* FindShape(uint32_t id) const {
    if (last_shape_ != nullptr && last_shape_->first == id) return &last_shape_->second;
    const auto found = shapes_.find(id);
    return found == shapes_.end() ? nullptr : &found->second;
  }
  void Header(Stream& stream, const ProgressLine& line);
  void Extra(Stream& stream, const ProgressLine& line);
  void BoxRow(Stream& stream, const ProgressLine& line);
  void EndBox(Stream& stream);
  bool EndsEvalLine(Stream& stream);
  void Candidate(Stream& stream, const LinePlan& plan);
  static bool GoesOn(const Stream& stream, const HeldRecord& record);
  void Begin(Stream& stream, HeldRecord* record);
  static bool IsSaidTwice(const Stream& stream, const HeldRecord& record);
  bool MergesWith(const Stream& stream, const HeldRecord& record) const;
  static bool IsEvaluation(const Stream& stream, const LinePlan& plan, const HeldRecord& record);
  void Learn(const Stream& stream, Shape* shape, const LinePlan& plan, const HeldRecord& record);
  static bool GuessMeaning(const Stream& stream, const LinePlan& plan, const HeldRecord& record);
  void BarState(Stream& stream, const ProgressLine& line);
  void GiveState(Stream& stream, HeldRecord* record);
  void GiveOpenBar(Stream& stream);
  void EndBar(Stream& stream);
  bool IsEpochSummary(Stream& stream, const HeldRecord& record);
  void GiveTrain(Stream& stream, HeldRecord* record);
  void Remember(Stream* stream);
  void Forget(Stream* stream);
  void Flush(Stream& stream);
  void FlushOne(Stream& stream);
  void Promote(const HeldRecord& record);
  void Hold(HeldRecord* record, Tier as);
  Tier HeldTier() const;
  bool Sure(const HeldRecord& held) const;
  void GiveHeld(Tier tier);
  void Decide();
  static void KeepOneLoss(HeldRecord* record, HeldRecord::Value* value);
  static void Join(HeldRecord* record, const HeldRecord& other);
  void Give(Stream& stream, HeldRecord* record);
  void CountStart(Stream& stream, const HeldRecord& record);

  LogSink& sink_;
  uint32_t file_;
  std::unordered_map<uint32_t, Stream> streams_;
  std::unordered_map<uint32_t, Shape> shapes_;
  std::pair<const uint32_t, Stream>* last_stream_ = nullptr;  // most lines ask for the same
  std::pair<const uint32_t, Shape>* last_shape_ = nullptr;
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
  uint32_t step_family_ = 0;    // of the first of
  bool step_level_ = false;     // records of steps were given: those of epochs are summaries
};

}  // namespace epochmeter::ingest::log
