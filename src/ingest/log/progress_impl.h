// SPDX-License-Identifier: Apache-2.0
// How Progress works inside: shared by its own files only.
#pragma once

#include <limits>
#include <map>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ingest/log/progress.h"
#include "ingest/log/progress_stream.h"

namespace epochmeter::ingest::log {

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
      if (streams_.size() == 2 && pending_.empty()) RememberAll();
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
  void Evaluation(Stream& stream);
  void GiveEvaluation(Stream& stream);
  bool EndsEvalLine(Stream& stream);
  void Candidate(Stream& stream, const LinePlan& plan);
  void Merge(Stream& stream, const LinePlan& plan);
  void JudgeKind(Stream& stream, const LinePlan& plan, HeldRecord* judged);
  static bool RepeatsEpoch(const Stream& stream, const HeldRecord& record);
  static bool GoesOn(const Stream& stream, const HeldRecord& record);
  void Begin(Stream& stream, HeldRecord* record);
  static bool IsSaidTwice(const Stream& stream, const HeldRecord& record);
  bool MergesWith(const Stream& stream, const HeldRecord& record) const;
  static bool IsEvaluation(const Stream& stream, const LinePlan& plan, const HeldRecord& record);
  void Learn(const Stream& stream, Shape* shape, const LinePlan& plan, const HeldRecord& record);
  static bool GuessMeaning(const Stream& stream, const LinePlan& plan, const HeldRecord& record);
  void BarState(Stream& stream, const ProgressLine& line);
  void KeepBarState(Stream& stream, const ProgressLine& line, bool own_epoch, bool same);
  void GiveState(Stream& stream, HeldRecord* record);
  void GiveOpenBar(Stream& stream);
  void EndBar(Stream& stream);
  bool IsEpochSummary(Stream& stream, const HeldRecord& record);
  void GiveTrain(Stream& stream, HeldRecord* record);
  void Remember(Stream* stream);
  void RememberAll();
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
  std::multimap<uint64_t, Stream*> pending_;           // by line, where there are several streams
  std::multimap<uint64_t, Stream*>::node_type spare_;  // one that was taken out, for the next
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
