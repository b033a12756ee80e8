// SPDX-License-Identifier: Apache-2.0
#include "runfile/run_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/bytes.h"
#include "base/check.h"
#include "base/clock.h"
#include "runfile/beside.h"
#include "runfile/frame.h"
#include "runfile/record_codec.h"
#include "runfile/writer.h"

namespace epochmeter::runfile {
namespace {

// Output longer than this comes in several records.
constexpr size_t kMaxTextBytes = size_t{1} << 20;
// After a failed seal, so many flushes pass before the next one.
constexpr int kSealRetryFlushes = 10;

// So much output waits for room on a full disk.
constexpr size_t kMaxLogOfFullDisk = size_t{256} << 10;

bool IsFull(const base::Error& error) { return error.code == ENOSPC || error.code == EDQUOT; }

}  // namespace

void Writer::Keep(const model::Record& record) {
  if (encoded_.size() > kMaxTextBytes) encoded_ = {};
  encoded_.Clear();
  EncodeRecord(record, encoded_);
  if (encoded_.size() > kMaxRecordBytes || !HasSaneIds(record)) return Drop(record);
  ++stats_.records;
  pending_.Add(record, encoded_.bytes());
  unsealed_.Add(record, encoded_.bytes());
  stats_.pending_bytes = pending_.bytes();
}

void Writer::KeepStorable(model::Samples& samples) {
  const uint64_t dropped = unsealed_.MakeStorable(samples);
  stats_.dropped_values += dropped;
  pending_.CountValues(dropped);
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
    auto& kept = std::get<model::Samples>(kept_);
    kept = *samples;  // into the memory of the tick before
    KeepStorable(kept);
    if (!kept.values.empty()) Keep(kept_);
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
  const int64_t start_ns = info() ? info()->anchor.mono_ns : 0;
  for (const model::Loss& loss : pending_.TakeDrops(unsealed_.last_ns(), start_ns)) Keep(loss);
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
    pending_.CountText(text->text.size(), text->t_ns);
    stats_.dropped_log_bytes += text->text.size();
    return false;
  }
  if (!pending_.log().empty()) DropLog();
  if (!Full()) return true;
  Drop(record);
  return false;
}

base::Result<> Writer::WriteToTail(std::string_view bytes) {
  base::Result<> written =
      tail_sealed_ ? CreateTail(bytes) : AppendPending(tail_, tail_generation_, bytes);
  if (!written.ok() && !tail_sealed_) tail_.CutBack();
  return written;
}

base::Result<> Writer::FlushPending() {
  if (!main_made_) EPM_TRY(MakeMain());
  while (tail_sealed_ || !pending_.empty()) {
    base::Result<> written =
        WriteToTail(std::string(pending_.records().front()).append(pending_.log().front()));
    if (!written.ok()) {
      if (!IsFull(written.error()) || pending_.log().empty()) return written;
      return FlushApart();
    }
    pending_.PopRecords();
    pending_.PopLog();
    stats_.pending_bytes = pending_.bytes();
  }
  return {};
}

base::Result<> Writer::FlushApart() {
  base::Result<> written;
  while (written.ok() && (tail_sealed_ || !pending_.records().empty())) {
    written = WriteToTail(pending_.records().front());
    if (written.ok()) pending_.PopRecords();
  }
  while (written.ok() && !pending_.log().empty()) {
    written = WriteToTail(pending_.log().front());
    if (written.ok()) pending_.PopLog();
  }
  if (pending_.log().bytes() > kMaxLogOfFullDisk) DropLog();
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
    if (result.error().code == ESTALE) Reopen();
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
  EPM_TRY(FindMain());  // nothing is sealed into a file that nobody finds
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
  if (!last && !CreateTail({}).ok()) ++stats_.failed_seals;
  return {};
}

base::Result<> Writer::SetAsideTail() {
  if (!keep_old_tail_) return {};
  const std::string tail = TailPath(path_);
  EPM_ASSIGN(const std::string name, RenameToFreeName(file_system_, tail, tail + ".damaged"));
  keep_old_tail_ = false;
  return {};
}

base::Result<> Writer::FindMain() {
  if (main_.StillAt(path_)) return {};
  const std::string now = main_.file().PathNow();
  if (!now.empty() && main_.StillAt(now)) {
    path_ = now;
    return {};
  }
  return base::Error{.what = "the run file is no longer at its path",
                     .where = path_,
                     .why = "it was deleted or replaced while it was being recorded",
                     .what_to_do =
                         "leave a run file alone until its run has ended; its tail may hold what "
                         "was recorded last",
                     .code = ENOENT};
}

base::Result<Appender> Writer::WriteNewTail(const std::string& path, uint64_t generation,
                                            std::string_view records) {
  EPM_ASSIGN(std::unique_ptr<File> file, file_system_.Open(path, OpenMode::kReplace));
  const std::string header =
      EncodeFileHeader({.kind = FileKind::kTail, .id = id_, .generation = generation});
  EPM_TRY(file->Write(0, header));
  Appender tail(std::move(file), header.size(), 0);
  EPM_ASSIGN(const uint64_t written, tail.Append({.type = FrameType::kSchema,
                                                  .generation = static_cast<uint16_t>(generation),
                                                  .id = id_},
                                                 EncodeSchemaFrame(unsealed_.Schema())));
  // What is known goes with it: after the rename, the old tail can't tell of its losses any more.
  EPM_TRY(AppendPending(tail, generation, records));
  stats_.bytes_written += header.size() + written;
  return tail;
}

// A tail that stayed where the main file was before it was moved; sealed, so nobody misses it.
void Writer::RemoveLeftTail() {
  if (!tail_.open()) return;
  const std::string& left = tail_.file().path();
  if (left != TailPath(path_) && tail_.StillAt(left)) (void)file_system_.Remove(left);
}

base::Result<> Writer::CreateTail(std::string_view records) {
  EPM_TRY(FindMain());  // a tail there would be that of another run
  EPM_TRY(SetAsideTail());
  const std::string path = TailPath(path_);
  const std::string temporary = path + ".new";
  const uint64_t generation = std::max<uint64_t>(next_generation_, main_.sequence());
  base::Result<Appender> tail = WriteNewTail(temporary, generation, records);
  if (!tail.ok()) {
    (void)file_system_.Remove(temporary);  // a full disk needs the room
    return tail.error();
  }
  EPM_TRY(file_system_.Rename(temporary, path));
  EPM_TRY(file_system_.SyncFolderOf(path));
  tail->file().SetPath(path);
  RemoveLeftTail();
  tail_ = std::move(tail).value();
  tail_generation_ = generation;
  next_generation_ = generation + 1;
  tail_sealed_ = false;
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
  RemoveLeftTail();
  tail_.Close();
  return {};
}

base::Error Writer::Unfinished(base::Error error) const {
  const uint64_t missing = pending_.count();
  error.what = missing > 0
                   ? fmt::format("the run file misses its end: {} records ({} bytes) are not in it",
                                 missing, pending_.bytes())
                   : "the run file could not be closed; it and its tail hold all records";
  error.why = error.where + ": " + error.why;
  error.where = path_;
  const bool full = error.code == ENOSPC || error.code == EDQUOT;
  error.what_to_do = std::string(full ? "free space on its disk" : "see to its disk") +
                     ", then: epochmeter recover " + path_;
  return error;
}

base::Result<> Writer::Finish(const model::RunEnd& end) {
  if (main_.open()) EPM_TRY(FindMain());
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

}  // namespace epochmeter::runfile
