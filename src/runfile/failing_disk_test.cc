// SPDX-License-Identifier: Apache-2.0
// A disk that fails or is full costs nothing that memory can hold, and what it costs is counted.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "runfile/crash_recording.h"
#include "runfile/run_reader.h"

namespace epochmeter::runfile {
namespace {

using Loss = MemoryFileSystem::Loss;

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

TEST(FailingDisk, AFaultWhileTheFilesAreMadeCostsNothingWhereTheDiskIsWaitedFor) {
  for (const int error : {ENOSPC, EIO, ESTALE}) {
    for (uint64_t at = 0; at < 12; ++at) {
      MemoryFileSystem files;
      files.on_operation = [&](uint64_t n) -> std::optional<MemoryFileSystem::Fault> {
        if (n < at || n > at + 7) return {};  // also what takes a half-made file away fails
        return MemoryFileSystem::Fault{.error = error, .written_bytes = n * 13 % 70};
      };
      RunWriter::Options options = OptionsFor(files, 7);
      options.wait_for_disk = true;
      auto writer = RunWriter::Create(kPath, options);
      ASSERT_TRUE(writer.ok()) << writer.error().Message();
      Recording recording(16, 20);
      recording.WriteAll(**writer);
      ASSERT_EQ(recording.acknowledged(), recording.records().size()) << "operation " << at;
      ASSERT_TRUE((*writer)->Finish({.t_ns = 0, .reason = "exited"}).ok());
      const auto run = OpenRun(kPath, &files);
      ASSERT_TRUE(run.ok());
      ASSERT_EQ(Fingerprint(*run), recording.Expected(recording.written())) << "operation " << at;
      ASSERT_TRUE(OnlyTorn(*run));
      ASSERT_FALSE(files.Exists(std::string(kTail) + ".new"));
    }
  }
}

TEST(FailingDisk, WithoutWaitingAFaultWhileTheFilesAreMadeIsAnErrorAndLeavesNone) {
  for (uint64_t at = 0; at < 7; ++at) {
    MemoryFileSystem files;
    files.on_operation = [&](uint64_t n) -> std::optional<MemoryFileSystem::Fault> {
      if (n != at) return {};
      return MemoryFileSystem::Fault{.error = ENOSPC, .written_bytes = 0};
    };
    ASSERT_FALSE(RunWriter::Create(kPath, OptionsFor(files, 7)).ok()) << "operation " << at;
    EXPECT_FALSE(files.Exists(kPath));
    EXPECT_FALSE(files.Exists(kTail));
  }
}

TEST(FailingDisk, ARestartedWriterGoesOnInMemoryWhileTheDiskIsFull) {
  MemoryFileSystem files;
  Recording recording(17, 20);
  recording.WriteAll(**RunWriter::Create(kPath, OptionsFor(files, 7)));
  files.capacity_bytes = files.Bytes(kPath).size() + files.Bytes(kTail).size() + 10;
  RunWriter::Options options = OptionsFor(files, 7);
  EXPECT_FALSE(RunWriter::Resume(kPath, options).ok());
  options.wait_for_disk = true;
  auto writer = RunWriter::Resume(kPath, options);
  ASSERT_TRUE(writer.ok()) << writer.error().Message();
  EXPECT_EQ((*writer)->series(), BuildRun(recording.records()).series);
  const int64_t t_ns = 10'000'000'000'000;
  (*writer)->Write(model::Samples{.t_ns = t_ns, .values = {{.series = 0, .value = 1}}});
  EXPECT_FALSE((*writer)->Flush().ok());
  files.capacity_bytes = UINT64_MAX;
  EXPECT_TRUE((*writer)->Flush().ok());
  const auto run = OpenRun(kPath, &files);
  ASSERT_TRUE(run.ok());
  EXPECT_EQ(run->span.end_ns, t_ns);
  EXPECT_TRUE(IsPartOf(recording.Expected(recording.written()), Fingerprint(*run)));
}

// 240 series each second, as of 8 GPUs with 30 metrics each.
TEST(FailingDisk, TenMinutesOfAFullDiskWaitInMemoryAndAreWrittenInPieces) {
  MemoryFileSystem files;
  RunWriter::Options options = OptionsFor(files, 600);
  options.memory_limit_bytes = size_t{20} << 20;  // as the recorder's
  auto writer = RunWriter::Create(kPath, options);
  ASSERT_TRUE(writer.ok());
  const std::vector<model::Record> records = MakeRun(18, 660, 240);
  size_t i = 0;
  uint64_t ticks = 0, most_pending_bytes = 0;
  const auto write_tick = [&] {
    for (bool tick = false; i < records.size() && !tick; ++i) {
      (*writer)->Write(records[i]);
      tick = std::holds_alternative<model::Samples>(records[i]);
    }
    most_pending_bytes = std::max(most_pending_bytes, (*writer)->stats().pending_bytes);
    return ++ticks;
  };
  while (write_tick() < 30) {
  }
  ASSERT_TRUE((*writer)->Flush().ok());
  files.capacity_bytes = files.Bytes(kPath).size() + files.Bytes(kTail).size();
  while (write_tick() < 640) (void)(*writer)->Flush();
  EXPECT_GE((*writer)->stats().failed_flushes, 600u);
  EXPECT_EQ((*writer)->stats().dropped_records + (*writer)->stats().dropped_values, 0u);
  files.capacity_bytes = UINT64_MAX;
  ASSERT_TRUE((*writer)->Flush().ok());
  EXPECT_EQ((*writer)->stats().pending_bytes, 0u);
  while (i < records.size()) write_tick();
  ASSERT_TRUE((*writer)->Finish({.t_ns = 0, .reason = "exited"}).ok());
  const auto run = OpenRun(kPath, &files);
  ASSERT_TRUE(run.ok());
  model::Run expected = BuildRun(records);
  ExpectSameValues(*run, expected);
  std::printf("610 ticks of 240 series waited: %.1f MB encoded\n",
              static_cast<double>(most_pending_bytes) / 1e6);
}

TEST(FailingDisk, WhatMemoryCouldNotHoldIsToldWithItsTime) {
  MemoryFileSystem files;
  RunWriter::Options options = OptionsFor(files, 600);
  options.memory_limit_bytes = 20000;
  auto writer = RunWriter::Create(kPath, options);
  ASSERT_TRUE(writer.ok());
  for (const model::Record& record : MakeRun(19, 5, 3)) (*writer)->Write(record);
  ASSERT_TRUE((*writer)->Flush().ok());
  files.capacity_bytes = files.Bytes(kPath).size() + files.Bytes(kTail).size();
  const int64_t start_ns = (*writer)->info()->anchor.mono_ns;
  uint64_t written = 0;
  for (int64_t s = 100; s < 1000; ++s, ++written) {
    (*writer)->Write(model::Samples{.t_ns = start_ns + s * 1'000'000'000,
                                    .values = {{.series = 0, .value = 1}}});
    (void)(*writer)->Flush();
  }
  files.capacity_bytes = UINT64_MAX;
  ASSERT_TRUE((*writer)->Finish({.t_ns = 0, .reason = "exited"}).ok());
  const auto run = OpenRun(kPath, &files);
  ASSERT_TRUE(run.ok());
  const auto loss = std::find_if(
      run->losses.begin(), run->losses.end(),
      [](const model::Loss& found) { return found.kind == "recorder.dropped_records"; });
  ASSERT_NE(loss, run->losses.end());
  EXPECT_GT(loss->count, 0u);
  EXPECT_LT(loss->count, written);
  EXPECT_NE(loss->detail.find(" to 16 min 39 s after the start"), std::string::npos)
      << loss->detail;
}

}  // namespace
}  // namespace epochmeter::runfile
