// SPDX-License-Identifier: Apache-2.0
// Builds a Run from records: the last stage of reading, importing and watching alike.
#pragma once

#include <memory>

#include "model/run.h"
#include "model/sink.h"

namespace epochmeter::model {

// Keeps all values in memory unless Finish gets another store. Series values that go back in time
// are kept in order of time (stable), as a resumed recorder or an importer may overlap. Records
// that name undefined ids or have impossible times (limits.h) are counted as a Loss, never an
// error. One thread.
class RunBuilder : public Sink {
 public:
  RunBuilder();
  ~RunBuilder() override;
  void Write(const Record& record) override;

  // The steps of a process, to append many at once: every column must stay as long as t_ns. Widen
  // takes their times into the span.
  StepTable& StepsOf(const ProcessKey& process) { return run_.steps[process]; }
  void Widen(int64_t t_ns);

  // Ends building and gives the run away. With `store`, samples written here are dropped and the
  // store answers for them.
  Run Finish(std::unique_ptr<SeriesStore> store = nullptr);

 private:
  class MemoryStore;
  void Add(const RunInfo& info);
  void Add(const Anchor& anchor);
  void Add(const EntityDef& entity);
  void Add(const SeriesDef& series);
  void Add(const Samples& samples);
  void Add(const SeriesState& state);
  void Add(const Event& event);
  void Add(const LogText& text);
  void Add(const Loss& loss);
  void Add(const RunEnd& end);

  Run run_;
  std::unique_ptr<MemoryStore> memory_;
  bool span_known_ = false;
  uint64_t unknown_ids_ = 0;
  uint64_t impossible_times_ = 0;
};

}  // namespace epochmeter::model
