// SPDX-License-Identifier: Apache-2.0
#include "runfile/run_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "base/bytes.h"
#include "model/limits.h"
#include "runfile/unsealed.h"

namespace epochmeter::runfile {
namespace {

using model::LossSeverity;

constexpr size_t kPrologueGuess = 4096;
constexpr uint64_t kMaxTailBytes = uint64_t{1} << 31;

base::Error NotARunFile(const std::string& path, std::string why) {
  return {.what = "not a run file",
          .where = path,
          .why = std::move(why),
          .what_to_do = "check the path; a run file is made by epochmeter run"};
}

base::Result<Prologue> ReadPrologue(const File& file, const FrameRef& frame, bool* good) {
  Prologue prologue;
  size_t size = std::min<size_t>(kPrologueGuess, frame.header.length);
  for (int round = 0; round < 2; ++round) {
    EPM_ASSIGN(const std::string head, file.Read(frame.payload_offset(), size));
    size_t needed = 0;
    const PrologueStatus status =
        DecodePrologue(frame.header.id, head, frame.header.length, &prologue, &needed);
    *good = status == PrologueStatus::kGood;
    if (status != PrologueStatus::kNeedsMore) break;
    size = needed;
  }
  return prologue;
}

class Opener {
 public:
  Opener(FileSystem& file_system, const std::string& path, OpenMode mode)
      : file_system_(file_system), mode_(mode) {
    files_.path = path;
  }

  base::Result<RunFiles> Open() {
    if (mode_ == OpenMode::kReadWrite) EPM_TRY(OpenMain());
    // The tail first: what is sealed in between is then found in the main file as well.
    EPM_TRY(ReadTail());
    if (mode_ == OpenMode::kRead) EPM_TRY(OpenMain());
    if (files_.main == nullptr && files_.tail == nullptr) return missing_;
    EPM_TRY(ScanMain());
    EPM_TRY(ScanTail());
    EPM_TRY(ListSets());
    EPM_TRY(MatchSetsAndTail());
    AddCut();
    return std::move(files_);
  }

 private:
  base::Result<> OpenMain() {
    base::Result<std::unique_ptr<File>> main = file_system_.Open(files_.path, mode_);
    if (!main.ok()) {
      base::Error error = main.error();
      error.what = "cannot open the run file";
      if (error.code != ENOENT || mode_ == OpenMode::kReadWrite) return error;
      missing_ = std::move(error);
      return {};
    }
    files_.main = std::move(main).value();
    if (mode_ == OpenMode::kRead) return {};
    EPM_ASSIGN(files_.locked, files_.main->Lock());
    return {};
  }

  base::Result<> ReadTail() {
    const std::string path = TailPath(files_.path);
    base::Result<std::unique_ptr<File>> tail = file_system_.Open(path, OpenMode::kRead);
    if (!tail.ok()) {
      if (tail.error().code == ENOENT) return {};
      AddLoss("file.unreadable_tail", LossSeverity::kDataLoss, path, 0, 0, tail.error().why);
      files_.tail_foreign = true;
      return {};
    }
    EPM_ASSIGN(const uint64_t size, (*tail)->Size());
    EPM_ASSIGN(std::string bytes,
               (*tail)->Read(0, static_cast<size_t>(std::min(size, kMaxTailBytes))));
    tail_id_ = DecodeFileHeader(bytes);
    files_.tail = BytesAsFile(std::move(bytes), path);
    return {};
  }

  base::Result<> ScanMain() {
    std::optional<FileId> fallback;
    if (tail_id_) fallback = tail_id_->id;
    if (files_.main == nullptr) {
      files_.main_scan.id = fallback;
      if (!fallback) return missing_;
      AddLoss("file.missing_main", LossSeverity::kDataLoss, files_.path, 0, 0,
              "only the tail is there; what was sealed before it is missing");
      return {};
    }
    EPM_ASSIGN(files_.main_scan, ScanFile(*files_.main, fallback));
    const FileScan& scan = files_.main_scan;
    if (scan.header && scan.header->kind == FileKind::kTail) {
      return NotARunFile(files_.path, "it is the tail of one; open the file without .tail");
    }
    if (scan.header && scan.header->major > kMajorVersion) {
      return base::Error{.what = "the run file is of a newer version",
                         .where = files_.path,
                         .why = fmt::format("version {}.{}, this program reads {}.x",
                                            scan.header->major, scan.header->minor, kMajorVersion),
                         .what_to_do = "use a newer epochmeter"};
    }
    if (!scan.header && scan.frames.empty() && !fallback) {
      return NotARunFile(files_.path, scan.size == 0 ? "it is empty" : "it has no valid header");
    }
    AddDamages(scan);
    return {};
  }

  base::Result<> ScanTail() {
    if (files_.tail == nullptr) return {};
    const std::optional<FileId>& id = files_.main_scan.id;
    EPM_ASSIGN(files_.tail_scan, ScanFile(*files_.tail, id));
    const FileScan& scan = files_.tail_scan;
    const bool ours =
        scan.id && id && *scan.id == *id && (!scan.header || scan.header->kind == FileKind::kTail);
    if (!ours) {
      const std::string reason =
          scan.id ? "it belongs to another run (file id " + FileIdText(*scan.id) + ")"
                  : "it has no valid header";
      AddLoss("file.foreign_tail", LossSeverity::kDataLoss, scan.path, 0, scan.size, reason);
      files_.tail.reset();
      files_.tail_foreign = true;
      return {};
    }
    AddDamages(scan);
    files_.tail_damaged = std::any_of(scan.damages.begin(), scan.damages.end(),
                                      [](const Damage& damage) { return !damage.torn; });
    return ReadTailFrames();
  }

  base::Result<> ReadTailFrames() {
    const FileScan& scan = files_.tail_scan;
    if (scan.header) files_.tail_generation = scan.header->generation;
    for (const FrameRef& frame : scan.frames) {
      if (!scan.header) files_.tail_generation = frame.header.generation;
      EPM_ASSIGN(std::optional<std::string> payload, ReadPayload(*files_.tail, frame));
      if (payload) {
        files_.tail_frames.push_back({.frame = frame, .payload = std::move(*payload)});
        continue;
      }
      files_.tail_damaged = true;
      damaged_tail_frames_.push_back(frame);
    }
    return {};
  }

  base::Result<> ListSets() {
    for (const FrameRef& frame : files_.main_scan.frames) {
      if (frame.header.type == FrameType::kChunkSet) {
        bool good = false;
        EPM_ASSIGN(Prologue prologue, ReadPrologue(*files_.main, frame, &good));
        ChunkSetRef& set = files_.sets.emplace_back();
        set.frame = frame;
        if (good) set.prologue = std::move(prologue);
      } else if (frame.header.type == FrameType::kFooter) {
        files_.finished = true;
      } else {
        AddLoss("file.unknown_frame", LossSeverity::kDataLoss, files_.path, frame.offset,
                frame.end() - frame.offset,
                fmt::format("frame type {}", static_cast<int>(frame.header.type)));
      }
    }
    return {};
  }

  base::Result<bool> IsIntact(const ChunkSetRef& set) {
    if (!set.prologue) return false;
    EPM_ASSIGN(const auto payload, ReadPayload(*files_.main, set.frame));
    return payload.has_value();
  }

  bool MadeOfTail(const ChunkSetRef& set) const {
    const uint64_t generation = files_.tail_generation;
    if (!set.prologue) return set.frame.header.sequence == generation;
    if (files_.tail_scan.header) return set.prologue->tail_generation == generation;
    return (set.prologue->tail_generation & 0xFFFF) == generation;
  }

  base::Result<> MatchSetsAndTail() {
    for (size_t i = 0; i + 1 < files_.sets.size(); ++i) {
      const std::optional<Prologue>& mine = files_.sets[i].prologue;
      const std::optional<Prologue>& next = files_.sets[i + 1].prologue;
      if (!mine || !next || mine->tail_generation != next->tail_generation) continue;
      EPM_ASSIGN(files_.sets[i].ignored, IsIntact(files_.sets[i + 1]));
    }
    if (files_.tail == nullptr) return {};
    EPM_TRY(MatchTail());
    for (const FrameRef& frame : damaged_tail_frames_) {
      if (frame.header.sequence < files_.sealed_tail_frames) continue;
      AddLoss("file.damaged_frame", LossSeverity::kDataLoss, files_.tail_scan.path, frame.offset,
              frame.end() - frame.offset, "wrong checksum");
    }
    return {};
  }

  base::Result<> MatchTail() {
    for (ChunkSetRef& set : files_.sets) {
      if (set.ignored || !MadeOfTail(set)) continue;
      EPM_ASSIGN(const bool intact, IsIntact(set));
      if (intact) {
        files_.sealed_tail_frames = std::max(files_.sealed_tail_frames, set.prologue->tail_frames);
        continue;
      }
      set.ignored = true;
      AddLoss("file.damaged_frame", LossSeverity::kInfo, files_.path, set.frame.offset,
              set.frame.end() - set.frame.offset, "wrong checksum, but the tail still holds it");
    }
    return {};
  }

  // A writer removes the tail only when the end is in the main file: neither of both means that the
  // file was cut, or copied without its tail.
  void AddCut() {
    if (files_.finished || files_.main == nullptr || files_.tail != nullptr) return;
    if (files_.tail_foreign) return;
    AddLoss("file.cut", LossSeverity::kDataLoss, files_.path, files_.main_scan.size, 0,
            "the file has no end and no tail beside it; what came after is not here");
  }

  void AddDamages(const FileScan& scan) {
    for (const Damage& damage : scan.damages) {
      const bool header = damage.offset == 0;
      AddLoss(damage.torn ? "file.torn_tail"
              : header    ? "file.damaged_header"
                          : "file.damaged_frame",
              damage.torn ? LossSeverity::kInfo : LossSeverity::kDataLoss, scan.path, damage.offset,
              damage.bytes, damage.reason);
    }
  }

  void AddLoss(std::string kind, LossSeverity severity, const std::string& path, uint64_t offset,
               uint64_t bytes, const std::string& reason) {
    files_.losses.push_back(FileLoss(std::move(kind), severity, path, offset, bytes, reason));
  }

  FileSystem& file_system_;
  OpenMode mode_;
  RunFiles files_;
  std::optional<FileHeader> tail_id_;
  std::vector<FrameRef> damaged_tail_frames_;
  base::Error missing_;
};

}  // namespace

std::string TailPath(const std::string& path) { return path + ".tail"; }

model::Loss FileLoss(std::string kind, LossSeverity severity, const std::string& path,
                     uint64_t offset, uint64_t bytes, const std::string& reason) {
  return {.t_ns = 0,
          .severity = severity,
          .kind = std::move(kind),
          .count = bytes,
          .detail = fmt::format("bytes {} to {} of {}: {}", offset, offset + bytes, path, reason),
          .help = severity == LossSeverity::kInfo
                      ? "The last write did not come to its end, or the file was cut there."
                      : "Copy the file again if the original is intact; the rest is readable."};
}

bool HasSaneIds(const model::Record& record) {
  if (!std::holds_alternative<model::Loss>(record) && !model::HasPossibleTimes(record))
    return false;
  if (const auto* entity = std::get_if<model::EntityDef>(&record)) return entity->id < kMaxId;
  const auto* series = std::get_if<model::SeriesDef>(&record);
  return series == nullptr || (series->id < kMaxId && series->entity < kMaxId);
}

bool IsDefinition(const model::Record& record) {
  return HasSaneIds(record) && (std::holds_alternative<model::RunInfo>(record) ||
                                std::holds_alternative<model::EntityDef>(record) ||
                                std::holds_alternative<model::SeriesDef>(record));
}

void AddSkipped(const SkippedRecords& skipped, const std::string& path, uint64_t offset,
                uint64_t bytes, std::vector<model::Loss>* losses) {
  if (skipped.unknown > 0) {
    losses->push_back(FileLoss("file.unknown_record", LossSeverity::kDataLoss, path, offset, bytes,
                               fmt::format("{} records of a newer version", skipped.unknown)));
  }
  if (skipped.damaged > 0) {
    losses->push_back(FileLoss("file.damaged_record", LossSeverity::kDataLoss, path, offset, bytes,
                               "records that make no sense"));
  }
}

std::string EncodeSchemaFrame(std::string_view records) {
  base::ByteWriter out;
  out.Varint(records.size());
  out.Raw(Compress(records));
  return out.Take();
}

SkippedRecords ForEachRecordOf(const TailFrame& frame,
                               const std::function<void(model::Record&&)>& each) {
  if (frame.frame.header.type == FrameType::kRecords) return ForEachRecord(frame.payload, each);
  if (frame.frame.header.type != FrameType::kSchema) return {.unknown = 1, .damaged = 0};
  base::ByteReader in(frame.payload);
  uint64_t raw_bytes = 0;
  std::string_view stored;
  std::string records;
  if (!in.Varint(&raw_bytes) || raw_bytes > kMaxSectionBytes || !in.Raw(in.remaining(), &stored) ||
      !Decompress(stored, static_cast<size_t>(raw_bytes), &records)) {
    return {.unknown = 0, .damaged = 1};
  }
  return ForEachRecord(records, each);
}

base::Result<RunFiles> OpenRunFiles(FileSystem& file_system, const std::string& path,
                                    OpenMode mode) {
  return Opener(file_system, path, mode).Open();
}

}  // namespace epochmeter::runfile
