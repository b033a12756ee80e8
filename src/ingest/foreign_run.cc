// SPDX-License-Identifier: Apache-2.0
#include "ingest/foreign_run.h"

#include <algorithm>
#include <filesystem>

#include "base/crc32c.h"
#include "base/strings.h"

namespace epochmeter::ingest {
namespace {

using model::LossSeverity;
using model::SeriesCondition;

constexpr LossReason kBadLine{
    "import.bad_line", LossSeverity::kDataLoss, "lines",
    "These lines are damaged, torn or not of this format; everything else was imported."};
constexpr LossReason kBadValue{
    "import.bad_value", LossSeverity::kDataLoss, "cells",
    "These cells hold no number in a unit that fits their column; the rest of the line was kept."};
constexpr LossReason kNoTime{
    "import.no_time", LossSeverity::kDataLoss, "lines",
    "These lines have no time that can be, in a file whose lines have one; they were left out."};
constexpr LossReason kTimeBack{
    "import.time_back", LossSeverity::kInfo, "times",
    "The file's clock went back, or several recordings stand in one file: what follows was put "
    "behind what came before. Import one recording at a time."};
constexpr LossReason kUnknownColumn{
    "import.unknown_column", LossSeverity::kInfo, "columns",
    "These columns have no counterpart in a run file; everything else was imported."};
constexpr LossReason kAssumedTime{
    "import.assumed_time", LossSeverity::kInfo, "lines",
    "The lines have no time, or no date: the last one was taken as written when the file was. "
    "Give --start and --interval, or record with times."};
constexpr LossReason kUnnamedGpu{
    "import.unnamed_gpu", LossSeverity::kInfo, "lines",
    "The lines do not say which GPU they are of: GPUs were numbered by their order in a sample. "
    "Record with the column index or uuid."};
constexpr LossReason kUnnamedRows{
    "import.unnamed_rows", LossSeverity::kDataLoss, "lines",
    "Samples with more or fewer lines than usual: without a name no GPU can be told from the "
    "next; they were left out."};

constexpr int64_t kMostIndex = 4095;
constexpr size_t kMostUnknown = 512;
constexpr size_t kMostThings = 65536;

std::string RunId(std::string_view tool, const std::string& name, int64_t wall_ns) {
  const std::string unique = std::string(tool) + "/" + name + "/" + std::to_string(wall_ns);
  char tail[8];
  snprintf(tail, sizeof tail, "%06x", base::Crc32c(0, unique) & 0xFFFFFFU);
  return base::FormatUtcCompact(wall_ns) + "-" + name + "-" + tail;
}

}  // namespace

std::string Subject::Key() const {
  if (kind == Kind::kHost) return "host";
  if (kind == Kind::kProcess && !has_gpu()) return "pid:" + std::to_string(pid);
  std::string key = !uuid.empty() ? uuid : bus_id;
  if (key.empty()) key = "gpu:" + std::to_string(index.value_or(0));
  if (!instance.empty()) key += "/" + instance;
  if (kind == Kind::kProcess) key += "/" + std::to_string(pid);
  return key;
}

ForeignRun::ForeignRun(std::string_view tool, const ImportOptions& options, model::Sink& sink)
    : tool_(tool),
      options_(options),
      sink_(sink),
      registry_(sink),
      losses_(sink),
      cache_(registry_, losses_) {
  losses_.Hold();  // one record a reason, at the end
}

void ForeignRun::Repeat(const ForeignRun& first, const std::string& path) {
  times_ = first.times_;
  facts_ = first.facts_;
  placer_.emplace(times_);
  WriteHead(path);
}

void ForeignRun::WriteHead(const std::string& path) {
  const std::string name = std::filesystem::path(path).filename().string();
  const int64_t wall_ns = times_.begin_wall_ns();
  model::RunInfo info;
  info.run_id = RunId(tool_, name, wall_ns);
  // Other tools do not tell their machine's other clocks: time counts from the first row.
  info.anchor = {.mono_ns = 0, .boot_ns = 0, .wall_ns = wall_ns};
  info.attributes = {{"source", tool_}, {"name", name}};
  info.attributes.insert(info.attributes.end(), facts_.begin(), facts_.end());
  if (times_.assumed()) info.attributes.emplace_back("times", "assumed");
  sink_.Write(std::move(info));
  if (GuessesTime()) Lost(kAssumedTime, times_.rows(), name);
}

void ForeignRun::Fact(std::string_view key, std::string_view value) {
  if (value.empty() || repeating()) return;
  const auto known = std::find_if(facts_.begin(), facts_.end(),
                                  [key](const auto& fact) { return fact.first == key; });
  if (known == facts_.end()) facts_.emplace_back(key, base::ToValidUtf8(value));
}

// A GPU's index, else its place in the order in which the file first names GPUs.
int64_t ForeignRun::IndexOf(const Subject& subject) {
  Subject gpu = subject;
  gpu.kind = Subject::Kind::kGpu;
  gpu.instance.clear();
  const int64_t next = static_cast<int64_t>(indices_.size());
  const int64_t index = subject.index.value_or(next);
  return indices_.try_emplace(gpu.Key(), index).first->second;
}

ForeignRun::Thing& ForeignRun::Find(const Subject& subject) {
  const auto [place, fresh] = things_.try_emplace(subject.Key());
  Thing& thing = place->second;
  if (!fresh) return thing;
  const auto text = [](std::string_view of_file) { return base::ToValidUtf8(of_file); };
  model::EntityDef& def = thing.def;
  def.name = text(place->first);
  def.scope = model::Scope::kHost;
  if (subject.kind == Subject::Kind::kProcess) {
    def.scope = model::Scope::kProcess;
    def.labels = {{"pid", std::to_string(subject.pid)}};
  }
  if (subject.has_gpu()) def.labels.emplace_back("gpu", std::to_string(IndexOf(subject)));
  if (subject.kind == Subject::Kind::kGpu) {
    def.scope = subject.instance.empty() ? model::Scope::kGpu : model::Scope::kMig;
    if (!subject.uuid.empty()) def.labels.emplace_back("uuid", text(subject.uuid));
    if (!subject.instance.empty()) def.labels.emplace_back("instance", text(subject.instance));
    if (!subject.bus_id.empty()) def.attributes.emplace_back("pci_bus_id", text(subject.bus_id));
  }
  thing.entity = registry_.AddEntity(def);
  return thing;
}

bool ForeignRun::IsNewTick(const Subject& subject) {
  if (!subject.named()) {
    const size_t rows = static_cast<size_t>(std::max(options_.gpus, 1));
    return times_.rows() % rows == 0;
  }
  std::string key = subject.Key();
  const bool again = tick_.contains(key);
  if (again) tick_.clear();
  tick_.insert(std::move(key));
  return again;
}

bool ForeignRun::PlaceRow(const RowTime& time, bool new_tick) {
  const auto t_ns = placer_->Place(time, new_tick);
  if (!t_ns) {
    ++summary_.bad_lines;
    Lost(kNoTime, 1, place_);
    return false;
  }
  if (placer_->moved_ns() > 0) {
    Lost(kTimeBack, 1,
         place_ + ", by " + base::FormatDuration(base::SecondsFromNs(placer_->moved_ns())));
  }
  row_.t_ns = *t_ns;
  row_.values.clear();
  return true;
}

bool ForeignRun::Begin(const RowTime& time, const Subject& subject) {
  named_ = subject.named();
  if (subject.index && (*subject.index < 0 || *subject.index > kMostIndex)) {
    BadLine("a GPU index that can't be");
    return false;
  }
  if (!repeating()) {
    times_.See(time, IsNewTick(subject));
    return true;
  }
  if (things_.size() >= kMostThings && !things_.contains(subject.Key())) {
    BadLine("more devices and processes than can be");
    return false;
  }
  const bool by_count = !times_.has_times() || times_.tick_gap_ns() == 0;
  const bool full = times_.rows_a_tick() == 1 || unnamed_.size() >= times_.rows_a_tick();
  if (!PlaceRow(time, named_ ? IsNewTick(subject) : full)) return false;
  if (named_) {
    thing_ = &Find(subject);
    return true;
  }
  if (by_count ? full : placer_->after_gap()) EndTick();
  Subject numbered = subject;
  numbered.index = static_cast<int64_t>(std::min(position_++, times_.rows_a_tick() - 1));
  thing_ = &Find(numbered);
  return true;
}

model::SeriesId ForeignRun::Series(const ForeignColumn& column) {
  std::string source = tool_ + " " + std::string(column.name);
  if (!column.meaning.empty()) source.append(": ").append(column.meaning);
  return cache_.Series(thing_->entity, *column.metric, times_.period_ns(), source);
}

// Says once that a number is missing and why, and once that it is there again.
void ForeignRun::Condition(const ForeignColumn& column, SeriesCondition condition,
                           std::string_view text) {
  const model::SeriesId id = Series(column);
  SeriesCondition& known = conditions_[id];
  if (known == condition) return;
  known = condition;
  std::string detail;
  if (condition != SeriesCondition::kOk) {
    detail = tool_ + " " + std::string(column.name) + ": " + base::ToValidUtf8(text);
  }
  sink_.Write(model::SeriesState{
      .t_ns = row_.t_ns, .series = id, .condition = condition, .detail = std::move(detail)});
}

void ForeignRun::Cell(const ForeignColumn& column, std::string_view text, std::string_view unit) {
  const bool state = column.metric->kind == model::MetricKind::kState;
  const CellReading cell = state ? ReadStateCell(text) : ReadCell(text);
  switch (cell.kind) {
    case CellKind::kNone:
      break;
    case CellKind::kAbsent:
      if (!repeating()) break;
      Condition(column, base::Trim(text) == "-" ? column.dash : cell.condition, base::Trim(text));
      break;
    case CellKind::kBad:
      Lost(kBadValue, 1, place_ + ", " + std::string(column.name));
      break;
    case CellKind::kNumber:
      Number(column, cell.number, cell.unit.empty() ? unit : cell.unit);
      break;
  }
}

void ForeignRun::Number(const ForeignColumn& column, double number, std::string_view unit) {
  const auto value = InUnitOf(*column.metric, number, unit.empty() ? column.unit : unit);
  if (!value) {
    Lost(kBadValue, 1, place_ + ", " + std::string(column.name));
    return;
  }
  ++values_;
  if (!repeating()) return;
  Series(column);  // with its source, before the cache makes it without
  const ValueLimits limits = LimitsOf(*column.metric);
  const bool taken = cache_.Put(thing_->entity, *column.metric, times_.period_ns(), *value,
                                limits.least, limits.most, row_);
  if (taken) Condition(column, SeriesCondition::kOk, {});
}

void ForeignRun::Describe(std::string_view key, std::string_view value) {
  value = base::Trim(value);
  if (!repeating() || value.empty() || ReadCell(value).kind == CellKind::kAbsent) return;
  model::Labels& about = thing_->def.attributes;
  const auto known = std::find_if(about.begin(), about.end(),
                                  [key](const auto& entry) { return entry.first == key; });
  if (known != about.end()) return;
  about.emplace_back(key, base::ToValidUtf8(value));
  registry_.AddEntity(thing_->def);
}

void ForeignRun::Emit(model::Samples samples) {
  if (samples.values.empty()) return;
  ++summary_.samples;
  sink_.Write(std::move(samples));
}

void ForeignRun::EndRow() {
  if (!repeating()) return;
  if (named_ || times_.rows_a_tick() == 1) {
    if (!named_) Lost(kUnnamedGpu, 1, place_);
    Emit(std::move(row_));
    position_ = 0;
  } else {
    unnamed_.push_back(std::move(row_));
  }
  row_ = {};
}

void ForeignRun::EndTick() {
  if (unnamed_.empty()) return;
  if (unnamed_.size() == times_.rows_a_tick()) {
    Lost(kUnnamedGpu, unnamed_.size(), place_);
    for (model::Samples& row : unnamed_) Emit(std::move(row));
  } else {
    Lost(kUnnamedRows, unnamed_.size(), "before " + place_);
  }
  unnamed_.clear();
  position_ = 0;
}

std::optional<int64_t> ForeignRun::Place(const RowTime& time) {
  if (!repeating()) {
    times_.See(time, false);
    return 0;
  }
  if (!PlaceRow(time, false)) return std::nullopt;
  return row_.t_ns;
}

void ForeignRun::Event(model::Event event) {
  ++values_;
  if (!repeating()) return;
  ++summary_.events;
  sink_.Write(std::move(event));
}

void ForeignRun::Text(int64_t t_ns, uint8_t stream, std::string text) {
  ++values_;
  if (!repeating()) return;
  ++summary_.log_lines;
  sink_.Write(model::LogText{.t_ns = t_ns, .stream = stream, .text = std::move(text)});
}

void ForeignRun::BadLine(std::string_view why) {
  if (!repeating()) return;
  ++summary_.bad_lines;
  Lost(kBadLine, 1, place_ + ": " + std::string(why));
}

void ForeignRun::Unknown(const std::string& column) {
  if (!repeating() || column.empty() || unknown_.size() >= kMostUnknown) return;
  if (std::find(unknown_.begin(), unknown_.end(), column) != unknown_.end()) return;
  unknown_.push_back(base::ToValidUtf8(column));
}

void ForeignRun::Lost(const LossReason& reason, uint64_t count, std::string_view detail) {
  if (repeating()) losses_.Add(reason, count, row_.t_ns, base::ToValidUtf8(detail));
}

void ForeignRun::Settle(int64_t modified_wall_ns, double default_interval_s) {
  times_.Settle(options_, modified_wall_ns, default_interval_s);
  if (clock_.used() || times_.assumed()) Fact("time_zone", LocalZoneName());
}

void ForeignRun::Finish(model::RunEnd end) {
  EndTick();
  if (!unknown_.empty()) {
    Lost(kUnknownColumn, unknown_.size(), base::Join(unknown_, ", "));
  }
  const int64_t last_ns = placer_->last_ns();
  losses_.Release();
  losses_.Flush(last_ns, true);
  if (GuessesTime()) {
    summary_.notes.emplace_back(
        "times are assumed: the file has none, or no date (--start, --interval)");
  }
  if (clock_.used()) {
    summary_.notes.push_back("its times were read as local time in the zone " + LocalZoneName() +
                             " (--tz)");
  }
  end.t_ns = last_ns;
  sink_.Write(std::move(end));
}

}  // namespace epochmeter::ingest
