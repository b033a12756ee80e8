// SPDX-License-Identifier: Apache-2.0
#include "ingest/log/log_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/strings.h"
#include "ingest/log/record_events.h"
#include "ingest/log/step_tables.h"
#include "model/limits.h"

namespace epochmeter::ingest::log {
namespace {

using model::EventKind;

constexpr size_t kHeldRecords = 2000;
constexpr size_t kMostProcesses = 4096;
constexpr uint64_t kMostTextLines = 4096;
constexpr size_t kMostTextBytes = 2000;
// Where not all are kept: numbers of all steps together, evaluations, events of one kind.
constexpr size_t kMostCells = 3'000'000;
constexpr size_t kMostColumns = 512;  // of one process
constexpr uint64_t kMostEvaluations = 8192;
constexpr uint64_t kMostEventsOfKind = 1024;
constexpr size_t kMostEventKinds = 256;

int64_t NsOf(double seconds) {
  constexpr double kMostSeconds = 1e9;
  return std::isfinite(seconds) ? std::llround(std::clamp(seconds, 0.0, kMostSeconds) * 1e9) : 0;
}

// The epoch of an evaluation in a log whose epochs have fractions: 3.0 is the end of epoch 2.
std::optional<int64_t> EpochBefore(std::optional<double> epoch) {
  if (!epoch) return {};
  return model::WholeOf(std::max(std::ceil(*epoch) - 1, 0.0));
}

}  // namespace

LogRun::LogRun(model::Sink& sink, Options options)
    : sink_(sink), options_(std::move(options)), registry_(sink), allocator_(registry_) {}

void LogRun::Train(const IndexedRecord& record, const StepTiming& timing) {
  if (!holding_) return DoTrain(record, timing);
  data_judge_.Add(record, timing);
  ++held_records_;
  held_stamped_ += record->place.wall_ns ? 1 : 0;
  held_durations_ += timing.step_s || timing.epoch_s ? 1 : 0;
  Hold(&*record, &timing, nullptr);
}

void LogRun::Other(const LogRecord& record) {
  if (record.kind != RecordKind::kEval) return;
  if (!holding_) return DoOther(record);
  data_judge_.Break(record.place.stream);
  Hold(&record, nullptr, nullptr);
}

void LogRun::Event(const LogEvent& event) {
  if (!holding_) return DoEvent(event);
  Hold(nullptr, nullptr, &event);
}

void LogRun::Hold(const LogRecord* record, const StepTiming* timing, const LogEvent* event) {
  Held& held = held_.emplace_back();
  const std::optional<int64_t> wall_ns = record ? record->place.wall_ns : event->place.wall_ns;
  if (wall_ns) first_wall_ns_ = std::min(first_wall_ns_.value_or(*wall_ns), *wall_ns);
  if (record != nullptr) held.record.Keep(*record);
  if (timing != nullptr) held.timing = *timing;
  if (event != nullptr) held.event = *event;
  if (held_.size() == kHeldRecords) Release();
}

void LogRun::Release() {
  if (!holding_) return;
  holding_ = false;
  ForgetSums();
  CountFirst();
  Decide();
  WriteHead();
  for (Held& held : held_) {
    if (held.event) {
      DoEvent(*held.event);
    } else if (held.record.record().kind == RecordKind::kTrain) {
      DoTrain(held.record.record(), held.timing);
    } else {
      DoOther(held.record.record());
    }
  }
  held_.clear();
}

// What was taken for step times before it was seen to be the time since a start.
void LogRun::ForgetSums() {
  const bool sums =
      std::any_of(held_.begin(), held_.end(), [](const Held& held) { return held.timing.sums; });
  for (Held& held : held_) {
    if (!sums || held.timing.sums || held.timing.from != StepTimeFrom::kPrinted) continue;
    held.timing.step_s.reset();
    held.timing.from = StepTimeFrom::kUnknown;
    --held_durations_;
  }
}

// Steps for which the first records stand, by those behind them.
void LogRun::CountFirst() {
  struct First {
    Held* held = nullptr;
    double interval = 0;
    bool checked = false, regular = true;
  };
  std::map<std::pair<uint32_t, int32_t>, First> open;
  const auto close = [](First* first) {
    if (first->held == nullptr || !first->regular) return;
    const auto count = CountOf(first->held->record.record());
    if (count && BeginsSeries(*count, first->interval)) first->held->timing.steps = first->interval;
  };
  for (Held& held : held_) {
    if (held.event || held.record.record().kind != RecordKind::kTrain) continue;
    const LinePlace& place = held.record.record().place;
    First& first = open[{place.stream, place.rank.value_or(-1)}];
    if (held.timing.first) {
      close(&first);
      first = {.held = held.timing.steps ? nullptr : &held};
    } else if (first.interval == 0) {
      first.interval = held.timing.steps.value_or(0);
    } else if (!first.checked) {
      first.checked = true;
      first.regular = held.timing.new_epoch || held.timing.steps == first.interval;
    }
  }
  for (auto& [key, first] : open) close(&first);
}

void LogRun::Decide() {
  data_place_ = data_judge_.Judge().place;
  const bool stamps =
      held_records_ == 0 ? first_wall_ns_.has_value() : held_stamped_ * 10 >= held_records_ * 9;
  if (stamps && first_wall_ns_) {
    clock_ = LogClock::kStamps;
    origin_wall_ns_ = *first_wall_ns_;
    return;
  }
  if (held_durations_ * 2 > held_records_) clock_ = LogClock::kDurations;
  origin_wall_ns_ = options_.modified_ns.value_or(0);
}

void LogRun::WriteHead() {
  model::RunInfo info;
  info.run_id = fmt::format("log-{}", options_.name);
  info.anchor = {.mono_ns = 0, .boot_ns = 0, .wall_ns = origin_wall_ns_};
  info.attributes = {{"source", "training log"}, {"name", options_.name}};
  if (clock_ != LogClock::kStamps) info.attributes.emplace_back("times", "assumed");
  sink_.Write(std::move(info));
}

void LogRun::Tell(std::string kind, uint64_t count, std::string detail, std::string help,
                  model::LossSeverity severity) {
  if (count == 0) return;
  sink_.Write(model::Loss{.t_ns = last_ns_,
                          .severity = severity,
                          .kind = std::move(kind),
                          .count = count,
                          .detail = std::move(detail),
                          .help = std::move(help)});
}

LogRun::Pending& LogRun::ProcessAt(const LinePlace& place) {
  Process key(place.rank.value_or(-1), place.rank ? 0 : place.stream + 1);
  if (last_process_ != nullptr && last_process_->first == key) return last_process_->second;
  if (processes_.size() >= kMostProcesses && !processes_.contains(key)) key = {-1, 0};
  const auto [found, fresh] = processes_.try_emplace(key);
  if (fresh && !place.rank && unranked_++ > 0) found->second.pid = int64_t{place.stream} + 1;
  last_process_ = &*found;
  return found->second;
}

int64_t LogRun::TimeOf(const LinePlace& place, Pending& process) {
  if (clock_ == LogClock::kStamps) {
    const bool placed = place.wall_ns && model::IsPossibleTime(*place.wall_ns - origin_wall_ns_);
    if (placed) process.t_ns = *place.wall_ns - origin_wall_ns_;
    unplaced_ += placed ? 0 : 1;
  }
  last_ns_ = std::max(last_ns_, process.t_ns);
  return process.t_ns;
}

// What a record says of the steps since the one before it.
void LogRun::Add(const StepTiming& timing, Pending* process) {
  ++process->records;
  const double steps = timing.steps.value_or(1);
  process->steps += steps;
  process->steps_known = process->steps_known && timing.steps.has_value();
  std::optional<double> duration;
  if (timing.step_s && timing.from != StepTimeFrom::kStamps) duration = *timing.step_s * steps;
  const double data = timing.data_s.value_or(0) * steps;
  if (duration && data_place_ == DataPlace::kBeside) *duration += data;
  if (timing.from == StepTimeFrom::kStamps && !process->evaluated) duration = timing.interval_s;
  // A step that was printed alone may not stand for more time than there was.
  const bool alone =
      timing.from == StepTimeFrom::kPrinted || timing.from == StepTimeFrom::kThroughput;
  constexpr double kStampSeconds = 1;
  if (duration && alone && timing.interval_s && timing.steps &&
      *duration > *timing.interval_s + kStampSeconds) {
    duration = timing.interval_s;
  }
  if (timing.epoch_s) process->epoch_s = process->epoch_s.value_or(0) + *timing.epoch_s;
  process->duration_known = process->duration_known && duration && clock_ != LogClock::kNone;
  process->duration_s += duration.value_or(0);
  process->data_known = process->data_known && timing.data_s.has_value();
  process->data_s += duration ? std::min(data, *duration) : data;
  process->evaluated = false;
  if (clock_ == LogClock::kDurations) {
    process->t_ns += NsOf(timing.epoch_s ? *timing.epoch_s : duration.value_or(0));
  }
}

void LogRun::Begin(const IndexedRecord& record, double duration_s, Pending* process) {
  if (process->begun) return;
  process->begun = true;
  model::Event begin{.t_ns = process->t_ns - NsOf(duration_s),
                     .kind = EventKind::kTrainBegin,
                     .rank = record->place.rank,
                     .epoch = {},
                     .step = {},
                     .name = {},
                     .fields = {{"source", std::string("log")}}};
  if (const auto epochs = WholeOf(record.Number(Role::kEpochs))) {
    begin.fields.push_back({"epochs", *epochs});
  }
  if (const auto whole = WholeOf(record.Number(Role::kStepsPerEpoch))) {
    begin.fields.push_back({"steps_per_epoch", *whole});
  }
  // A counter that begins as at first may be of a new epoch, a new training or the same again.
  if (process->resumes) begin.fields.push_back({"resumes", int64_t{1}});
  if (process->pid > 0) begin.fields.push_back({"pid", process->pid});
  sink_.Write(std::move(begin));
}

// The table of a step of this process, as model::ProcessOf says.
model::StepTable* LogRun::RowsOf(const LinePlace& place, Pending* process) const {
  if (process->table != nullptr && process->table_rank == place.rank) return process->table;
  if (process->table != nullptr) StepAppender::Level(process->table);
  process->table_rank = place.rank;
  process->table =
      &options_.tables->StepsOf(place.rank ? model::ProcessKey(*place.rank)
                                           : model::ProcessKey(model::kNoRank, process->pid));
  return process->table;
}

void LogRun::WriteStep(const IndexedRecord& record, const StepTiming& timing, Pending* process) {
  const auto each = [process, &timing](const auto& add) {
    if (process->pid > 0) add(StepColumn::kPid, process->pid);
    if (!process->counted) {
      add(StepColumn::kSteps, 0.0);
    } else if (process->steps_known && process->steps >= 1) {
      add(StepColumn::kSteps, process->steps);
    }
    if (process->epoch_s) add(StepColumn::kEpochTime, *process->epoch_s);
    if (timing.ends_epoch) add(StepColumn::kEndsEpoch, int64_t{1});
    if (process->duration_known) add(StepColumn::kDuration, process->duration_s);
    if (process->duration_known && process->data_known) {
      add(StepColumn::kDataWait, process->data_s);
    }
  };
  const int64_t t_ns = process->t_ns;
  if (options_.tables != nullptr && model::IsPossibleTime(t_ns)) {
    options_.tables->Widen(t_ns);
    model::StepTable* rows = RowsOf(record->place, process);
    AppendStep(record, t_ns, all_scalars_, rows, &process->appender);
    rows->epoch.back() = WholeOf(timing.epoch).value_or(model::kNotKnown);
    each([process](StepColumn column, auto number) {
      process->appender.Add(column, static_cast<double>(number));
    });
    return;
  }
  model::Event event = StepEvent(record, t_ns, all_scalars_);
  event.epoch = WholeOf(timing.epoch);
  each([&event](StepColumn column, model::FieldValue value) {
    event.fields.push_back({.key = std::string(StepColumnName(column)), .value = value});
  });
  sink_.Write(std::move(event));
}

void LogRun::DoTrain(const IndexedRecord& record, const StepTiming& timing) {
  Pending& process = ProcessAt(record->place);
  if (timing.first) {
    process.records = 0;
    process.steps = process.duration_s = process.data_s = 0;
    process.begun = false;
    const auto count = CountOf(record);
    process.resumes = count && process.first_count && *count > *process.first_count;
    if (!process.first_count) process.first_count = count;
  }
  process.fractions = timing.fractions;
  process.counted =
      record.Find(Role::kStep) != nullptr || record.Find(Role::kStepInEpoch) != nullptr;
  Add(timing, &process);
  const int64_t t_ns = TimeOf(record->place, process);
  const LogValue* loss = record.Find(Role::kLoss);
  const bool telling = loss != nullptr && !std::isfinite(loss->number);
  if (process.records < stride_ && !telling) return;
  Begin(record, process.duration_known ? process.duration_s : process.epoch_s.value_or(0),
        &process);
  WriteStep(record, timing, &process);
  AddMemory(record, t_ns, process.pid);
  AddText(t_ns, record->text);
  process.records = 0;
  process.steps = process.duration_s = process.data_s = 0;
  process.steps_known = process.duration_known = process.data_known = true;
  process.epoch_s.reset();
  ++written_;
  if (HasMostSteps()) JoinSteps();
}

bool LogRun::HasMostSteps() {
  if (options_.most_steps == 0 || options_.tables == nullptr) return false;
  if (written_ >= options_.most_steps) return true;
  constexpr uint64_t kLookEach = 256;
  if (written_ % kLookEach != 0) return false;
  // A log of many formats has many columns.
  size_t cells = 0;
  for (const auto& [key, process] : processes_) {
    const model::StepTable& table = TableOf(key, process);
    cells += table.size() * (3 + table.columns.size());
    all_scalars_ = all_scalars_ && table.columns.size() < kMostColumns;
  }
  return cells > kMostCells;
}

model::StepTable& LogRun::TableOf(const Process& key, const Pending& process) const {
  return options_.tables->StepsOf(
      model::ProcessKey(key.first < 0 ? model::kNoRank : key.first, process.pid));
}

void LogRun::JoinSteps() {
  stride_ *= 2;
  written_ = 0;
  for (const auto& [key, process] : processes_) {
    model::StepTable& table = TableOf(key, process);
    StepAppender::Level(&table);
    JoinNeighbours(&table);
    written_ += table.size();
  }
}

void LogRun::AddMemory(const IndexedRecord& record, int64_t t_ns, int64_t pid) {
  const std::optional<AllocatorReading> reading = MemoryOf(record);
  if (!reading) return;
  model::Samples samples{.t_ns = t_ns, .values = {}};
  if (allocator_.Append(record->place.rank, pid, *reading, samples)) {
    if (!samples.values.empty()) sink_.Write(std::move(samples));
  }
}

void LogRun::AddText(int64_t t_ns, std::string_view text) {
  if (!options_.texts) return;
  ++text_lines_;
  if (texts_ > kMostTextLines) {
    text_stride_ *= 2;
    texts_ = 0;
  }
  if (text_lines_ % text_stride_ != 0) return;
  ++texts_;
  sink_.Write(model::LogText{
      .t_ns = t_ns, .stream = 3, .text = base::ToValidUtf8(text.substr(0, kMostTextBytes)) + "\n"});
}

// The figures of an evaluation, apart from those of the training.
void LogRun::DoOther(const LogRecord& record) {
  Pending& process = ProcessAt(record.place);
  process.evaluated = true;
  const int64_t t_ns = TimeOf(record.place, process);
  if (options_.most_steps > 0) {
    if (evaluations_ >= kMostEvaluations * evaluation_stride_) evaluation_stride_ *= 2;
    if (evaluations_++ % evaluation_stride_ != 0) return;
  }
  std::optional<model::Event> event = EvaluationEvent(record, t_ns);
  if (!event) return;
  if (process.fractions) event->epoch = EpochBefore(EpochOf(record));
  if (process.pid > 0) event->fields.push_back({"pid", process.pid});
  sink_.Write(*std::move(event));
}

// A storm of events of one kind.
bool LogRun::IsLeftOut(const std::string& kind) {
  if (options_.most_steps == 0) return false;
  const bool room = events_.size() < kMostEventKinds || events_.contains(kind);
  return !room || ++events_[kind] > kMostEventsOfKind;
}

void LogRun::DoEvent(const LogEvent& event) {
  Pending& process = ProcessAt(event.place);
  const int64_t t_ns = TimeOf(event.place, process);
  if (IsLeftOut(event.kind)) return;
  model::Event out = FailureEvent(event, t_ns);
  if (process.pid > 0) out.fields.push_back({"pid", process.pid});
  sink_.Write(std::move(out));
  if (!options_.texts) return;
  sink_.Write(model::LogText{.t_ns = t_ns, .stream = 3, .text = event.text + "\n"});
}

void LogRun::Finish(const EngineCounts& counts, model::RunEnd end) {
  Release();
  using model::LossSeverity;
  Tell("log.cut_lines", counts.cut_lines, "lines longer than 1 MiB were cut",
       "What stands behind the first 1 MiB of a line was not read.", LossSeverity::kDataLoss);
  Tell("log.bad_bytes", counts.bad_bytes, "bytes that are no text",
       "The log is damaged or of an unknown encoding; the lines around them were read.",
       LossSeverity::kDataLoss);
  Tell("log.unplaced", unplaced_, "records and events without a time",
       "They stand at the time of the line before them.", LossSeverity::kInfo);
  if (clock_ == LogClock::kDurations) {
    Tell("log.times_assumed", held_records_, "lines have no times",
         "The run's clock is the sum of the printed step times; evaluations and pauses are not in "
         "it. Print times with the lines to see them.",
         LossSeverity::kInfo);
  } else if (clock_ == LogClock::kNone) {
    Tell("log.no_times", std::max<uint64_t>(held_records_, 1), "neither times nor durations",
         "The order of the steps is known, but not when they ran or how long they took: all stand "
         "at one instant. Print times with the lines to see them.",
         LossSeverity::kInfo);
  }
  for (const auto& [key, process] : processes_) {
    if (process.table != nullptr) StepAppender::Level(process.table);
  }
  end.t_ns = last_ns_;
  sink_.Write(std::move(end));
}

}  // namespace epochmeter::ingest::log
