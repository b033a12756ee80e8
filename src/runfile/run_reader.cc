// SPDX-License-Identifier: Apache-2.0
#include "runfile/run_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "model/limits.h"
#include "model/run_builder.h"
#include "runfile/run_files.h"
#include "runfile/series_store.h"
#include "runfile/step_loader.h"
#include "runfile/unsealed.h"

namespace epochmeter::runfile {
namespace {

using model::Loss;
using model::LossSeverity;
using model::Record;

class Reader {
 public:
  explicit Reader(RunFiles files, bool with_events = true)
      : files_(std::move(files)), with_events_(with_events) {}

  base::Result<model::Run> Read() {
    EPM_TRY(ReadSchema());
    CountEvents();
    for (const ChunkSetRef& set : files_.sets) {
      if (!set.ignored) EPM_TRY(ReadSet(set));
    }
    ReadTail();
    SortTail();
    if (wild_records_ > 0) {
      AddSkipped({.damaged = wild_records_}, files_.path, 0, files_.main_scan.size, &files_.losses);
    }
    model::Run run = builder_.Finish(nullptr);
    run.losses.insert(run.losses.end(), files_.losses.begin(), files_.losses.end());
    run.store = std::make_unique<FileSeriesStore>(std::move(files_.main), std::move(files_.sets),
                                                  run.series, std::move(tail_));
    return run;
  }

 private:
  // Stored bytes of a section, decompressed; a damaged one is a Loss and gives nothing.
  base::Result<std::optional<std::string>> ReadSection(const ChunkSetRef& set,
                                                       const SectionRef& section) {
    const uint64_t offset = set.frame.payload_offset() + section.offset;
    EPM_ASSIGN(const std::string stored,
               files_.main->Read(offset, static_cast<size_t>(section.stored_bytes)));
    std::optional<std::string> content = DecodeSection(set.frame.header.id, section, stored);
    if (!content) {
      AddLoss(
          set, offset, section.stored_bytes,
          fmt::format("{} of a chunk set, {} records", SectionName(section.kind), section.count));
    }
    return content;
  }

  void AddLoss(const ChunkSetRef& set, uint64_t offset, uint64_t bytes, const std::string& what) {
    Loss loss =
        FileLoss("file.damaged_chunk", LossSeverity::kDataLoss, files_.path, offset, bytes, what);
    if (set.prologue && set.prologue->span) loss.t_ns = set.prologue->span->begin_ns;
    files_.losses.push_back(std::move(loss));
  }

  // A table as long as an id beyond any run would be is never made.
  void Keep(const Record& record) {
    if (!HasSaneIds(record)) return void(++wild_records_);
    if (const auto* series = std::get_if<model::SeriesDef>(&record)) {
      if (steps_.size() <= series->id) steps_.resize(series->id + size_t{1});
      steps_[series->id] = model::Steps(series->metric.resolution);
    }
    builder_.Write(record);
  }

  // The last readable set has all definitions; what an earlier one costs is not needed then.
  base::Result<> ReadSchema() {
    for (auto set = files_.sets.rbegin(); set != files_.sets.rend(); ++set) {
      if (set->ignored || !set->prologue) continue;
      bool complete = true;
      for (const SectionRef& section : set->prologue->sections) {
        if (section.kind != SectionKind::kSchema) continue;
        EPM_ASSIGN(const auto content, ReadSection(*set, section));
        complete = complete && content.has_value();
        if (content) ForEachRecord(*content, [this](Record&& record) { Keep(record); });
      }
      if (complete) break;
    }
    return {};
  }

  base::Result<> ReadSet(const ChunkSetRef& set) {
    if (!set.prologue) {
      AddLoss(set, set.frame.offset, set.frame.end() - set.frame.offset, "the head of a chunk set");
      return {};
    }
    for (const SectionRef& section : set.prologue->sections) {
      const uint64_t offset = set.frame.payload_offset() + section.offset;
      if (section.kind > SectionKind::kData) {
        AddLoss(set, offset, section.stored_bytes, "a section of a newer version");
      }
      const bool events = section.kind == SectionKind::kEvents || section.kind == SectionKind::kLog;
      if (section.kind != SectionKind::kOther && !(events && with_events_)) continue;
      EPM_ASSIGN(const auto content, ReadSection(set, section));
      if (!content) continue;
      const SkippedRecords skipped = ReadRecords(section.kind, *content);
      AddSkipped(skipped, files_.path, offset, section.stored_bytes, &files_.losses);
    }
    if (set.prologue->span) {
      builder_.Write(model::Samples{.t_ns = set.prologue->span->begin_ns, .values = {}});
      builder_.Write(model::Samples{.t_ns = set.prologue->span->end_ns, .values = {}});
    }
    return {};
  }

  // No more than there are bytes: the counts are only what the file says.
  void CountEvents() {
    for (const ChunkSetRef& set : files_.sets) {
      if (set.ignored || !set.prologue) continue;
      for (const SectionRef& section : set.prologue->sections) {
        if (section.kind != SectionKind::kEvents) continue;
        expected_events_ += std::min(section.count, section.stored_bytes);
      }
    }
  }

  SkippedRecords ReadRecords(SectionKind kind, std::string_view content) {
    if (kind != SectionKind::kEvents) {
      return ForEachRecord(content, [this](Record&& record) { Keep(record); });
    }
    EventTable events;
    if (!DecodeEventTable(content, &events)) return {.unknown = 0, .damaged = 1};
    if (std::all_of(events.t_ns.begin(), events.t_ns.end(), model::IsPossibleTime)) {
      WriteEvents(events, expected_events_, builder_);
      return {};
    }
    return ForEachRecordOf(kind, content, [this](Record&& record) { Keep(record); });
  }

  void ReadTail() {
    for (const TailFrame& frame : files_.tail_frames) {
      const bool schema = frame.frame.header.type == FrameType::kSchema;
      if (!schema && frame.frame.header.sequence < files_.sealed_tail_frames) continue;
      const uint64_t wild_before = wild_records_;
      SkippedRecords skipped = ForEachRecordOf(frame, [this, schema](Record&& record) {
        // As a writer that takes over does: what it would leave out is not told as read either.
        if (schema && !IsDefinition(record)) return void(++wild_records_);
        if (const auto* samples = std::get_if<model::Samples>(&record)) AddTail(*samples);
        Keep(record);
      });
      skipped.damaged += std::exchange(wild_records_, wild_before) - wild_before;
      AddSkipped(skipped, files_.tail_scan.path, frame.frame.offset,
                 frame.frame.end() - frame.frame.offset, &files_.losses);
    }
  }

  // Ids that are not defined before are counted by the builder.
  void AddTail(const model::Samples& samples) {
    if (!model::IsPossibleTime(samples.t_ns)) return;
    bool wild = false;
    for (const model::SampleValue& sample : samples.values) {
      if (sample.series >= steps_.size() || !steps_[sample.series]) continue;
      const auto value = Unsealed::Storable(*steps_[sample.series], sample.value);
      wild |= !value;
      if (!value) continue;
      model::SeriesColumn& column = tail_[sample.series];
      column.t_ns.push_back(samples.t_ns);
      column.value.push_back(*value);
    }
    wild_records_ += wild ? 1 : 0;
  }

  void SortTail() {
    for (auto& [id, column] : tail_) {
      if (std::is_sorted(column.t_ns.begin(), column.t_ns.end())) continue;
      std::vector<std::pair<int64_t, double>> samples;
      for (size_t i = 0; i < column.t_ns.size(); ++i) {
        samples.emplace_back(column.t_ns[i], column.value[i]);
      }
      std::stable_sort(samples.begin(), samples.end(),
                       [](const auto& a, const auto& b) { return a.first < b.first; });
      for (size_t i = 0; i < samples.size(); ++i) {
        std::tie(column.t_ns[i], column.value[i]) = samples[i];
      }
    }
  }

  RunFiles files_;
  const bool with_events_;
  uint64_t expected_events_ = 0;
  model::RunBuilder builder_;
  std::vector<std::optional<model::Steps>> steps_;  // by series id; nothing when not defined
  uint64_t wild_records_ = 0;                       // with ids, times or values of no run
  std::map<model::SeriesId, model::SeriesColumn> tail_;
};

FileSystem& OrReal(FileSystem* file_system) {
  return file_system != nullptr ? *file_system : PosixFileSystem();
}

// Frames whose payload is wrong although nothing in it was found to be.
base::Result<> CheckPayloads(const RunFiles& files, Verification& result) {
  std::set<uint64_t> ignored;
  for (const ChunkSetRef& set : files.sets) {
    if (set.ignored) ignored.insert(set.frame.offset);
  }
  for (const FrameRef& frame : files.main_scan.frames) {
    if (ignored.contains(frame.offset)) continue;
    EPM_ASSIGN(const auto payload, ReadPayload(*files.main, frame));
    if (payload) continue;
    result.losses.push_back(FileLoss("file.damaged_frame", LossSeverity::kDataLoss, files.path,
                                     frame.offset, frame.end() - frame.offset, "wrong checksum"));
  }
  return {};
}

}  // namespace

base::Result<model::Run> OpenRun(const std::string& path, FileSystem* file_system) {
  EPM_ASSIGN(RunFiles files, OpenRunFiles(OrReal(file_system), path, OpenMode::kRead));
  return Reader(std::move(files)).Read();
}

bool Verification::Intact() const {
  return std::all_of(losses.begin(), losses.end(), [](const Loss& loss) {
    return loss.severity == LossSeverity::kInfo || !loss.kind.starts_with("file.");
  });
}

base::Result<model::Run> OpenRunWithoutEvents(const std::string& path, FileSystem* file_system) {
  EPM_ASSIGN(RunFiles files, OpenRunFiles(OrReal(file_system), path, OpenMode::kRead));
  return Reader(std::move(files), false).Read();
}

base::Result<Verification> VerifyRun(const std::string& path, FileSystem* file_system) {
  EPM_ASSIGN(RunFiles files, OpenRunFiles(OrReal(file_system), path, OpenMode::kRead));
  Verification result;
  result.file_bytes = files.main_scan.size + files.tail_scan.size;
  result.frames = files.main_scan.frames.size() + files.tail_scan.frames.size();
  result.chunk_sets = files.sets.size();
  result.finished = files.finished;
  EPM_TRY(CheckPayloads(files, result));
  EPM_ASSIGN(const model::Run run, Reader(std::move(files)).Read());
  for (size_t id = 0; id < run.series.size(); ++id) {
    EPM_ASSIGN(const model::SeriesColumn column,
               run.store->Read(static_cast<model::SeriesId>(id), {}));
    result.values += column.t_ns.size();
  }
  for (const std::vector<Loss>& found : {run.losses, run.store->LossesFound()}) {
    result.losses.insert(result.losses.end(), found.begin(), found.end());
  }
  return result;
}

}  // namespace epochmeter::runfile
