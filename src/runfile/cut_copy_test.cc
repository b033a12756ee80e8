// SPDX-License-Identifier: Apache-2.0
// A file that was cut is recovered without throwing anything away.
#include <gtest/gtest.h>

#include <cerrno>

#include "runfile/crash_recording.h"
#include "runfile/recover.h"
#include "runfile/run_reader.h"

namespace epochmeter::runfile {
namespace {

using Loss = MemoryFileSystem::Loss;

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

}  // namespace
}  // namespace epochmeter::runfile
