// SPDX-License-Identifier: Apache-2.0
// A whole log, or the logs of one job, in bounded memory: how far the training got, how fast, what
// went wrong. One thread.
#pragma once

#include <array>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ingest/log/data_place.h"
#include "ingest/log/engine.h"
#include "ingest/log/event_ledger.h"
#include "ingest/log/figure_spread.h"
#include "ingest/log/log_point.h"
#include "ingest/log/root_cause.h"
#include "ingest/log/step_timer.h"
#include "model/log_report.h"

namespace epochmeter::ingest::log {

class LogRun;

class LogSummary : public LogSink {
 public:
  // `runs` get everything, too. Borrowed.
  explicit LogSummary(std::vector<LogRun*> runs = {}) : runs_(std::move(runs)) {}

  void OnRecord(const LogRecord& record) override;
  void OnEvent(const LogEvent& event) override;
  void OnStepMeaning(uint32_t file, uint32_t shape, bool in_epoch) override;

  // Ends it. `files` are those of the engine, in their order.
  model::LogReport Take(const EngineCounts& counts, std::vector<std::string> notes,
                        const std::vector<LogFile>& files);

 private:
  void AddTrain(const LogRecord& record);
  void AddTimed(const IndexedRecord& record, const StepTiming& timing);
  LogRecord OfEpoch(const LogRecord& record);
  void AddShare(const IndexedRecord& record, const StepTiming& timing);
  void AddProgress(const IndexedRecord& record, const StepTiming& timing);
  void KeepEnds(const LogRecord& record);
  void AddLoss(const IndexedRecord& record);
  void AddSpeed(const IndexedRecord& record, const StepTiming& timing);
  void AddMemory(const IndexedRecord& record);
  void Span(const LinePlace& place);
  bool IsFirstRank(const LinePlace& place);
  model::LogFileRow& FileRow(uint32_t file);
  model::LogRankRow& RankRow(std::optional<int32_t> rank);
  void TakeEnds();
  void TakeShares();
  void TakeSpeed();
  void SayUnknown();

  std::vector<LogRun*> runs_;
  model::LogReport report_;
  std::map<int32_t, model::LogRankRow> ranks_;
  EventLedger events_;
  RootCauseFinder cause_;
  KeptRecord first_, last_, last_eval_;
  // By time, where there are several files and each training record has one.
  KeptRecord earliest_, latest_;
  bool several_files_ = false, all_timed_ = true;
  std::optional<std::pair<uint32_t, int32_t>> first_rank_;  // stream, rank
  struct Timed {
    double seconds = 0;
    uint64_t steps = 0;
  };
  std::map<uint32_t, Timed> timed_files_;
  std::map<int32_t, Timed> timed_ranks_;
  std::pair<const uint32_t, Timed>* timed_file_ = nullptr;  // of the record before
  std::pair<const int32_t, Timed>* timed_rank_ = nullptr;
  std::set<double> whole_epochs_;
  double last_whole_epoch_ = std::numeric_limits<double>::quiet_NaN();
  std::vector<LogValue> values_;  // of a record that was changed
  ShapeTable shapes_;
  StepTimer timer_;
  DataPlaceJudge data_place_;
  FigureSpread step_time_, data_time_, estimated_, throughput_, loss_, memory_;
  FigureTrend step_trend_, loss_trend_, throughput_trend_, memory_trend_;
  double shared_step_s_ = 0, shared_data_s_ = 0;  // of records that print both
  std::array<uint64_t, kStepTimeFromCount> estimated_from_{};
  struct Starts {
    int64_t key = 0;  // its rank, else its file
    uint32_t highest = 0;
  };
  std::map<uint32_t, Starts> starts_;      // by stream
  model::LogRankRow* rank_row_ = nullptr;  // of the record before
  bool loss_is_part_ = false;
  bool sums_ = false;  // printed step times are the time since a start
};

}  // namespace epochmeter::ingest::log
