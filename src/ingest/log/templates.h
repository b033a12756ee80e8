// SPDX-License-Identifier: Apache-2.0
// Clusters of similar messages: how often each came and when. One thread; memory does not grow with
// the log.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ingest/log/log_line.h"
#include "ingest/log/message_mask.h"
#include "ingest/log/message_template.h"

namespace epochmeter::ingest::log {

struct LinePrefix;

struct TemplateLimits {
  uint32_t most_templates = 10000;
  // New skeletons cost a microsecond: of a log whose every line is another one, only this part of
  // the lines is looked at behind the first ones.
  uint32_t free_lines = 20000;
  double most_new_ratio = 0.005;
};

class TemplateTable {
 public:
  static constexpr uint32_t kNotClustered = 0;
  static constexpr size_t kMostExampleBytes = 240;

  explicit TemplateTable(const TemplateLimits& limits = {});

  // Every line, in the order of its file. `skeleton_hash` is equal for lines that differ only in
  // numbers. Returns the template's number, for Again; kNotClustered where the table is full.
  uint32_t Add(uint64_t skeleton_hash, std::string_view text, const LinePlace& place) {
    const uint32_t known = Find(skeleton_hash);
    if (known == kUnknown) return AddNew(skeleton_hash, text, place);
    Again(known, place);
    return known;
  }
  // One more of a template that Add returned.
  void Again(uint32_t number, const LinePlace& place);
  // A line that is no message: it only counts for where the others stand.
  void Pass(uint64_t line) {
    if (line >> shift_ >= TemplateCounts::kBuckets) Rescale(line);
    if (line > last_line_) last_line_ = line;
  }
  // A training record and its step, where it prints one; brackets anomalies later.
  void NoteStep(const LinePlace& place, std::optional<double> step) {
    AddMark(place, step.has_value(), step.value_or(0));
  }

  // By number; [kNotClustered] counts what found no place. Templates that are part of another one
  // have counts of their own until Fold adds them to it.
  const std::vector<MessageTemplate>& templates() const { return templates_; }
  const std::vector<TemplateCounts>& counts() const { return counts_; }
  std::vector<TemplateCounts> Fold() const;
  uint32_t shift() const { return shift_; }
  uint64_t last_line() const { return last_line_; }
  // The numbers of the most frequent ones, most first; not kNotClustered.
  std::vector<uint32_t> Top(size_t most) const;
  // The last step at or before a line of a file, the first one behind it.
  std::optional<double> StepBefore(uint32_t file, uint64_t line) const;
  std::optional<double> StepAfter(uint32_t file, uint64_t line) const;
  // The time of that record.
  std::optional<int64_t> WallNsBefore(uint32_t file, uint64_t line) const;
  // Whether training records stand there, with steps or without.
  bool TrainsBefore(uint32_t file, uint64_t line) const;
  bool TrainsAfter(uint32_t file, uint64_t line) const;

 private:
  static constexpr uint32_t kUnknown = 0xFFFF'FFFF;
  struct Slot {
    uint64_t key = 0;  // 0: free
    uint32_t number = 0;
  };
  struct StepMark {
    uint64_t line = 0;
    std::optional<double> step;
    std::optional<int64_t> wall_ns;
  };
  void AddMark(const LinePlace& place, bool known, double step);
  struct Marks {
    const StepMark* before = nullptr;  // at the line or before it
    const StepMark* after = nullptr;
  };
  // Templates that begin with the same words.
  struct Family {
    std::vector<uint32_t> members;
    bool open = false;  // the first one takes in whatever begins like it
  };

  uint32_t Find(uint64_t key) const;
  void Remember(uint64_t key, uint32_t number);
  uint32_t AddNew(uint64_t skeleton_hash, std::string_view text, const LinePlace& place);
  uint32_t NumberOf(std::string_view text, const LinePlace& place);
  uint32_t FindSimilar(const std::vector<uint32_t>& group) const;
  void Generalise(uint32_t number);
  uint32_t JoinFamily(Alarm alarm);
  uint64_t FamilyKey(Alarm alarm) const;
  uint32_t MakeTemplate(std::string_view message, const LinePrefix& prefix, Alarm alarm,
                        const LinePlace& place);
  void Rescale(uint64_t line);
  Marks MarksAt(uint32_t file, uint64_t line) const;

  TemplateLimits limits_;
  std::vector<MessageTemplate> templates_;
  std::vector<TemplateCounts> counts_;  // the same order; apart, as every line writes here
  std::vector<Slot> slots_;             // open addressing, a power of two
  size_t used_slots_ = 0;
  std::unordered_map<uint64_t, std::vector<uint32_t>> groups_;  // may be similar to each other
  std::unordered_map<uint64_t, Family> families_;
  std::unordered_map<uint32_t, std::vector<StepMark>> steps_;  // by file
  MaskedMessage masked_;
  uint32_t shift_ = 0;
  uint32_t quiet_ = 0;  // templates that alarm nobody
  uint64_t lines_ = 0, new_lines_ = 0, last_line_ = 0;
};

inline uint32_t TemplateTable::Find(uint64_t key) const {
  key |= 1;
  const size_t mask = slots_.size() - 1;
  for (size_t at = (key * 0x9E37'79B9'7F4A'7C15U) >> 20 & mask;; at = (at + 1) & mask) {
    if (slots_[at].key == key) return slots_[at].number;
    if (slots_[at].key == 0) return kUnknown;
  }
}

inline void TemplateTable::Again(uint32_t number, const LinePlace& place) {
  constexpr uint64_t kMostPauseLines = 32;
  const uint64_t line = place.line;
  if (line >> shift_ >= TemplateCounts::kBuckets) Rescale(line);
  TemplateCounts& counts = counts_[number];
  if (line - counts.last_line > kMostPauseLines || place.file != counts.run.file) {
    if (counts.run.count > counts.densest.count) counts.densest = counts.run;
    counts.run = {.first_line = line, .file = place.file};
  }
  ++lines_;
  ++counts.count;
  ++counts.run.count;
  ++counts.buckets[line >> shift_];
  counts.last_line = counts.run.last_line = line;
  if (line > last_line_) last_line_ = line;
}

}  // namespace epochmeter::ingest::log
