// SPDX-License-Identifier: Apache-2.0
// A training log as the records of a run: steps with their losses and times, scalars of
// evaluations, what went wrong, the lines. One thread.
//
// Times are those of the lines. Where lines have none, the run's clock is the sum of the printed
// step times and ends when the file was last written; where neither is known, everything stands at
// one instant and no step has a duration. Either is told as a Loss.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ingest/allocator.h"
#include "ingest/log/data_place.h"
#include "ingest/log/engine.h"
#include "ingest/log/log_point.h"
#include "ingest/log/step_tables.h"
#include "ingest/log/step_timer.h"
#include "model/registry.h"
#include "model/run_builder.h"

namespace epochmeter::ingest::log {

enum class LogClock : uint8_t { kStamps, kDurations, kNone };

class LogRun {
 public:
  struct Options {
    std::string name;                    // of the log
    std::optional<int64_t> modified_ns;  // of the file, UTC
    // Steps that are kept; beyond, neighbours are joined (durations added up, the later values
    // kept). 0: all.
    size_t most_steps = 0;
    // Of what `sink` is, so that steps that are there already can be joined; with most_steps only.
    model::RunBuilder* tables = nullptr;
    bool texts = true;  // the lines of records and events, too
  };
  // Borrows the sink.
  LogRun(model::Sink& sink, Options options);

  // In the order of the log; `timing` is of this record.
  void Train(const IndexedRecord& record, const StepTiming& timing);
  void Other(const LogRecord& record);  // an evaluation; other kinds are left out
  void Event(const LogEvent& event);
  // Ends the run: `reason` as in model::RunEnd.
  void Finish(const EngineCounts& counts, model::RunEnd end);

  LogClock clock() const { return clock_; }
  uint64_t joined_steps() const { return stride_; }  // of one kept step; 1: all are kept

 private:
  using Process = std::pair<int32_t, uint32_t>;  // rank, or -1; stream where there is no rank
  // What was waiting for the decisions below, in order.
  struct Held {
    KeptRecord record;
    StepTiming timing;
    std::optional<LogEvent> event;
  };
  // Of a process, since its last step that was written.
  struct Pending {
    uint64_t records = 0;
    double steps = 0, duration_s = 0, data_s = 0;
    bool steps_known = true, duration_known = true, data_known = true;
    bool counted = true;  // lines say how far they count
    std::optional<double> epoch_s;
    bool fractions = false;  // of its epochs
    bool evaluated = false;  // other things took time, too
    std::optional<int64_t> last_wall_ns;
    int64_t t_ns = 0;
    bool begun = false;
    std::optional<double> first_count;  // of its first start
    bool resumes = false;               // this start goes on behind that
    int64_t pid = 0;  // tells processes without a rank apart; 0: the first of them
    model::StepTable* table = nullptr;  // of its last step, with `tables`
    std::optional<int32_t> table_rank;
    StepAppender appender;
  };

  void Hold(const LogRecord* record, const StepTiming* timing, const LogEvent* event);
  void Release();
  void ForgetSums();
  void CountFirst();
  void Decide();
  void WriteHead();
  void DoTrain(const IndexedRecord& record, const StepTiming& timing);
  void DoOther(const LogRecord& record);
  void DoEvent(const LogEvent& event);
  Pending& ProcessAt(const LinePlace& place);
  int64_t TimeOf(const LinePlace& place, Pending& process);
  void Add(const StepTiming& timing, Pending* process);
  void Begin(const IndexedRecord& record, double duration_s, Pending* process);
  void WriteStep(const IndexedRecord& record, const StepTiming& timing, Pending* process);
  void AddMemory(const IndexedRecord& record, int64_t t_ns, int64_t pid);
  void AddText(int64_t t_ns, std::string_view text);
  void JoinSteps();
  bool HasMostSteps();
  model::StepTable& TableOf(const Process& key, const Pending& process) const;
  model::StepTable* RowsOf(const LinePlace& place, Pending* process) const;
  bool IsLeftOut(const std::string& kind);
  void Tell(std::string kind, uint64_t count, std::string detail, std::string help,
            model::LossSeverity severity);

  model::Sink& sink_;
  Options options_;
  model::Registry registry_;
  AllocatorSeries allocator_;
  DataPlaceJudge data_judge_;
  std::deque<Held> held_;
  bool holding_ = true;
  uint64_t held_records_ = 0, held_stamped_ = 0, held_durations_ = 0;
  std::optional<int64_t> first_wall_ns_;
  double held_seconds_ = 0;

  LogClock clock_ = LogClock::kNone;
  DataPlace data_place_ = DataPlace::kUnknown;
  int64_t origin_wall_ns_ = 0;
  std::map<Process, Pending> processes_;
  std::pair<const Process, Pending>* last_process_ = nullptr;  // of the line before
  int64_t last_ns_ = 0;
  uint64_t stride_ = 1, written_ = 0, unplaced_ = 0;
  bool all_scalars_ = true;
  uint64_t evaluations_ = 0, evaluation_stride_ = 1;
  std::map<std::string, uint64_t> events_;  // by kind, where not all are kept
  uint64_t texts_ = 0, text_stride_ = 1, text_lines_ = 0;
  uint64_t unranked_ = 0;
};

}  // namespace epochmeter::ingest::log
