// SPDX-License-Identifier: Apache-2.0
#include "runfile/run_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <random>
#include <utility>

#include "base/bytes.h"
#include "base/check.h"
#include "base/clock.h"
#include "runfile/appender.h"
#include "runfile/beside.h"
#include "runfile/frame.h"
#include "runfile/pending.h"
#include "runfile/record_codec.h"
#include "runfile/recover.h"
#include "runfile/run_files.h"
#include "runfile/unsealed.h"

namespace epochmeter::runfile {
namespace {

using model::LossSeverity;

// Output longer than this comes in several records.
constexpr size_t kMaxTextBytes = size_t{1} << 20;
// After a failed seal, so many flushes pass before the next one.
constexpr int kSealRetryFlushes = 10;

// So much output waits for room on a full disk.
constexpr size_t kMaxLogOfFullDisk = size_t{256} << 10;

bool IsFull(const base::Error& error) { return error.code == ENOSPC || error.code == EDQUOT; }

bool AllSealed(const RunFiles& files) {
  return files.tail_scan.next_sequence <= files.sealed_tail_frames;
}

FileId RandomId() {
  std::random_device device;
  FileId id;
  for (uint8_t& byte : id) byte = static_cast<uint8_t>(device());
  return id;
}

bool IsDefinition(const model::Record& record) {
  return HasSaneIds(record) && (std::holds_alternative<model::RunInfo>(record) ||
                                std::holds_alternative<model::EntityDef>(record) ||
                                std::holds_alternative<model::SeriesDef>(record));
}

class Writer : public RunWriter {
 public:
  Writer(std::string path, const Options& options)
      : path_(std::move(path)),
        options_(options),
        file_system_(options.file_system != nullptr ? *options.file_system : PosixFileSystem()) {}
  ~Writer() override {
    // An empty pair of files would only be in the way of the next run at this path.
    const bool empty = main_.sequence() == 0 && tail_.sequence() <= 1;
    if (created_ && !finished_ && empty) (void)RemoveFiles();
  }

  base::Result<> CreateFiles();
  // Takes over the files of a writer that died; its losses become records.
  base::Result<> TakeOver(RunFiles files);
  // Seals what was taken over, after `record` (if any) was added.
  void Note(model::Loss loss) { Keep(std::move(loss)); }

  void Write(const model::Record& record) override;
  base::Result<> Flush() override;
  base::Result<> Seal() override;
  base::Result<> Finish(const model::RunEnd& end) override;
  base::Result<> Discard() override;

  const std::optional<model::RunInfo>& info() const override { return unsealed_.info(); }
  const std::vector<model::EntityDef>& entities() const override { return unsealed_.entities(); }
  const std::vector<model::SeriesDef>& series() const override { return unsealed_.series(); }
  const WriterStats& stats() const override { return stats_; }
  int64_t last_ns() const { return unsealed_.last_ns(); }
  uint64_t taken_over_records() const { return taken_over_records_; }
  void SetLosses(std::vector<model::Loss> losses) { found_losses_ = std::move(losses); }
  const std::string& saved_path() const { return saved_path_; }
  const std::vector<model::Loss>& losses() const { return found_losses_; }

 private:
  bool Full() const { return pending_.bytes() + unsealed_.bytes() > options_.memory_limit_bytes; }
  // Rounds values to their resolution and drops those that can't be stored.
  void KeepStorable(model::Samples& samples);
  void WriteText(const model::LogText& text);
  void Keep(const model::Record& record);
  void Drop() { ++stats_.dropped_records, pending_.CountRecord(); }
  void NoteDrops();
  void DropLog();
  bool MakeRoom(const model::Record& record);  // false: the record was given up and counted
  base::Error Unfinished(base::Error error) const;
  base::Result<> FlushPending();
  base::Result<> FlushApart();  // on a full disk: samples and events before output
  base::Result<> AppendPending(Appender& tail, uint64_t generation, std::string_view bytes);
  void ForgetPending();
  base::Result<> SealNow(bool last);
  base::Result<> CreateTail();
  base::Result<> CheckStillThere() const;
  base::Result<> ClearPath();
  base::Result<> RemoveFiles();
  base::Result<> WriteEnd(const model::RunEnd& end);
  base::Result<> Absorb(const RunFiles& files);
  void AbsorbTail(const RunFiles& files);
  base::Result<> AbsorbSet(const RunFiles& files, const ChunkSetRef& set, bool newest);
  base::Result<> SetAsideTail();
  void TellLosses(std::vector<model::Loss> losses);

  const std::string path_;
  const Options options_;
  FileSystem& file_system_;
  FileId id_{};
  Appender main_;
  Appender tail_;
  uint64_t tail_generation_ = 0;
  uint64_t next_generation_ = 0;
  bool tail_sealed_ = false;    // everything in the tail on disk is sealed: it needs a new one
  bool keep_old_tail_ = false;  // the tail on disk has damaged parts that are no one's to remove
  Pending pending_;             // the output in it is the last in unsealed_ too
  Unsealed unsealed_;
  int flushes_until_seal_ = 0;  // back-off after a failed seal
  bool created_ = false;      // the files are ours to remove
  bool end_written_ = false;
  bool finished_ = false;
  uint64_t sealed_values_ = 0, sets_ = 0;
  uint64_t taken_over_records_ = 0;
  std::string saved_path_;                 // of the torn end of a main file that was taken over
  std::vector<model::Loss> found_losses_;  // when it was taken over
  std::vector<model::Loss> known_losses_;  // of these, the ones that its tail tells of already
  WriterStats stats_;
};

void Writer::Keep(const model::Record& record) {
  base::ByteWriter encoded;
  EncodeRecord(record, encoded);
  if (encoded.size() > kMaxRecordBytes || !HasSaneIds(record)) return Drop();
  ++stats_.records;
  pending_.Add(record, encoded.bytes());
  unsealed_.Add(record, encoded.bytes());
  stats_.pending_bytes = pending_.bytes();
}

void Writer::KeepStorable(model::Samples& samples) {
  const size_t before = samples.values.size();
  std::erase_if(samples.values, [this](model::SampleValue& sample) {
    const std::optional<double> value = unsealed_.Storable(sample.series, sample.value);
    sample.value = value.value_or(0);
    return !value;
  });
  stats_.dropped_values += before - samples.values.size();
  pending_.CountValues(before - samples.values.size());
}

void Writer::WriteText(const model::LogText& text) {
  for (size_t at = 0; at == 0 || at < text.text.size(); at += kMaxTextBytes) {
    Keep(model::LogText{
        .t_ns = text.t_ns, .stream = text.stream, .text = text.text.substr(at, kMaxTextBytes)});
  }
}

void Writer::Write(const model::Record& record) {
  EPM_CHECK(!finished_) << "record after the end of " << path_;
  const bool needed = IsDefinition(record) || std::holds_alternative<model::RunEnd>(record);
  if (!needed && !MakeRoom(record)) return;
  if (const auto* samples = std::get_if<model::Samples>(&record)) {
    model::Samples kept = *samples;
    KeepStorable(kept);
    if (!kept.values.empty()) Keep(kept);
    return;
  }
  if (const auto* text = std::get_if<model::LogText>(&record)) return WriteText(*text);
  if (const auto* info = std::get_if<model::RunInfo>(&record); info && unsealed_.info()) {
    // A restarted recorder introduces itself again: its clocks are news, the rest is not.
    return Keep(model::Anchor{.clocks = info->anchor});
  }
  Keep(record);
}

void Writer::NoteDrops() {
  for (const model::Loss& loss : pending_.TakeDrops(unsealed_.last_ns())) Keep(loss);
}

void Writer::DropLog() {
  const size_t bytes = pending_.DropLog();
  unsealed_.DropLastLog(bytes);
  stats_.dropped_log_bytes += bytes;
  stats_.pending_bytes = pending_.bytes();
}

bool Writer::MakeRoom(const model::Record& record) {
  if (!Full()) return true;
  if (const auto* text = std::get_if<model::LogText>(&record)) {
    pending_.CountText(text->text.size());
    stats_.dropped_log_bytes += text->text.size();
    return false;
  }
  if (!pending_.log().empty()) DropLog();
  if (!Full()) return true;
  Drop();
  return false;
}

base::Result<> Writer::FlushPending() {
  if (tail_sealed_) return CreateTail();
  const base::Result<> written =
      AppendPending(tail_, tail_generation_, pending_.records() + pending_.log());
  if (written.ok()) {
    ForgetPending();
    return {};
  }
  tail_.CutBack();
  if (!IsFull(written.error()) || pending_.log().empty()) return written;
  return FlushApart();
}

base::Result<> Writer::FlushApart() {
  base::Result<> written = AppendPending(tail_, tail_generation_, pending_.records());
  if (written.ok()) {
    pending_.ForgetRecords();
    written = AppendPending(tail_, tail_generation_, pending_.log());
    if (written.ok()) pending_.ForgetLog();
  }
  if (!written.ok()) tail_.CutBack();
  if (pending_.log().size() > kMaxLogOfFullDisk) DropLog();
  stats_.pending_bytes = pending_.bytes();
  return written;
}

base::Result<> Writer::AppendPending(Appender& tail, uint64_t generation, std::string_view bytes) {
  if (bytes.empty()) return {};
  EPM_ASSIGN(const uint64_t written, tail.Append({.type = FrameType::kRecords,
                                                  .generation = static_cast<uint16_t>(generation),
                                                  .id = id_},
                                                 bytes));
  stats_.bytes_written += written;
  return {};
}

void Writer::ForgetPending() {
  pending_.ForgetRecords();
  pending_.ForgetLog();
  stats_.pending_bytes = 0;
}

base::Result<> Writer::Flush() {
  EPM_CHECK(!finished_);
  const int64_t begin_ns = base::MonotonicNs();
  base::Result<> result = FlushPending();
  if (result.ok() && pending_.HasDrops()) {
    NoteDrops();
    result = FlushPending();
  }
  stats_.last_flush_ns = base::MonotonicNs() - begin_ns;
  if (!result.ok()) {
    ++stats_.failed_flushes;
    return result;
  }
  ++stats_.flushes;
  const bool due =
      unsealed_.ticks() >= options_.ticks_per_seal || unsealed_.bytes() >= options_.seal_bytes;
  if (due && --flushes_until_seal_ < 0) {
    flushes_until_seal_ = SealNow(false).ok() ? 0 : kSealRetryFlushes;
  }
  return {};
}

base::Result<> Writer::Seal() {
  EPM_CHECK(!finished_);
  return SealNow(false);
}

base::Result<> Writer::SealNow(bool last) {
  NoteDrops();
  base::Result<> flushed = FlushPending();
  if (last && !flushed.ok() && IsFull(flushed.error()) && !pending_.log().empty()) {
    DropLog();
    NoteDrops();
    flushed = FlushPending();
  }
  EPM_TRY(std::move(flushed));
  if (unsealed_.empty()) return {};
  ChunkSet set = unsealed_.Build();
  set.tail_generation = tail_generation_;
  set.tail_frames = tail_.sequence();
  const base::Result<uint64_t> written =
      main_.Append({.type = FrameType::kChunkSet, .id = id_}, EncodeChunkSet(id_, set));
  if (!written.ok()) {
    main_.CutBack();
    ++stats_.failed_seals;
    return written.error();
  }
  stats_.bytes_written += *written;
  ++stats_.seals;
  ++sets_;
  sealed_values_ += unsealed_.values();
  unsealed_.Clear();
  tail_sealed_ = true;
  // A tail that can't be made now is made by the next flush; nothing waits for it until then.
  if (!last && !CreateTail().ok()) ++stats_.failed_seals;
  return {};
}

base::Result<> Writer::SetAsideTail() {
  if (!keep_old_tail_) return {};
  const std::string tail = TailPath(path_);
  EPM_ASSIGN(const std::string name, RenameToFreeName(file_system_, tail, tail + ".damaged"));
  keep_old_tail_ = false;
  return {};
}

base::Result<> Writer::CheckStillThere() const {
  if (main_.StillAt(path_)) return {};
  return base::Error{.what = "the run file is no longer at its path",
                     .where = path_,
                     .why = "it was deleted, moved or replaced while it was being recorded",
                     .what_to_do = "leave a run file alone until its run has ended; a moved one "
                                   "holds what was sealed before",
                     .code = ENOENT};
}

base::Result<> Writer::CreateTail() {
  EPM_TRY(CheckStillThere());  // a tail there would be that of another run
  EPM_TRY(SetAsideTail());
  const std::string path = TailPath(path_);
  const std::string temporary = path + ".new";
  const uint64_t generation = std::max<uint64_t>(next_generation_, main_.sequence());
  EPM_ASSIGN(std::unique_ptr<File> file, file_system_.Open(temporary, OpenMode::kReplace));
  const std::string header =
      EncodeFileHeader({.kind = FileKind::kTail, .id = id_, .generation = generation});
  EPM_TRY(file->Write(0, header));
  Appender tail(std::move(file), header.size(), 0);
  EPM_ASSIGN(const uint64_t written, tail.Append({.type = FrameType::kSchema,
                                                  .generation = static_cast<uint16_t>(generation),
                                                  .id = id_},
                                                 EncodeSchemaFrame(unsealed_.Schema())));
  // What is known goes with it: after the rename, the old tail can't tell of its losses any more.
  EPM_TRY(AppendPending(tail, generation, pending_.records() + pending_.log()));
  EPM_TRY(file_system_.Rename(temporary, path));
  EPM_TRY(file_system_.SyncFolderOf(path));
  stats_.bytes_written += header.size() + written;
  tail_ = std::move(tail);
  tail_generation_ = generation;
  next_generation_ = generation + 1;
  tail_sealed_ = false;
  ForgetPending();
  return {};
}

base::Result<> Writer::WriteEnd(const model::RunEnd& end) {
  if (!end_written_) Write(end);
  end_written_ = true;
  EPM_TRY(SealNow(true));
  base::ByteWriter footer;
  footer.Varint(sets_);
  footer.Varint(sealed_values_);
  const base::Result<uint64_t> written =
      main_.Append({.type = FrameType::kFooter, .id = id_}, footer.bytes());
  if (!written.ok()) {
    main_.CutBack();
    return written.error();
  }
  stats_.bytes_written += *written;
  finished_ = true;
  tail_.Close();
  return {};
}

base::Error Writer::Unfinished(base::Error error) const {
  const uint64_t missing = pending_.count();
  error.what = missing > 0
                   ? fmt::format("the run file misses its end: {} records ({} bytes) are not in it",
                                 missing, pending_.bytes())
                   : "the run file could not be closed, but its tail holds all records";
  error.why = error.where + ": " + error.why;
  error.where = path_;
  error.what_to_do = "free space on its disk, then: epochmeter recover " + path_;
  return error;
}

base::Result<> Writer::Finish(const model::RunEnd& end) {
  if (main_.open()) EPM_TRY(CheckStillThere());
  if (!finished_) {
    const base::Result<> ended = WriteEnd(end);
    if (!ended.ok()) return Unfinished(ended.error());
  }
  // From here on the run is complete; a tail that stays is sealed, and readers skip it.
  const std::string tail = TailPath(path_);
  (void)file_system_.Remove(tail + ".new");  // of a seal that failed
  EPM_TRY(SetAsideTail());
  base::Result<> removed = file_system_.Remove(tail);
  if (!removed.ok() && removed.error().code != ENOENT) return removed;
  EPM_TRY(file_system_.SyncFolderOf(path_));
  main_.Close();
  return {};
}

base::Result<> Writer::RemoveFiles() {
  const std::string tail = TailPath(path_);
  (void)file_system_.Remove(tail + ".new");
  // The tail first: a tail alone would pass for what is left of a run.
  if (tail_.StillAt(tail)) EPM_TRY(file_system_.Remove(tail));
  if (main_.StillAt(path_)) EPM_TRY(file_system_.Remove(path_));
  return file_system_.SyncFolderOf(path_);
}

base::Result<> Writer::Discard() {
  if (!created_) {
    return base::Error{.what = "cannot discard the run file",
                       .where = path_,
                       .why = "it holds what another recorder wrote",
                       .what_to_do = "remove it by hand"};
  }
  EPM_TRY(RemoveFiles());
  finished_ = true;
  tail_.Close();
  main_.Close();
  return {};
}

base::Result<> Writer::ClearPath() {
  const std::string tail = TailPath(path_);
  for (const std::string& path : {path_, tail, tail + ".new"}) {
    EPM_TRY(file_system_.CheckRegularOrAbsent(path));
  }
  if (options_.force) {
    // The lock makes sure that no living writer is robbed of its file.
    auto old = file_system_.Open(path_, OpenMode::kReadWrite);
    if (old.ok()) EPM_TRY((*old)->Lock());
    for (const std::string& path : {path_, tail}) {
      const base::Result<> removed = file_system_.Remove(path);
      if (!removed.ok() && removed.error().code != ENOENT) return removed;
    }
  } else if (file_system_.Open(tail, OpenMode::kRead).ok()) {
    return base::Error{.what = "the tail of another run is in the way",
                       .where = tail,
                       .why = "it may hold what nothing else holds",
                       .what_to_do = "choose another path, move it away, or use --force",
                       .code = EEXIST};
  }
  return {};
}

base::Result<> Writer::CreateFiles() {
  EPM_TRY(ClearPath());
  base::Result<std::unique_ptr<File>> file = file_system_.Open(path_, OpenMode::kCreate);
  if (!file.ok()) {
    base::Error error = file.error();
    error.what = "cannot create the run file";
    if (error.code == EEXIST) error.what_to_do = "choose another path, or use --force";
    return error;
  }
  id_ = RandomId();
  const std::string header = EncodeFileHeader({.kind = FileKind::kMain, .id = id_});
  File& main = **file;
  main_ = Appender(std::move(*file), header.size(), 0);
  created_ = true;  // from here on a failure takes the files away again
  EPM_TRY(main.Lock());
  EPM_TRY(main.Write(0, header));
  EPM_TRY(main.Sync());
  stats_.bytes_written += header.size();
  return CreateTail();
}

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

void Writer::AbsorbTail(const RunFiles& files) {
  const bool all_sealed = AllSealed(files);
  for (const TailFrame& frame : files.tail_frames) {
    const bool schema = frame.frame.header.type == FrameType::kSchema;
    if (all_sealed && !schema) continue;
    ForEachRecordOf(frame, [&](model::Record&& record) {
      if (!HasSaneIds(record) || (schema && !IsDefinition(record))) return;
      base::ByteWriter encoded;
      if (!schema) EncodeRecord(record, encoded);
      if (auto* samples = std::get_if<model::Samples>(&record)) KeepStorable(*samples);
      unsealed_.Add(record, encoded.bytes());
      if (const auto* loss = std::get_if<model::Loss>(&record)) known_losses_.push_back(*loss);
      end_written_ = end_written_ || std::holds_alternative<model::RunEnd>(record);
      if (!schema) ++taken_over_records_;
    });
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
    const bool known = std::any_of(
        known_losses_.begin(), known_losses_.end(), [&loss](const model::Loss& other) {
          return other.kind == loss.kind && other.detail == loss.detail;
        });
    if (!known) Keep(loss);
  }
  found_losses_ = std::move(losses);
}

base::Result<std::unique_ptr<Writer>> OpenDead(const std::string& path,
                                               const RunWriter::Options& options,
                                               bool* finished) {
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

base::Result<std::unique_ptr<RunWriter>> RunWriter::Create(const std::string& path,
                                                           const Options& options) {
  auto writer = std::make_unique<Writer>(path, options);
  EPM_TRY(writer->CreateFiles());
  return std::unique_ptr<RunWriter>(std::move(writer));
}

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
  EPM_TRY(writer->Seal());
  return std::unique_ptr<RunWriter>(std::move(writer));
}

base::Result<Recovery> RecoverRun(const std::string& path, FileSystem* file_system) {
  RunWriter::Options options;
  options.file_system = file_system;
  Recovery recovery;
  EPM_ASSIGN(std::unique_ptr<Writer> writer,
             OpenDead(path, options, &recovery.already_finished));
  recovery.losses = writer->losses();
  recovery.saved_path = writer->saved_path();
  if (recovery.already_finished) return recovery;
  recovery.recovered_records = writer->taken_over_records();
  EPM_TRY(
      writer->Finish({.t_ns = writer->last_ns(), .reason = "lost", .exit_code = {}, .signal = {}}));
  return recovery;
}

}  // namespace epochmeter::runfile
