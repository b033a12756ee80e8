// SPDX-License-Identifier: Apache-2.0
// What a crash, a power failure, a failing disk or damage may cost: never what was acknowledged,
// never a wrong value, and never silently.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>

#include "runfile/memory_file_system.h"
#include "runfile/recover.h"
#include "runfile/run_reader.h"
#include "runfile/run_writer.h"
#include "runfile/test_run.h"

namespace epochmeter::runfile {
namespace {

using Loss = MemoryFileSystem::Loss;
constexpr char kPath[] = "a.emr";
constexpr char kTail[] = "a.emr.tail";

RunWriter::Options OptionsFor(MemoryFileSystem& files, uint32_t ticks_per_seal) {
  RunWriter::Options options;
  options.file_system = &files;
  options.ticks_per_seal = ticks_per_seal;
  return options;
}

// Writes a run tick by tick and knows what was acknowledged.
class Recording {
 public:
  Recording(uint64_t seed, int ticks) : records_(MakeRun(seed, ticks, 3)) {
    for (size_t i = 0; i < records_.size(); ++i) {
      if (std::holds_alternative<model::Samples>(records_[i])) ticks_.push_back(i);
    }
    ticks_.push_back(records_.size());
  }

  const std::vector<model::Record>& records() const { return records_; }
  size_t acknowledged() const { return acknowledged_; }
  size_t written() const { return written_; }
  // What a reader should see when the first `count` records survived.
  const std::string& Expected(size_t count) {
    std::string& text = expected_[count];
    if (text.empty() && count > 0) {
      text = Fingerprint(BuildRun({records_.begin(), records_.begin() + static_cast<long>(count)}));
    }
    return text;
  }
  bool IsAcknowledgedOrWritten(const model::Run& run) {
    // Flushes that failed may have reached the disk all the same.
    const std::string text = Fingerprint(run);
    if (text == Expected(acknowledged_) || text == Expected(written_)) return true;
    return std::any_of(ticks_.begin(), ticks_.end(), [&](size_t tick) {
      return tick > acknowledged_ && tick < written_ && text == Expected(tick);
    });
  }

  void WriteAll(RunWriter& writer) {
    for (const size_t tick : ticks_) {
      for (; written_ < tick; ++written_) writer.Write(records_[written_]);
      if (writer.Flush().ok()) acknowledged_ = written_;
      if (after_flush) after_flush();
    }
  }
  std::function<void()> after_flush;

 private:
  std::vector<model::Record> records_;
  std::vector<size_t> ticks_;  // a flush before each of these records, and at the end
  size_t acknowledged_ = 0, written_ = 0;
  std::map<size_t, std::string> expected_;
};

bool OnlyTorn(const model::Run& run) {
  return std::all_of(run.losses.begin(), run.losses.end(), [](const model::Loss& loss) {
    return !loss.kind.starts_with("file.") || loss.severity == model::LossSeverity::kInfo;
  });
}

TEST(PowerFailure, LosesNothingAcknowledgedInAnyImage) {
  int images = 0;
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    MemoryFileSystem files;
    Recording recording(seed, 30);
    RandomRecords random(seed);
    bool created = false;
    files.on_operation = [&](uint64_t) -> std::optional<MemoryFileSystem::Fault> {
      if (!created) return {};
      for (const Loss loss : {Loss::kAllUnsynced, Loss::kNothing, Loss::kRandomWrites,
                              Loss::kRandomWrites, Loss::kTornWrites, Loss::kTornWrites}) {
        MemoryFileSystem image;
        files.PowerFail(loss, random, image);
        const auto run = OpenRun(kPath, &image);
        EXPECT_TRUE(run.ok()) << run.error().Message();
        EXPECT_TRUE(run.ok() && recording.IsAcknowledgedOrWritten(*run));
        ++images;
        if (images % 4 != 0) continue;
        const auto recovery = RecoverRun(kPath, &image);
        EXPECT_TRUE(recovery.ok()) << recovery.error().Message();
        const auto recovered = OpenRun(kPath, &image);
        EXPECT_TRUE(recovered.ok() && recording.IsAcknowledgedOrWritten(*recovered));
        EXPECT_TRUE(recovered.ok() && recovered->end);
        EXPECT_FALSE(image.Exists(kTail));
      }
      return {};
    };
    auto writer = RunWriter::Create(kPath, OptionsFor(files, 7));
    ASSERT_TRUE(writer.ok());
    created = true;
    recording.WriteAll(**writer);
    ASSERT_TRUE((*writer)->Finish({.t_ns = 0, .reason = "exited"}).ok());
  }
  EXPECT_GT(images, 2000);
}

TEST(PowerFailure, DuringCreationNeverCrashesTheReader) {
  RandomRecords random(1);
  MemoryFileSystem files;
  files.on_operation = [&](uint64_t) -> std::optional<MemoryFileSystem::Fault> {
    for (int i = 0; i < 50; ++i) {
      MemoryFileSystem image;
      files.PowerFail(i % 2 == 0 ? Loss::kRandomWrites : Loss::kTornWrites, random, image);
      const auto run = OpenRun(kPath, &image);
      EXPECT_TRUE(!run.ok() || run->events.empty());
    }
    return {};
  };
  ASSERT_TRUE(RunWriter::Create(kPath, OptionsFor(files, 7)).ok());
}

TEST(Recovery, CanItselfBeInterruptedAtEveryOperation) {
  for (const bool resume : {false, true}) {
    for (const Loss loss : {Loss::kAllUnsynced, Loss::kNothing, Loss::kTornWrites}) {
      MemoryFileSystem dead;
      Recording recording(5, 17);
      {
        auto writer = RunWriter::Create(kPath, OptionsFor(dead, 7));
        recording.WriteAll(**writer);
      }
      RandomRecords random(5);
      for (uint64_t at = 0; at < 40; ++at) {
        MemoryFileSystem files;
        files.CopyFrom(dead);
        files.on_operation = [at](uint64_t n) -> std::optional<MemoryFileSystem::Fault> {
          if (n < at) return {};
          return MemoryFileSystem::Fault{.error = EIO, .written_bytes = n * 37 % 200};
        };
        if (resume) {
          (void)RunWriter::Resume(kPath, OptionsFor(files, 7));
        } else {
          (void)RecoverRun(kPath, &files);
        }
        MemoryFileSystem image;
        files.PowerFail(loss, random, image);
        const auto run = OpenRun(kPath, &image);
        ASSERT_TRUE(run.ok()) << run.error().Message();
        ASSERT_EQ(Fingerprint(*run), recording.Expected(recording.written())) << "operation " << at;
        ASSERT_TRUE(RecoverRun(kPath, &image).ok());
        const auto again = OpenRun(kPath, &image);
        ASSERT_TRUE(again.ok());
        ASSERT_EQ(Fingerprint(*again), recording.Expected(recording.written()))
            << "operation " << at;
        ASSERT_TRUE(OnlyTorn(*again));
      }
    }
  }
}

TEST(Recovery, ResumeGoesOnWhereTheFileEnded) {
  MemoryFileSystem files;
  Recording recording(6, 30);
  const auto& records = recording.records();
  const size_t half = records.size() / 2;
  {
    auto writer = RunWriter::Create(kPath, OptionsFor(files, 7));
    for (size_t i = 0; i < half; ++i) (*writer)->Write(records[i]);
    ASSERT_TRUE((*writer)->Flush().ok());
  }
  auto writer = RunWriter::Resume(kPath, OptionsFor(files, 7));
  ASSERT_TRUE(writer.ok()) << writer.error().Message();
  EXPECT_EQ((*writer)->series(), BuildRun(records).series);
  EXPECT_EQ((*writer)->info()->run_id, "run 6");
  for (size_t i = half; i < records.size(); ++i) (*writer)->Write(records[i]);
  ASSERT_TRUE((*writer)->Finish({.t_ns = 1, .reason = "exited"}).ok());
  EXPECT_FALSE(RunWriter::Resume(kPath, OptionsFor(files, 7)).ok());
  const auto run = OpenRun(kPath, &files);
  ASSERT_TRUE(run.ok());
  EXPECT_EQ(Fingerprint(*run), recording.Expected(records.size()));
  EXPECT_EQ(std::count_if(run->losses.begin(), run->losses.end(),
                          [](const auto& loss) { return loss.kind == "recorder.restarted"; }),
            1);
  RandomRecords random(6);
  ExpectSameSummaries(*run, BuildRun(records), random, 200);
}

TEST(FailingDisk, OneFaultAtEachOperationCostsNothing) {
  for (const int error : {ENOSPC, EIO, EINTR}) {
    for (uint64_t at = 9; at < 95; ++at) {
      MemoryFileSystem files;
      Recording recording(7, 20);
      files.on_operation = [&](uint64_t n) -> std::optional<MemoryFileSystem::Fault> {
        if (n != at) return {};
        return MemoryFileSystem::Fault{.error = error, .written_bytes = n * 31 % 300};
      };
      int flushes = 0;
      recording.after_flush = [&] {
        if (++flushes % 6 != 0) return;
        const auto live = OpenRun(kPath, &files);
        ASSERT_TRUE(live.ok()) << live.error().Message();
        ASSERT_TRUE(recording.IsAcknowledgedOrWritten(*live)) << "operation " << at;
      };
      auto writer = RunWriter::Create(kPath, OptionsFor(files, 7));
      ASSERT_TRUE(writer.ok());
      recording.WriteAll(**writer);
      bool finished = false;
      for (int i = 0; i < 3 && !finished; ++i) {
        finished = (*writer)->Finish({.t_ns = 0, .reason = "exited"}).ok();
      }
      ASSERT_TRUE(finished);
      const auto run = OpenRun(kPath, &files);
      ASSERT_TRUE(run.ok());
      ASSERT_EQ(Fingerprint(*run), recording.Expected(recording.written())) << "operation " << at;
      ASSERT_TRUE(OnlyTorn(*run));
    }
  }
}

TEST(FailingDisk, PowerFailureAfterAFaultAtEachOperationCostsNothing) {
  RandomRecords random(8);
  for (uint64_t at = 9; at < 90; ++at) {
    MemoryFileSystem files;
    Recording recording(8, 20);
    files.on_operation = [&](uint64_t n) -> std::optional<MemoryFileSystem::Fault> {
      if (n < at || n > at + 2) return {};
      return MemoryFileSystem::Fault{.error = EIO, .written_bytes = SIZE_MAX};
    };
    recording.after_flush = [&] {
      for (const Loss loss : {Loss::kAllUnsynced, Loss::kRandomWrites}) {
        MemoryFileSystem image;
        files.PowerFail(loss, random, image);
        const auto run = OpenRun(kPath, &image);
        ASSERT_TRUE(run.ok()) << run.error().Message();
        ASSERT_TRUE(recording.IsAcknowledgedOrWritten(*run)) << "operation " << at;
      }
    };
    auto writer = RunWriter::Create(kPath, OptionsFor(files, 5));
    ASSERT_TRUE(writer.ok());
    recording.WriteAll(**writer);
  }
}

TEST(FailingDisk, ShortWritesAreCompleted) {
  MemoryFileSystem files;
  files.longest_write_bytes = 7;
  Recording recording(9, 20);
  auto writer = RunWriter::Create(kPath, OptionsFor(files, 7));
  ASSERT_TRUE(writer.ok());
  recording.WriteAll(**writer);
  EXPECT_EQ(recording.acknowledged(), recording.records().size());
  const auto run = OpenRun(kPath, &files);
  ASSERT_TRUE(run.ok());
  EXPECT_EQ(Fingerprint(*run), recording.Expected(recording.written()));
}

TEST(FailingDisk, AFullDiskLosesOnlyWhatMemoryCouldNotHoldAndCountsIt) {
  for (const uint64_t capacity : {3000, 6000, 9000, 12000, 20000}) {
    MemoryFileSystem files;
    files.capacity_bytes = capacity;
    RunWriter::Options options = OptionsFor(files, 7);
    options.memory_limit_bytes = 20000;
    auto writer = RunWriter::Create(kPath, options);
    ASSERT_TRUE(writer.ok());
    Recording recording(10, 200);
    recording.WriteAll(**writer);
    EXPECT_GT((*writer)->stats().failed_flushes + (*writer)->stats().failed_seals, 0u);
    const uint64_t dropped = (*writer)->stats().dropped_records;
    EXPECT_GT(dropped, 0u);
    files.capacity_bytes = UINT64_MAX;
    ASSERT_TRUE((*writer)->Finish({.t_ns = 0, .reason = "exited"}).ok());
    const auto run = OpenRun(kPath, &files);
    ASSERT_TRUE(run.ok());
    uint64_t counted = 0;
    for (const model::Loss& loss : run->losses) {
      if (loss.kind == "recorder.dropped_records") counted += loss.count;
    }
    EXPECT_EQ(counted, dropped);
    EXPECT_TRUE(OnlyTorn(*run));
    EXPECT_TRUE(IsPartOf(Fingerprint(*run), Fingerprint(BuildRun(recording.records()))));
  }
}

TEST(FailingDisk, AFullDiskTakesSamplesBeforeOutputAndCountsTheOutput) {
  MemoryFileSystem files;
  auto writer = RunWriter::Create(kPath, OptionsFor(files, 600));
  ASSERT_TRUE(writer.ok());
  for (const model::Record& record : MakeRun(14, 5, 3)) (*writer)->Write(record);
  ASSERT_TRUE((*writer)->Flush().ok());
  files.capacity_bytes = files.Bytes(kPath).size() + files.Bytes(kTail).size() + 6000;
  const model::SeriesId series = 0;
  uint64_t text_bytes = 0;
  for (int64_t i = 1; i <= 20; ++i) {
    const int64_t t_ns = i * 10'000'000'000'000;
    (*writer)->Write(model::LogText{.t_ns = t_ns, .stream = 1, .text = std::string(20000, 'x')});
    text_bytes += 20000;
    (*writer)->Write(model::Samples{.t_ns = t_ns, .values = {{.series = series, .value = 1}}});
    EXPECT_FALSE((*writer)->Flush().ok());
    const auto live = OpenRun(kPath, &files);
    ASSERT_TRUE(live.ok());
    EXPECT_EQ(live->span.end_ns, t_ns) << "the sample is on disk although the output is not";
  }
  EXPECT_EQ((*writer)->stats().dropped_records, 0u);
  EXPECT_GT((*writer)->stats().dropped_log_bytes, 0u);
  const auto full = (*writer)->Finish({.t_ns = 0, .reason = "exited"});
  if (!full.ok()) {
    EXPECT_NE(full.error().Message().find("recover"), std::string::npos);
    files.capacity_bytes += 100000;
    ASSERT_TRUE((*writer)->Finish({.t_ns = 0, .reason = "exited"}).ok());
  }
  const auto run = OpenRun(kPath, &files);
  ASSERT_TRUE(run.ok());
  uint64_t counted = 0;
  for (const model::Loss& loss : run->losses) {
    if (loss.kind == "log.no_room") counted += loss.count;
  }
  EXPECT_EQ(counted, text_bytes);
}

TEST(FailingDisk, ADiskThatIsFullAfterASealTakesSamplesBeforeOutputToo) {
  MemoryFileSystem files;
  auto writer = RunWriter::Create(kPath, OptionsFor(files, 600));
  ASSERT_TRUE(writer.ok());
  for (const model::Record& record : MakeRun(14, 5, 3)) (*writer)->Write(record);
  ASSERT_TRUE((*writer)->Flush().ok());
  // The chunk set is written and synced; the next tail can't be made.
  files.on_operation = [at = files.operations() + 2](uint64_t n) {
    return n < at ? std::nullopt
                  : std::optional<MemoryFileSystem::Fault>({.error = ENOSPC, .written_bytes = 0});
  };
  ASSERT_TRUE((*writer)->Seal().ok());
  files.on_operation = nullptr;
  files.capacity_bytes = files.Bytes(kPath).size() + files.Bytes(kTail).size() + 6000;
  const int64_t t_ns = 10'000'000'000'000;
  (*writer)->Write(model::LogText{.t_ns = t_ns, .stream = 1, .text = std::string(20000, 'x')});
  (*writer)->Write(model::Samples{.t_ns = t_ns, .values = {{.series = 0, .value = 1}}});
  EXPECT_FALSE((*writer)->Flush().ok());
  EXPECT_FALSE(files.Exists(std::string(kTail) + ".new"));
  const auto live = OpenRun(kPath, &files);
  ASSERT_TRUE(live.ok());
  EXPECT_EQ(live->span.end_ns, t_ns);
}

TEST(FailingDisk, FinishOnAFullDiskIsAnErrorThatSaysWhatIsMissing) {
  MemoryFileSystem files;
  Recording recording(15, 20);
  auto writer = RunWriter::Create(kPath, OptionsFor(files, 600));
  ASSERT_TRUE(writer.ok());
  recording.WriteAll(**writer);
  files.capacity_bytes = files.Bytes(kPath).size() + files.Bytes(kTail).size();
  (*writer)->Write(model::LogText{.t_ns = 1, .stream = 1, .text = "lost"});
  const auto finished = (*writer)->Finish({.t_ns = 0, .reason = "exited"});
  ASSERT_FALSE(finished.ok());
  const std::string text = finished.error().Message();
  EXPECT_NE(text.find("2 records"), std::string::npos) << text;  // the end, the lost output
  EXPECT_NE(text.find("No space left"), std::string::npos) << text;
  writer->reset();
  files.capacity_bytes = UINT64_MAX;
  const auto run = OpenRun(kPath, &files);
  ASSERT_TRUE(run.ok());
  EXPECT_FALSE(run->end);
  EXPECT_EQ(Fingerprint(*run), recording.Expected(recording.written()));
}

// The bytes of a finished file of several chunk sets.
std::string FinishedFile(const Recording& recording) {
  MemoryFileSystem files;
  auto writer = RunWriter::Create(kPath, OptionsFor(files, 6));
  for (const model::Record& record : recording.records()) {
    (*writer)->Write(record);
    if (!std::holds_alternative<model::Samples>(record)) continue;
    EXPECT_TRUE((*writer)->Flush().ok());
  }
  EXPECT_TRUE((*writer)->Finish({.t_ns = 0, .reason = "exited"}).ok());
  return files.Bytes(kPath);
}

size_t CountLosses(const std::vector<model::Loss>& losses, std::string_view kind) {
  return static_cast<size_t>(std::count_if(losses.begin(), losses.end(),
                                           [&](const auto& loss) { return loss.kind == kind; }));
}

TEST(CutCopy, IsRecoveredWithoutThrowingAByteAwayAndStillSaysSoLater) {
  const std::string whole = FinishedFile(Recording(13, 20));
  for (const bool resume : {false, true}) {
    for (size_t size = 64; size < whole.size(); size += 41) {
      MemoryFileSystem files;
      files.SetBytes(kPath, whole.substr(0, size));
      files.SetBytes("a.emr.damaged", "of an earlier time");
      const auto before = OpenRun(kPath, &files);
      ASSERT_TRUE(before.ok());
      const bool torn = CountLosses(before->losses, "file.torn_tail") == 1;
      std::string saved = torn ? "a.emr.damaged.1" : "";
      if (resume) {
        ASSERT_TRUE(RunWriter::Resume(kPath, OptionsFor(files, 6)).ok());
      } else {
        const auto recovery = RecoverRun(kPath, &files);
        ASSERT_TRUE(recovery.ok()) << recovery.error().Message();
        EXPECT_EQ(recovery->saved_path, saved);
        EXPECT_EQ(CountLosses(recovery->losses, "file.cut"), 1u);
      }
      EXPECT_EQ(files.Bytes("a.emr.damaged"), "of an earlier time");
      const std::string rest = files.Bytes("a.emr.damaged.1");
      ASSERT_EQ(!rest.empty(), torn) << "cut at " << size;
      EXPECT_EQ(files.Bytes(kPath).substr(0, size - rest.size()) + rest, whole.substr(0, size));
      for (int pass = 0; pass < 2; ++pass) {
        const auto after = OpenRun(kPath, &files);
        ASSERT_TRUE(after.ok());
        EXPECT_EQ(Fingerprint(*after), Fingerprint(*before));
        EXPECT_EQ(CountLosses(after->losses, "file.cut"), 1u) << "cut at " << size;
        EXPECT_EQ(CountLosses(after->losses, "file.torn_tail"), torn ? 1u : 0u);
        ASSERT_TRUE(RecoverRun(kPath, &files).ok());
      }
    }
  }
}

TEST(CutCopy, RecoveryInterruptedAnywhereSavesAndTellsOnce) {
  const std::string whole = FinishedFile(Recording(13, 20));
  const std::string cut = whole.substr(0, whole.size() / 2);
  for (uint64_t at = 0; at < 25; ++at) {
    MemoryFileSystem files;
    files.SetBytes(kPath, cut);
    files.on_operation = [at](uint64_t n) -> std::optional<MemoryFileSystem::Fault> {
      if (n < at) return {};
      return MemoryFileSystem::Fault{.error = EIO, .written_bytes = SIZE_MAX};
    };
    (void)RecoverRun(kPath, &files);
    MemoryFileSystem image;
    RandomRecords random(1);
    files.PowerFail(Loss::kAllUnsynced, random, image);
    ASSERT_TRUE(RecoverRun(kPath, &image).ok());
    const auto run = OpenRun(kPath, &image);
    ASSERT_TRUE(run.ok());
    EXPECT_EQ(CountLosses(run->losses, "file.torn_tail"), 1u) << "operation " << at;
    EXPECT_EQ(CountLosses(run->losses, "file.cut"), 1u) << "operation " << at;
    const std::string a = image.Bytes("a.emr.damaged"), b = image.Bytes("a.emr.damaged.1");
    const std::string& rest = b.empty() ? a : b;
    EXPECT_TRUE(!rest.empty() && cut.ends_with(rest)) << "operation " << at;
  }
}

TEST(CutCopy, DamageInTheMainFileIsStillNamedAfterRecovery) {
  std::string bytes = FinishedFile(Recording(13, 20));
  bytes.resize(bytes.size() * 3 / 4);
  bytes[70] ^= 1;  // the header of the first frame
  MemoryFileSystem files;
  files.SetBytes(kPath, bytes);
  ASSERT_TRUE(RecoverRun(kPath, &files).ok());
  const auto run = OpenRun(kPath, &files);
  ASSERT_TRUE(run.ok());
  EXPECT_EQ(CountLosses(run->losses, "file.damaged_frame"), 1u);
  EXPECT_EQ(CountLosses(run->losses, "file.cut"), 1u);
}

class Damaged : public testing::Test {
 protected:
  // Two chunk sets and a tail with some frames.
  void SetUp() override {
    auto writer = RunWriter::Create(kPath, OptionsFor(good_, 5));
    Recording recording(11, 14);
    recording.WriteAll(**writer);
    const auto run = OpenRun(kPath, &good_);
    ASSERT_TRUE(run.ok());
    expected_ = recording.Expected(recording.written());
    ASSERT_EQ(Fingerprint(*run), expected_);
  }

  // Opens with one file replaced: what is read must be true, and what is missing reported.
  void Check(const char* path, std::string bytes, const std::string& what, bool must_open) {
    MemoryFileSystem files;
    files.CopyFrom(good_);
    files.SetBytes(path, std::move(bytes));
    const auto run = OpenRun(kPath, &files);
    const auto verified = VerifyRun(kPath, &files);
    ASSERT_EQ(run.ok(), verified.ok());
    ASSERT_TRUE(run.ok() || !must_open) << what << run.error().Message();
    if (!run.ok()) return;
    EXPECT_FALSE(verified->losses.empty()) << what;
    const std::string text = Fingerprint(*run);
    ASSERT_TRUE(IsPartOf(text, expected_)) << what;
    if (text != expected_) {
      EXPECT_TRUE(std::any_of(verified->losses.begin(), verified->losses.end(),
                              [](const auto& loss) { return loss.kind.starts_with("file."); }))
          << what;
    }
  }

  MemoryFileSystem good_;
  std::string expected_;
};

TEST_F(Damaged, EveryFlippedByteIsReportedAndNothingElseChanges) {
  const auto before = VerifyRun(kPath, &good_);
  ASSERT_TRUE(before.ok() && before->Intact());
  for (const char* path : {kPath, kTail}) {
    const std::string good = good_.Bytes(path);
    for (size_t at = 0; at < good.size(); ++at) {
      std::string bytes = good;
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << (at % 8)));
      Check(path, std::move(bytes), std::string(path) + " byte " + std::to_string(at), true);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_F(Damaged, ZerosAnywhereAreReported) {
  for (const char* path : {kPath, kTail}) {
    const std::string good = good_.Bytes(path);
    for (size_t at = 0; at < good.size(); at += 97) {
      std::string bytes = good;
      const size_t size = std::min<size_t>(4096, good.size() - at);
      bytes.replace(at, size, size, '\0');
      Check(path, std::move(bytes), std::string(path) + " zeros at " + std::to_string(at), false);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_F(Damaged, EveryCutGivesAnExactPrefixAndNamesIt) {
  for (const char* path : {kPath, kTail}) {
    const std::string good = good_.Bytes(path);
    for (size_t size = 0; size < good.size(); ++size) {
      MemoryFileSystem files;
      files.CopyFrom(good_);
      files.SetBytes(path, good.substr(0, size));
      const auto run = OpenRun(kPath, &files);
      if (!run.ok()) {
        EXPECT_FALSE(run.error().Message().empty());
        continue;
      }
      ASSERT_TRUE(IsPartOf(Fingerprint(*run), expected_)) << path << " cut at " << size;
    }
  }
}

TEST_F(Damaged, ACutTailIsReadUpToTheLastWholeFlush) {
  MemoryFileSystem files;
  Recording recording(12, 12);
  std::vector<std::pair<size_t, size_t>> flushed = {{0, 0}};  // tail bytes, records
  recording.after_flush = [&] {
    flushed.emplace_back(files.Bytes(kTail).size(), recording.acknowledged());
  };
  auto writer = RunWriter::Create(kPath, OptionsFor(files, 600));
  recording.WriteAll(**writer);
  const std::string tail = files.Bytes(kTail);
  for (size_t size = 0; size <= tail.size(); ++size) {
    MemoryFileSystem cut;
    cut.CopyFrom(files);
    cut.SetBytes(kTail, tail.substr(0, size));
    const auto run = OpenRun(kPath, &cut);
    ASSERT_TRUE(run.ok());
    size_t records = 0;
    bool at_boundary = false;
    for (const auto& [bytes, count] : flushed) {
      if (bytes <= size) records = count;
      at_boundary = at_boundary || bytes == size;
    }
    ASSERT_EQ(Fingerprint(*run), recording.Expected(records)) << "cut at " << size;
    ASSERT_TRUE(at_boundary || size <= 300 || !run->losses.empty()) << "cut at " << size;
  }
}

}  // namespace
}  // namespace epochmeter::runfile
