// SPDX-License-Identifier: Apache-2.0
// Going on with, or closing, the files of a writer that died.
#include <algorithm>
#include <cerrno>
#include <memory>
#include <utility>

#include "base/bytes.h"
#include "runfile/beside.h"
#include "runfile/record_codec.h"
#include "runfile/recover.h"
#include "runfile/run_files.h"
#include "runfile/run_writer.h"
#include "runfile/writer.h"

namespace epochmeter::runfile {
namespace {

using model::LossSeverity;

bool AllSealed(const RunFiles& files) {
  return files.tail_scan.next_sequence <= files.sealed_tail_frames;
}

}  // namespace

base::Result<> Writer::AbsorbSet(const RunFiles& files, const ChunkSetRef& set, bool newest) {
  if (!set.prologue || set.ignored) return {};
  sealed_values_ += set.prologue->values;
  ++sets_;
  next_generation_ = std::max(next_generation_, set.prologue->tail_generation + 1);
  if (set.prologue->span) unsealed_.SeeTime(set.prologue->span->end_ns);
  const auto define = [this](model::Record&& record) {
    if (IsDefinition(record)) unsealed_.Add(record, {});
    end_written_ = end_written_ || std::holds_alternative<model::RunEnd>(record);
  };
  const SectionRef* data = set.prologue->Find(SectionKind::kData);
  for (const SectionRef& section : set.prologue->sections) {
    const bool directory_section = section.kind == SectionKind::kDirectory;
    const bool records =
        section.kind == SectionKind::kSchema || section.kind == SectionKind::kOther;
    if (!directory_section && !(records && newest)) continue;
    EPM_ASSIGN(const std::string stored,
               files.main->Read(set.frame.payload_offset() + section.offset,
                                static_cast<size_t>(section.stored_bytes)));
    const std::optional<std::string> content = DecodeSection(id_, section, stored);
    if (content && records) ForEachRecord(*content, define);
    Directory directory;
    if (!content || records || data == nullptr) continue;
    if (!DecodeDirectory(*content, data->stored_bytes, &directory)) continue;
    for (const ChunkRef& chunk : directory.chunks) {
      unsealed_.SetPrevious(chunk.series, directory.times[chunk.time_column].last_ns);
    }
  }
  return {};
}

void Writer::AbsorbTail(RunFiles& files) {
  const bool all_sealed = AllSealed(files);
  for (const TailFrame& frame : files.tail_frames) {
    const bool schema = frame.frame.header.type == FrameType::kSchema;
    if (all_sealed && !schema) continue;
    uint64_t wild = 0;
    SkippedRecords skipped = ForEachRecordOf(frame, [&](model::Record&& record) {
      if (!HasSaneIds(record) || (schema && !IsDefinition(record))) return void(++wild);
      base::ByteWriter encoded;
      if (!schema) EncodeRecord(record, encoded);
      if (auto* samples = std::get_if<model::Samples>(&record)) KeepStorable(*samples);
      unsealed_.Add(record, encoded.bytes());
      if (const auto* loss = std::get_if<model::Loss>(&record)) known_losses_.push_back(*loss);
      end_written_ = end_written_ || std::holds_alternative<model::RunEnd>(record);
      if (!schema) ++taken_over_records_;
    });
    skipped.damaged += wild;
    AddSkipped(skipped, files.tail_scan.path, frame.frame.offset,
               frame.frame.end() - frame.frame.offset, &files.losses);
  }
  tail_sealed_ = all_sealed;
}

base::Result<> Writer::Absorb(const RunFiles& files) {
  // Definitions first, from the last set that has them; values need their series.
  bool schema_read = false;
  for (auto set = files.sets.rbegin(); set != files.sets.rend(); ++set) {
    if (!set->prologue || set->ignored) continue;
    const bool read_schema = !schema_read;
    EPM_TRY(AbsorbSet(files, *set, read_schema));
    schema_read = schema_read || !unsealed_.series().empty();
  }
  return {};
}

base::Result<> Writer::TakeOver(RunFiles files) {
  id_ = files.id();
  main_made_ = true;
  locked_ = files.locked;
  for (ChunkSetRef& set : files.sets) {
    // What a failed seal left behind is sealed again with the rest of its tail.
    const bool again = files.tail != nullptr && !AllSealed(files) && set.prologue &&
                       set.prologue->tail_generation == files.tail_generation;
    set.ignored = set.ignored || again;
  }
  EPM_TRY(Absorb(files));
  const bool torn = files.main_scan.end < files.main_scan.size;
  if (torn) {
    EPM_ASSIGN(saved_path_,
               SaveRestOf(file_system_, *files.main, files.main_scan.end, path_ + ".damaged"));
  }
  main_ = Appender(std::move(files.main), files.main_scan.end, files.main_scan.next_sequence);
  if (torn) main_.MarkDirty();
  tail_sealed_ = true;
  keep_old_tail_ = files.tail_foreign || files.tail_damaged;
  if (files.tail == nullptr) {
    TellLosses(std::move(files.losses));
    return {};
  }
  tail_generation_ = files.tail_generation;
  next_generation_ = std::max(next_generation_, tail_generation_ + 1);
  AbsorbTail(files);
  EPM_ASSIGN(std::unique_ptr<File> tail, file_system_.Open(TailPath(path_), OpenMode::kReadWrite));
  tail_ = Appender(std::move(tail), files.tail_scan.end, files.tail_scan.next_sequence);
  if (files.tail_scan.end < files.tail_scan.size) tail_.MarkDirty();
  TellLosses(std::move(files.losses));
  return {};
}

// Writes the losses that no later reader can find by itself, because the tail and the torn end go.
// Damage inside the main file stays there and is found again each time.
void Writer::TellLosses(std::vector<model::Loss> losses) {
  for (model::Loss& loss : losses) {
    const bool of_tail = loss.detail.find(TailPath(path_)) != std::string::npos;
    const bool torn = loss.kind == "file.torn_tail";
    if (!of_tail && !torn && loss.kind != "file.cut") continue;
    loss.t_ns = unsealed_.last_ns();
    if (torn && !of_tail) loss.detail += "; these bytes are kept in " + saved_path_;
    // A take-over that was interrupted may have told it before.
    const bool known =
        std::any_of(known_losses_.begin(), known_losses_.end(), [&loss](const model::Loss& other) {
          return other.kind == loss.kind && other.detail == loss.detail;
        });
    if (!known) Keep(loss);
  }
  found_losses_ = std::move(losses);
}

namespace {

base::Result<std::unique_ptr<Writer>> OpenDead(const std::string& path,
                                               const RunWriter::Options& options, bool* finished) {
  FileSystem& file_system =
      options.file_system != nullptr ? *options.file_system : PosixFileSystem();
  EPM_ASSIGN(RunFiles files, OpenRunFiles(file_system, path, OpenMode::kReadWrite));
  *finished = files.finished;
  auto writer = std::make_unique<Writer>(path, options);
  if (!files.finished) {
    EPM_TRY(writer->TakeOver(std::move(files)));
  } else {
    if (files.tail != nullptr && AllSealed(files)) EPM_TRY(file_system.Remove(TailPath(path)));
    writer->SetLosses(std::move(files.losses));
  }
  return writer;
}

}  // namespace

base::Result<std::unique_ptr<RunWriter>> RunWriter::Resume(const std::string& path,
                                                           const Options& options) {
  bool finished = false;
  EPM_ASSIGN(std::unique_ptr<Writer> writer, OpenDead(path, options, &finished));
  if (finished) {
    return base::Error{.what = "the run has ended",
                       .where = path,
                       .why = "",
                       .what_to_do = "record to another path",
                       .code = EEXIST};
  }
  writer->Note({.t_ns = writer->last_ns(),
                .severity = LossSeverity::kDataLoss,
                .kind = "recorder.restarted",
                .count = 1,
                .detail = "the recorder died after this time; nothing was recorded until its "
                          "restart",
                .help = "See the system log for why it died."});
  const base::Result<> sealed = writer->Seal();
  const bool later = options.wait_for_disk && !sealed.ok() && MayPass(sealed.error());
  if (!sealed.ok() && !later) return sealed.error();
  return std::unique_ptr<RunWriter>(std::move(writer));
}

base::Result<Recovery> RecoverRun(const std::string& path, FileSystem* file_system) {
  RunWriter::Options options;
  options.file_system = file_system;
  Recovery recovery;
  EPM_ASSIGN(std::unique_ptr<Writer> writer, OpenDead(path, options, &recovery.already_finished));
  recovery.losses = writer->losses();
  recovery.saved_path = writer->saved_path();
  if (recovery.already_finished) return recovery;
  recovery.recovered_records = writer->taken_over_records();
  EPM_TRY(
      writer->Finish({.t_ns = writer->last_ns(), .reason = "lost", .exit_code = {}, .signal = {}}));
  return recovery;
}

}  // namespace epochmeter::runfile
