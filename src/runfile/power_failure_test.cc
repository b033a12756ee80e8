// SPDX-License-Identifier: Apache-2.0
// A power failure or a crash never costs what was acknowledged, wherever it comes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "runfile/crash_recording.h"
#include "runfile/recover.h"
#include "runfile/run_reader.h"

namespace epochmeter::runfile {
namespace {

using Loss = MemoryFileSystem::Loss;

struct Images {
  int made = 0, recovered = 0, most_ticks_lost = 0;
};

// Looks at what a power failure now could leave. Every fourth image is recovered as well.
void CheckImages(const MemoryFileSystem& files, Recording& recording, RandomRecords& random,
                 Images* images) {
  for (const Loss loss : {Loss::kAllUnsynced, Loss::kNothing, Loss::kRandomWrites,
                          Loss::kRandomWrites, Loss::kTornWrites, Loss::kTornWrites}) {
    MemoryFileSystem image;
    files.PowerFail(loss, random, image);
    const auto run = OpenRun(kPath, &image);
    ASSERT_TRUE(run.ok()) << run.error().Message();
    const std::optional<int> ticks_lost = recording.TicksLost(*run);
    ASSERT_TRUE(ticks_lost) << "not what was written, or not all that was acknowledged";
    images->most_ticks_lost = std::max(images->most_ticks_lost, *ticks_lost);
    if (++images->made % 4 != 0) continue;
    const auto recovery = RecoverRun(kPath, &image);
    ASSERT_TRUE(recovery.ok()) << recovery.error().Message();
    const auto recovered = OpenRun(kPath, &image);
    ASSERT_TRUE(recovered.ok() && recovered->end);
    ASSERT_EQ(Fingerprint(*recovered), Fingerprint(*run));
    ASSERT_FALSE(image.Exists(kTail));
    ++images->recovered;
  }
}

// Power failures before each operation that changes the disk, from the first flush to the end.
void FailPowerEverywhere(uint64_t seed, int ticks, int ticks_per_flush, Images* images) {
  MemoryFileSystem files;
  Recording recording(seed, ticks, ticks_per_flush);
  RandomRecords random(seed);
  auto writer = RunWriter::Create(kPath, OptionsFor(files, 7));
  ASSERT_TRUE(writer.ok());
  files.on_operation = [&](uint64_t) -> std::optional<MemoryFileSystem::Fault> {
    if (!testing::Test::HasFatalFailure()) CheckImages(files, recording, random, images);
    return {};
  };
  recording.WriteAll(**writer);
  ASSERT_TRUE((*writer)->Finish({.t_ns = 0, .reason = "exited"}).ok());
}

TEST(PowerFailure, LosesNothingAcknowledgedInAnyImage) {
  Images images;
  for (uint64_t seed = 1; seed <= 4 * static_cast<uint64_t>(SoakFactor()); ++seed) {
    FailPowerEverywhere(seed, 30, 1, &images);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(images.made, 2000 * SoakFactor());
  EXPECT_LE(images.most_ticks_lost, 1);
  std::printf("%d images, %d of them recovered: nothing acknowledged lost\n", images.made,
              images.recovered);
}

// As the recorder flushes where the disk is slow.
TEST(PowerFailure, CostsTenTicksAtMostWhereEachTenthIsFlushed) {
  Images images;
  for (uint64_t seed = 1; seed <= static_cast<uint64_t>(SoakFactor()); ++seed) {
    FailPowerEverywhere(100 + seed, 100, 10, &images);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(images.made, 400 * SoakFactor());
  EXPECT_EQ(images.most_ticks_lost, 10);
  std::printf("%d images, %d of them recovered: at most %d ticks lost\n", images.made,
              images.recovered, images.most_ticks_lost);
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

}  // namespace
}  // namespace epochmeter::runfile
