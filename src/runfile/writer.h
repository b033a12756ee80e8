// SPDX-License-Identifier: Apache-2.0
// The writer itself: run_writer.cc has what a running one does, take_over.cc how it goes on with
// the files of one that died. One thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "runfile/appender.h"
#include "runfile/file_system.h"
#include "runfile/pending.h"
#include "runfile/run_files.h"
#include "runfile/run_writer.h"
#include "runfile/unsealed.h"

namespace epochmeter::runfile {

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
  const std::string& kept_tail() const override { return kept_tail_; }
  bool locked() const override { return locked_; }
  const std::string& path() const override { return path_; }
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
  void Drop(const model::Record& record) {
    ++stats_.dropped_records, pending_.CountRecord(TimeOf(record));
  }
  void NoteDrops();
  void DropLog();
  bool MakeRoom(const model::Record& record);  // false: the record was given up and counted
  base::Error Unfinished(base::Error error) const;
  base::Result<> FlushPending();
  base::Result<> WriteToTail(std::string_view bytes);  // one frame; makes the tail where it must
  base::Result<> FlushApart();  // on a full disk: samples and events before output
  base::Result<> AppendPending(Appender& tail, uint64_t generation, std::string_view bytes);
  base::Result<> SealNow(bool last);
  // A new tail with these records, over the one that is sealed.
  base::Result<> CreateTail(std::string_view records);
  base::Result<Appender> WriteNewTail(const std::string& path, uint64_t generation,
                                      std::string_view records);
  base::Result<> FindMain();  // follows a main file that was moved
  void RemoveLeftTail();
  base::Result<> OpenMain();
  void Reopen();
  base::Result<> MakeMain();  // can be called again when it failed
  base::Result<> ClearPath();
  base::Result<> KeepStrayTail();
  base::Result<> RemoveFiles();
  base::Result<> WriteEnd(const model::RunEnd& end);
  base::Result<> Absorb(const RunFiles& files);
  void AbsorbTail(RunFiles& files);
  base::Result<> AbsorbSet(const RunFiles& files, const ChunkSetRef& set, bool newest);
  base::Result<> SetAsideTail();
  void TellLosses(std::vector<model::Loss> losses);

  std::string path_;
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
  base::ByteWriter encoded_;               // the record that is written now
  model::Record kept_ = model::Samples{};  // and its storable samples
  int flushes_until_seal_ = 0;             // back-off after a failed seal
  bool main_made_ = false;                 // its header is on disk
  bool locked_ = true;
  bool created_ = false;  // the files are ours to remove
  bool end_written_ = false;
  bool finished_ = false;
  uint64_t sealed_values_ = 0, sets_ = 0;
  uint64_t taken_over_records_ = 0;
  std::string kept_tail_;
  std::string saved_path_;                 // of the torn end of a main file that was taken over
  std::vector<model::Loss> found_losses_;  // when it was taken over
  std::vector<model::Loss> known_losses_;  // of these, the ones that its tail tells of already
  WriterStats stats_;
};

}  // namespace epochmeter::runfile
