// SPDX-License-Identifier: Apache-2.0
// Reads small logs through the whole engine, for tests of the records that it gives.
#pragma once

#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "ingest/log/engine.h"

namespace epochmeter::ingest::log {

// Each record as it comes: "T3 e1 s20/80 i5/10 l0.5", with the line, epoch, step, step in the epoch
// and loss; also "h2" for a header's epoch, "r1" for the rank, "+1" for the start, "-5" for the
// last line where these are not the ordinary ones. T: training, E: evaluation, S, I.
class RecordsOf : public LogSink {
 public:
  explicit RecordsOf(std::string_view text) : RecordsOf() {
    Feed(text);
    engine_.Finish();
  }
  RecordsOf() {
    engine_.Open({.name = "train.log", .modified_ns = 0, .zone_offset_s = 0, .rank = {}});
  }

  void Feed(std::string_view text) { engine_.Feed(0, text); }
  LogEngine& engine() { return engine_; }

  void OnRecord(const LogRecord& record) override {
    std::ostringstream text;
    text << "TESI"[static_cast<size_t>(record.kind)] << record.place.line;
    if (record.last_line != record.place.line) text << "-" << record.last_line;
    if (record.place.rank) text << " r" << *record.place.rank;
    if (record.start != 0) text << " +" << record.start;
    if (record.header_epoch) text << " h" << *record.header_epoch;
    Add(text, record, " e", Role::kEpoch);
    Add(text, record, " s", Role::kStep);
    Add(text, record, "/", Role::kTotalSteps);
    Add(text, record, " i", Role::kStepInEpoch);
    Add(text, record, "/", Role::kStepsPerEpoch);
    Add(text, record, " l", Role::kLoss);
    Add(text, record, " lr", Role::kLearningRate);
    all.push_back(text.str());
    (record.kind == RecordKind::kTrain ? trained : others).push_back(text.str());
  }
  void OnEvent(const LogEvent&) override {}
  void OnStepMeaning(uint32_t, uint32_t, bool in_epoch) override {
    all.push_back(in_epoch ? "steps are of the epoch" : "steps are of the run");
  }

  using Texts = std::vector<std::string>;
  Texts all, trained, others;

 private:
  static void Add(std::ostringstream& text, const LogRecord& record, const char* name, Role role) {
    if (const auto number = record.Number(role)) text << name << *number;
  }

  LogEngine engine_{*this};
};

}  // namespace epochmeter::ingest::log
