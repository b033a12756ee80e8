// SPDX-License-Identifier: Apache-2.0
// Main and tail of one run as they are found on disk, with what must be read of each. Shared by
// the reader and by a writer that resumes.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/record.h"
#include "runfile/chunk_set.h"
#include "runfile/file_system.h"
#include "runfile/frame.h"

namespace epochmeter::runfile {

std::string TailPath(const std::string& path);

struct ChunkSetRef {
  FrameRef frame;
  std::optional<Prologue> prologue;  // nothing when damaged
  bool ignored = false;              // its content is in the tail or in a later set
};

struct TailFrame {
  FrameRef frame;
  std::string payload;
};

struct RunFiles {
  std::string path;
  std::unique_ptr<File> main;  // null when only the tail is there
  FileScan main_scan;
  std::vector<ChunkSetRef> sets;
  bool finished = false;
  bool locked = false;  // with kReadWrite, unless the file system has no locks

  std::unique_ptr<File> tail;  // null when there is none of this run; its bytes in memory
  FileScan tail_scan;
  uint64_t tail_generation = 0;
  bool tail_damaged = false;           // more than a torn end
  bool tail_foreign = false;           // a file is there, but not of this run, or unreadable
  std::vector<TailFrame> tail_frames;  // intact ones, schema frames included
  uint64_t sealed_tail_frames = 0;     // these first ones are in the main file

  std::vector<model::Loss> losses;
  FileId id() const { return main_scan.id.value_or(FileId{}); }
};

// `mode` is kRead or kReadWrite; the latter takes the write lock first. Fails when there is nothing
// that could be read as a run.
base::Result<RunFiles> OpenRunFiles(FileSystem& file_system, const std::string& path,
                                    OpenMode mode);

// Loss of a byte range of a file.
model::Loss FileLoss(std::string kind, model::LossSeverity severity, const std::string& path,
                     uint64_t offset, uint64_t bytes, const std::string& reason);
// Whether a record's ids are ones that can be built into tables, and its times possible.
bool HasSaneIds(const model::Record& record);
// Whether it is one of those that a schema consists of, and sane.
bool IsDefinition(const model::Record& record);
// Losses of the records of a byte range that were left out.
void AddSkipped(const SkippedRecords& skipped, const std::string& path, uint64_t offset,
                uint64_t bytes, std::vector<model::Loss>* losses);
// The records of a tail frame or of a schema frame.
SkippedRecords ForEachRecordOf(const TailFrame& frame,
                               const std::function<void(model::Record&&)>& each);
// Payload of a schema frame.
std::string EncodeSchemaFrame(std::string_view records);

}  // namespace epochmeter::runfile
