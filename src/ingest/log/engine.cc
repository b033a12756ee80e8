// SPDX-License-Identifier: Apache-2.0
#include "ingest/log/engine.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "ingest/log/columns.h"
#include "ingest/log/events.h"
#include "ingest/log/json_block.h"
#include "ingest/log/line_pipe.h"
#include "ingest/log/line_prefix.h"
#include "ingest/log/plan_table.h"
#include "ingest/log/progress.h"
#include "ingest/log/segment_splitter.h"
#include "ingest/log/skeleton.h"
#include "ingest/log/stamp_clock.h"
#include "ingest/log/templates.h"
#include "ingest/log/text_decoder.h"
#include "ingest/log/wrapper_reader.h"

namespace epochmeter::ingest::log {
namespace {

constexpr size_t kMostStreams = 4096;  // of a file

ClockFacts FactsOf(const LogFile& file) {
  return {.modified_ns = file.modified_ns,
          .zone_offset_s = file.zone_offset_s,
          .now_ns = base::WallNs()};
}

}  // namespace

// Shows records to the events' reader on their way: what their values say is an event too.
class RecordTap : public LogSink {
 public:
  RecordTap(LogSink& sink, EventReader& events, std::optional<TemplateTable>& messages)
      : sink_(sink), events_(events), messages_(messages) {}
  // The rank that a record prints counts more than where it stands.
  void OnRecord(const LogRecord& record) override {
    const LogValue* rank = record.Find(Role::kRank);
    if (rank == nullptr) return Give(record);
    const double printed = rank->number;
    const bool other = printed >= 0 && printed < kMostRanks && printed == std::floor(printed) &&
                       record.place.rank != printed;
    if (!other) return Give(record);
    LogRecord of_rank = record;
    of_rank.place.rank = static_cast<int32_t>(printed);
    Give(of_rank);
  }
  void OnEvent(const LogEvent& event) override { sink_.OnEvent(event); }
  void OnStepMeaning(uint32_t file, uint32_t shape, bool in_epoch) override {
    sink_.OnStepMeaning(file, shape, in_epoch);
  }

 private:
  static constexpr double kMostRanks = 65536;

  void Give(const LogRecord& record) {
    events_.Record(record);
    if (messages_ && record.kind == RecordKind::kTrain) {
      const LogValue* step = record.Find(Role::kStep);
      if (step == nullptr) step = record.Find(Role::kStepInEpoch);
      messages_->NoteStep(record.place,
                          step != nullptr ? std::optional(step->number) : std::nullopt);
    }
    sink_.OnRecord(record);
  }

  LogSink& sink_;
  EventReader& events_;
  std::optional<TemplateTable>& messages_;
};

// What all files share.
struct Shared {
  Shared(LogSink& its_sink, const EngineOptions& options)
      : events(its_sink), sink(its_sink, events, messages) {
    if (options.messages) messages.emplace();
    if (options.threads > 1) pipe.emplace();
    if (pipe && !pipe->running()) pipe.reset();
  }
  EventReader events;
  std::optional<TemplateTable> messages;
  RecordTap sink;
  PlanTable plans;
  Skeleton skeleton;
  uint32_t streams = 0;
  std::optional<LinePipe> pipe;  // to the thread that understands lines, where there is one
};

// A file on its way from bytes to records.
class LogEngineFile : public TextSink, public PayloadSink, public LineSink {
 public:
  LogEngineFile(Shared& shared, const LogFile& file, uint32_t index)
      : shared_(shared),
        file_(file),
        index_(index),
        clock_(FactsOf(file)),
        progress_(shared.sink, index),
        blocks_(*this),
        wrappers_(blocks_, file.rank),
        splitter_(wrappers_),
        decoder_(*this) {}

  void Feed(std::string_view bytes, std::optional<int64_t> wall_ns) {
    bytes_ += bytes.size();
    if (wall_ns) wall_ns_ = wall_ns;
    decoder_.Feed(bytes);
  }

  void Finish() {
    if (finished_) return;
    finished_ = true;
    decoder_.Finish();
    splitter_.Finish();
    wrappers_.Finish();
    blocks_.Flush();
    if (shared_.pipe) shared_.pipe->Drain();
    progress_.Finish();
  }

  void FlushBlocks() { blocks_.Flush(); }

  void OnText(std::string_view text) override { splitter_.Feed(text); }

  void OnPayload(const Payload& payload) override {
    ReadSkeleton(payload.text, &shared_.skeleton);
    Payload timed = payload;
    if (!timed.wall_ns) timed.wall_ns = wall_ns_;
    if (shared_.pipe) return shared_.pipe->Put(this, timed, shared_.skeleton);
    OnLine(timed, shared_.skeleton);
  }

  void OnLine(const Payload& payload, const Skeleton& skeleton) override {
    Source& source = SourceOf(payload.source);
    LineKind* kind = FindKind(payload.text, source, skeleton);
    const LinePlan* plan = kind->plan;
    if (shared_.messages) NoteMessage(payload, skeleton, source, kind);
    const bool wanted = plan->events || shared_.events.WantsNext(source.stream);
    if (plan->tier == Tier::kNone && !wanted && !plan->begins_eval && !plan->begins_train &&
        !plan->repeats_best) {
      return;
    }
    const std::optional<RawStamp> stamp = kind->stamp.Read(payload.text, skeleton);
    NoteTime(payload, stamp, &source);
    // In its place at once and part by part: this runs for every line.
    ProgressLine line;
    line.place.file = index_;
    line.place.stream = source.stream;
    line.place.line = payload.line;
    if (const auto& rank = payload.rank ? payload.rank : file_.rank) line.place.rank = *rank;
    if (source.wall_ns) line.place.wall_ns = *source.wall_ns;
    line.text = payload.text;
    line.redrawn = payload.redrawn;
    if (stamp) line.stamp = stamp->text;
    line.skeleton = &skeleton;
    line.plan = plan;
    if (wanted) shared_.events.Line(line.place, line.text);
    progress_.Line(line);
  }

  StampClock& clock() { return clock_; }
  const StampClock& clock() const { return clock_; }
  Progress& progress() { return progress_; }
  void AddCounts(EngineCounts* counts) const {
    counts->bytes += bytes_;
    counts->lines += splitter_.lines();
    counts->segments += splitter_.segments();
    counts->cut_lines += splitter_.cut_lines();
    counts->bad_bytes += splitter_.bad_bytes() + decoder_.counts().bad_bytes;
    counts->records += progress_.records();
    counts->eval_records += progress_.eval_records();
  }

 private:
  struct Source {
    uint32_t stream = 0;
    std::optional<int64_t> wall_ns;
    Columns columns;
  };

  void NoteMessage(const Payload& payload, const Skeleton& skeleton, const Source& source,
                   LineKind* kind) {
    const bool record = kind->plan->tier >= Tier::kFigures && !kind->plan->events;
    if (record || payload.redrawn) return shared_.messages->Pass(payload.line);
    const LinePlace place = {.file = index_,
                             .stream = source.stream,
                             .line = payload.line,
                             .rank = payload.rank,
                             .wall_ns = source.wall_ns};
    if (kind->message != TemplateTable::kNotClustered) {
      shared_.messages->Again(kind->message, place);
    } else {
      kind->message = shared_.messages->Add(skeleton.hash, payload.text, place);
    }
  }

  Source& SourceOf(std::string_view name) {
    if (last_source_ != nullptr && name == last_name_) return *last_source_;
    auto found = sources_.find(name);
    if (found == sources_.end()) {
      if (sources_.size() >= kMostStreams) return sources_.begin()->second;
      found = sources_.emplace(std::string(name), Source{}).first;
      found->second.stream = shared_.streams++;
    }
    last_name_ = found->first;
    last_source_ = &found->second;
    return found->second;
  }

  LineKind* FindKind(std::string_view text, Source& source, const Skeleton& skeleton) {
    LineKind* kind = shared_.plans.Find(skeleton.hash);
    if (kind == nullptr) {
      kind = shared_.plans.Learn(skeleton.hash, text, skeleton);
    }
    if (kind->plan->columns) {
      source.columns = ReadColumns(text.substr(ReadLinePrefix(text).message));
    } else if (kind->plan->rows && !source.columns.names.empty()) {
      // The same numbers mean something else under another header.
      const uint64_t hash = skeleton.hash ^ source.columns.hash;
      LineKind* row = shared_.plans.Find(hash);
      if (row != nullptr) return row;
      LinePlan made = MakeRowPlan(text, ReadLinePrefix(text), skeleton, source.columns);
      return shared_.plans.Add(hash, std::move(made));
    }
    return kind;
  }

  void NoteTime(const Payload& payload, const std::optional<RawStamp>& stamp, Source* source) {
    const std::optional<int64_t> stamped = stamp ? clock_.WallNs(*stamp) : std::nullopt;
    if (stamped) {
      source->wall_ns = stamped;
    } else if (payload.wall_ns) {
      source->wall_ns = payload.wall_ns;
    }
  }

  Shared& shared_;
  LogFile file_;
  uint32_t index_;
  StampClock clock_;
  Progress progress_;
  JsonBlock blocks_;
  WrapperReader wrappers_;
  SegmentSplitter splitter_;
  TextDecoder decoder_;
  std::map<std::string, Source, std::less<>> sources_;
  std::string_view last_name_;
  Source* last_source_ = nullptr;
  std::optional<int64_t> wall_ns_;
  uint64_t bytes_ = 0;
  bool finished_ = false;
};

class LogEngine::Impl {
 public:
  Impl(LogSink& sink, const EngineOptions& options) : shared(sink, options) {}
  Shared shared;
  std::vector<std::unique_ptr<LogEngineFile>> files;
  EngineCounts counts;
};

LogEngine::LogEngine(LogSink& sink, const EngineOptions& options)
    : impl_(std::make_unique<Impl>(sink, options)) {}
LogEngine::~LogEngine() { impl_->shared.pipe.reset(); }  // while there are files

uint32_t LogEngine::Open(const LogFile& file) {
  const auto index = static_cast<uint32_t>(impl_->files.size());
  impl_->files.push_back(std::make_unique<LogEngineFile>(impl_->shared, file, index));
  return index;
}

void LogEngine::Survey(uint32_t file, std::string_view head, std::string_view tail) {
  impl_->files.at(file)->clock().SurveySample(head, tail);
}

void LogEngine::Feed(uint32_t file, std::string_view bytes, std::optional<int64_t> wall_ns) {
  impl_->files.at(file)->Feed(bytes, wall_ns);
}

void LogEngine::Idle() {
  for (const auto& file : impl_->files) file->FlushBlocks();
  if (impl_->shared.pipe) impl_->shared.pipe->Drain();
  for (const auto& file : impl_->files) file->progress().Idle();
}

void LogEngine::Close(uint32_t file) { impl_->files.at(file)->Finish(); }

void LogEngine::Finish() {
  for (const auto& file : impl_->files) file->Finish();
  impl_->shared.events.Finish();
}

const TemplateTable* LogEngine::messages() const {
  return impl_->shared.messages ? &*impl_->shared.messages : nullptr;
}

const EngineCounts& LogEngine::counts() const {
  impl_->counts = {};
  for (const auto& file : impl_->files) file->AddCounts(&impl_->counts);
  return impl_->counts;
}

std::vector<std::string> LogEngine::Notes() const {
  std::vector<std::string> notes;
  for (const auto& file : impl_->files) {
    for (std::string& note : file->clock().Notes()) {
      if (std::find(notes.begin(), notes.end(), note) == notes.end())
        notes.push_back(std::move(note));
    }
  }
  return notes;
}

}  // namespace epochmeter::ingest::log
