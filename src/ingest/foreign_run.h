// SPDX-License-Identifier: Apache-2.0
// The run that another tool's file becomes: its devices, series, states and losses. The code of a
// format reads its file twice and calls the same functions both times; the first time nothing is
// written, and only facts and what the rows say about time are kept.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "ingest/foreign_cell.h"
#include "ingest/foreign_time.h"
#include "ingest/losses.h"
#include "ingest/series_cache.h"

namespace epochmeter::ingest {

// Whom a row is about. What a GPU is called may be unknown in part or whole.
struct Subject {
  enum class Kind : uint8_t { kGpu, kProcess, kHost } kind = Kind::kGpu;
  std::string uuid, bus_id;
  std::optional<int64_t> index;
  std::string instance;  // of MIG, "gi1/ci0"
  int64_t pid = 0;       // kProcess
  bool has_gpu() const { return !uuid.empty() || !bus_id.empty() || index.has_value(); }
  bool named() const { return kind != Kind::kGpu || has_gpu(); }
  std::string Key() const;
};

// One thread. Borrows the sink.
class ForeignRun {
 public:
  // `tool` is what the series' sources begin with, "nvidia-smi dmon".
  ForeignRun(std::string_view tool, const ImportOptions& options, model::Sink& sink);
  // From here on this is the second reading of what `first` has read.
  void Repeat(const ForeignRun& first, const std::string& path);

  void SetUnordered() { times_.SetUnordered(); }
  // Where all calls until the next SetPlace are in the file, "line 17".
  void SetPlace(std::string place) { place_ = std::move(place); }
  // The run's attributes; those told at any time of the first reading stand in the head.
  void Fact(std::string_view key, std::string_view value);

  // A row: Begin, its cells, EndRow. False when it can't be placed: it is counted then and has
  // no cells. Several rows may be of one instant.
  bool Begin(const RowTime& time, const Subject& subject);
  // The cell's own unit counts before `unit`, the header's, and that before the column's.
  void Cell(const ForeignColumn& column, std::string_view text, std::string_view unit = {});
  void Number(const ForeignColumn& column, double number, std::string_view unit = {});
  // An attribute of the row's subject; the first value of a key stays.
  void Describe(std::string_view key, std::string_view value);
  void EndRow();

  // The time of something that is no row; nothing when it can't be placed.
  std::optional<int64_t> Place(const RowTime& time);
  void Event(model::Event event);
  void Text(int64_t t_ns, uint8_t stream, std::string text);

  void BadLine(std::string_view why);
  // Columns without a counterpart here; each is told once.
  void Unknown(const std::string& column);
  void Lost(const LossReason& reason, uint64_t count, std::string_view detail);
  // Ends the first reading; what the file says about time is known then.
  void Settle(int64_t modified_wall_ns, double default_interval_s);
  // Ends the second one.
  void Finish(model::RunEnd end);

  // Reads the times of lines, in the zone of the process where they have none.
  LocalClock& clock() { return clock_; }
  const TimeSurvey& times() const { return times_; }
  uint64_t values() const { return values_; }
  bool repeating() const { return placer_.has_value(); }
  const ImportSummary& summary() const { return summary_; }
  int64_t last_ns() const { return placer_ ? placer_->last_ns() : 0; }

 private:
  struct Thing {
    model::EntityId entity = 0;
    model::EntityDef def;
  };

  // Neither the file nor its user says when it was.
  bool GuessesTime() const { return times_.assumed() && !options_.start_wall_ns; }
  void WriteHead(const std::string& path);
  bool IsNewTick(const Subject& subject);
  bool PlaceRow(const RowTime& time, bool new_tick);
  Thing& Find(const Subject& subject);
  int64_t IndexOf(const Subject& subject);
  model::SeriesId Series(const ForeignColumn& column);
  void Condition(const ForeignColumn& column, model::SeriesCondition condition,
                 std::string_view text);
  void EndTick();
  void Emit(model::Samples samples);

  std::string tool_;
  ImportOptions options_;
  model::Sink& sink_;
  model::Registry registry_;
  LossCounter losses_;
  SeriesCache cache_;
  LocalClock clock_;
  TimeSurvey times_;
  std::optional<TimePlacer> placer_;
  std::string place_;
  model::Labels facts_;
  std::vector<std::string> unknown_;
  uint64_t values_ = 0;
  ImportSummary summary_;

  std::map<std::string, Thing, std::less<>> things_;
  std::map<std::string, int64_t, std::less<>> indices_;  // of GPUs that have another name
  std::set<std::string, std::less<>> tick_;              // keys of the tick's rows so far
  std::map<model::SeriesId, model::SeriesCondition> conditions_;
  Thing* thing_ = nullptr;
  model::Samples row_;
  bool named_ = true;                    // of the row
  size_t position_ = 0;                  // of the next unnamed row in its tick
  std::vector<model::Samples> unnamed_;  // rows of a tick that name no device
};

}  // namespace epochmeter::ingest
