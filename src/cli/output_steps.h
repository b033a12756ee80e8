// SPDX-License-Identifier: Apache-2.0
// Records of the training's output as the events that a client would have sent: trainings, epochs,
// steps, scalars, what went wrong. All have the field "source" = "output"; steps have "line"
// instead.
//
// Times are those of arrival. A step's duration is the time between two arrivals, or the printed
// one where lines come in blocks (a buffered stdout); what neither tells is absent. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/step_counter.h"
#include "ingest/allocator.h"
#include "ingest/log/log_record.h"
#include "ingest/log/step_timer.h"
#include "model/registry.h"
#include "model/sink.h"

namespace epochmeter::cli {

class OutputSteps : public ingest::log::LogSink {
 public:
  // More are joined with the one after them.
  static constexpr double kStepsPerSecond = 200;
  static constexpr double kStepsAtOnce = 20'000;

  struct Options {
    // When a line came, CLOCK_MONOTONIC.
    std::function<int64_t(const ingest::log::LinePlace&)> arrival_of;
    bool resumed = false;  // a recorder before this one has told the training's begin
  };
  // Borrows both.
  OutputSteps(model::Registry& registry, model::Sink& sink, Options options);

  void OnRecord(const ingest::log::LogRecord& record) override;
  void OnEvent(const ingest::log::LogEvent& event) override;
  // Takes the allocator's memory as printed, too, from now on.
  void TakeMemory() { takes_memory_ = true; }
  // `well`: the training ended with exit code 0.
  void Finish(bool well, int64_t now_ns);

 private:
  struct Stretch {  // the steps that an event stands for
    int64_t steps = 0;
    std::optional<double> duration_s, data_s;
    bool known = true;  // both, so far as they are told at all
  };
  // Of one rank, or of all lines that name none.
  struct Training {
    std::optional<int32_t> rank;
    StepCounter counter;
    uint32_t stream = 0;  // whose records are its steps; others tell scalars
    bool has_loss = false, counts = false, fractions = false, begun = false;
    std::vector<std::string> told;                    // scalars of the last step
    std::optional<int64_t> open;                      // epoch
    bool evaluated = false;                           // since the last record
    int64_t begin_ns = 0, last_ns = 0, after_ns = 0;  // of the epoch; record; thing before
    uint64_t alone = 0, in_blocks = 0;                // records, by how their lines came
    std::optional<model::Event> pending;              // not written: too many came
    Stretch stretch;
    double tokens = kStepsAtOnce;
  };

  Training* TrainingOf(const ingest::log::LogRecord& record);
  static PrintedCounters CountersOf(const ingest::log::IndexedRecord& record, Training* training);
  static int64_t BeginOf(const ingest::log::IndexedRecord& record, std::optional<double> duration_s,
                         int64_t t_ns, const Training& training);
  void Train(const ingest::log::LogRecord& record, int64_t t_ns, Training* training);
  void Follow(const ingest::log::IndexedRecord& record, const StepCounter::Move& move, int64_t t_ns,
              Training* training);
  void Begin(const ingest::log::IndexedRecord& record, const Training& training);
  void WriteEpoch(model::EventKind kind, int64_t epoch, int64_t t_ns, const Training& training,
                  std::optional<int64_t> steps = {});
  void CloseEpoch(std::optional<int64_t> steps, Training* training);
  void AddStep(model::Event event, const Stretch& stretch, Training* training);
  void FlushStep(Training* training);
  void WriteScalars(const ingest::log::IndexedRecord& record, std::optional<int64_t> epoch,
                    int64_t t_ns, const Training& training);
  void WriteMemory(const ingest::log::IndexedRecord& record, int64_t t_ns);
  void Write(model::Event event);

  model::Sink& sink_;
  const Options options_;
  ingest::AllocatorSeries allocator_;
  ingest::log::StepTimer timer_;
  bool takes_memory_ = false;
  std::map<int32_t, Training> trainings_;                  // by rank
  std::map<std::string, uint64_t, std::less<>> failures_;  // by kind
};

}  // namespace epochmeter::cli
