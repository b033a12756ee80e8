// SPDX-License-Identifier: Apache-2.0
// The run file on a real file system: locks, a concurrent reader, a killed writer.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "runfile/recover.h"
#include "runfile/run_reader.h"
#include "runfile/run_writer.h"
#include "runfile/test_run.h"

namespace epochmeter::runfile {
namespace {

class OnDisk : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "runfile_XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    path_ = folder_ + "/a.emr";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::unique_ptr<RunWriter> Create(uint32_t ticks_per_seal) {
    RunWriter::Options options;
    options.ticks_per_seal = ticks_per_seal;
    auto writer = RunWriter::Create(path_, options);
    EXPECT_TRUE(writer.ok()) << writer.error().Message();
    return std::move(writer).value();
  }

  std::string folder_, path_;
};

bool IsTick(const model::Record& record) { return std::holds_alternative<model::Samples>(record); }

TEST_F(OnDisk, ASecondWriterIsRefusedWithAClearMessage) {
  const auto writer = Create(600);
  const auto second = RunWriter::Resume(path_, {});
  ASSERT_FALSE(second.ok());
  EXPECT_NE(second.error().Message().find("another process"), std::string::npos);
  EXPECT_FALSE(RecoverRun(path_).ok());
}

TEST_F(OnDisk, AFolderOrAPipeIsNoRunFile) {
  EXPECT_FALSE(OpenRun(folder_).ok());
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_FALSE(OpenRun(path_).ok());
}

TEST_F(OnDisk, CreateNeverReplacesWhatIsNotARegularFile) {
  RunWriter::Options forced;
  forced.force = true;
  for (const std::string& path : {path_, path_ + ".tail"}) {
    ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
    for (const auto& options : {RunWriter::Options{}, forced}) {
      const auto refused = RunWriter::Create(path_, options);
      ASSERT_FALSE(refused.ok());
      EXPECT_NE(refused.error().Message().find("not a regular file"), std::string::npos);
      EXPECT_TRUE(std::filesystem::is_fifo(path));
    }
    std::filesystem::remove(path);
  }
  std::filesystem::create_symlink("/dev/null", path_);
  EXPECT_FALSE(RunWriter::Create(path_, forced).ok());
  EXPECT_TRUE(std::filesystem::is_symlink(path_));
  EXPECT_FALSE(std::filesystem::exists(path_ + ".tail"));
}

TEST_F(OnDisk, FinishSaysWhenTheFileIsGoneOrReplacedAndLeavesTheOtherRunAlone) {
  const auto records = MakeRun(23, 20, 3);
  for (const bool replaced : {false, true}) {
    auto writer = Create(5);
    for (const model::Record& record : records) writer->Write(record);
    ASSERT_TRUE(writer->Flush().ok());
    std::filesystem::remove(path_);
    std::filesystem::remove(path_ + ".tail");
    std::unique_ptr<RunWriter> other = replaced ? Create(600) : nullptr;
    if (replaced) other->Write(records[0]);
    ASSERT_TRUE(!replaced || other->Flush().ok());
    const auto finished = writer->Finish({.t_ns = 0, .reason = "exited"});
    ASSERT_FALSE(finished.ok());
    EXPECT_NE(finished.error().Message().find("no longer at its path"), std::string::npos);
    writer.reset();
    EXPECT_EQ(std::filesystem::exists(path_), replaced);
    EXPECT_EQ(std::filesystem::exists(path_ + ".tail"), replaced);
    EXPECT_TRUE(!replaced || OpenRun(path_)->losses.empty());
  }
}

// mv of the folder, and of the main file alone.
TEST_F(OnDisk, AFileThatIsMovedIsFollowed) {
  const auto records = MakeRun(25, 40, 3);
  const std::string moved_folder = folder_ + "/elsewhere";
  for (const bool whole_folder : {false, true}) {
    const std::string inner = folder_ + "/inner";
    std::filesystem::create_directory(inner);
    path_ = inner + "/a.emr";
    auto writer = Create(5);
    size_t ticks = 0;
    for (const model::Record& record : records) {
      writer->Write(record);
      if (!IsTick(record)) continue;
      ASSERT_TRUE(writer->Flush().ok());
      if (++ticks != 12) continue;
      if (!whole_folder) std::filesystem::create_directory(moved_folder);
      std::filesystem::rename(whole_folder ? inner : path_,
                              whole_folder ? moved_folder : moved_folder + "/a.emr");
    }
    ASSERT_TRUE(writer->Finish({.t_ns = 0, .reason = "exited"}).ok());
    EXPECT_EQ(writer->path(), moved_folder + "/a.emr");
    const auto run = OpenRun(moved_folder + "/a.emr");
    ASSERT_TRUE(run.ok());
    EXPECT_EQ(Fingerprint(*run), Fingerprint(BuildRun(records)));
    EXPECT_FALSE(std::filesystem::exists(moved_folder + "/a.emr.tail"));
    EXPECT_FALSE(std::filesystem::exists(inner + "/a.emr.tail"));
    std::filesystem::remove_all(moved_folder);
    std::filesystem::remove_all(inner);
  }
}

// Nothing is sealed into a file that is gone: the tail goes on with it as long as it can.
TEST_F(OnDisk, TheTailOfAMainFileThatWasDeletedKeepsWhatComes) {
  const auto records = MakeRun(26, 40, 3);
  auto writer = Create(600);
  size_t ticks = 0;
  for (const model::Record& record : records) {
    writer->Write(record);
    if (!IsTick(record)) continue;
    ASSERT_TRUE(writer->Flush().ok());
    if (++ticks == 12) std::filesystem::remove(path_);
  }
  EXPECT_FALSE(writer->Seal().ok());
  const auto run = OpenRun(path_);
  ASSERT_TRUE(run.ok());
  EXPECT_EQ(Fingerprint(*run), Fingerprint(BuildRun(records)));
  EXPECT_FALSE(writer->Finish({.t_ns = 0, .reason = "exited"}).ok());
}

TEST_F(OnDisk, ACutCopyIsRecoveredWithItsTornEndBeside) {
  auto writer = Create(600);
  for (const model::Record& record : MakeRun(24, 50, 3)) writer->Write(record);
  ASSERT_TRUE(writer->Finish({.t_ns = 0, .reason = "exited"}).ok());
  const uint64_t size = std::filesystem::file_size(path_) / 2;
  std::filesystem::resize_file(path_, size);
  const auto recovery = RecoverRun(path_);
  ASSERT_TRUE(recovery.ok()) << recovery.error().Message();
  EXPECT_EQ(recovery->saved_path, path_ + ".damaged");
  EXPECT_EQ(std::filesystem::file_size(path_ + ".damaged"), size - 64);
  const auto run = OpenRun(path_);
  ASSERT_TRUE(run.ok());
  EXPECT_EQ(run->losses.size(), 2u);  // file.cut, file.torn_tail
}

TEST_F(OnDisk, AReaderBesideTheWriterSeesAGrowingPrefixAndNoDamage) {
  const auto records = MakeRun(21, 400, 3);
  const std::string whole = Fingerprint(BuildRun(records));
  auto writer = Create(5);
  std::atomic<bool> done = false;
  std::thread writing([&] {
    for (const model::Record& record : records) {
      writer->Write(record);
      if (IsTick(record)) (void)writer->Flush();
    }
    (void)writer->Finish({.t_ns = 0, .reason = "exited"});
    done = true;
  });
  size_t before = 0;
  for (bool last = false; !last;) {
    last = done;
    const auto run = OpenRun(path_);
    ASSERT_TRUE(run.ok()) << run.error().Message();
    const std::string text = Fingerprint(*run);
    EXPECT_GE(text.size(), before);
    before = text.size();
    EXPECT_TRUE(IsPartOf(text, whole));
    for (const model::Loss& loss : run->losses) {
      EXPECT_TRUE(!loss.kind.starts_with("file.") || loss.kind == "file.torn_tail") << loss.detail;
    }
    EXPECT_TRUE(run->store->LossesFound().empty());
  }
  writing.join();
  EXPECT_EQ(before, whole.size());
}

TEST_F(OnDisk, AKilledWriterLosesNothingAcknowledged) {
  const auto records = MakeRun(22, 300, 3);
  RandomRecords random(22);
  for (int round = 0; round < 15; ++round) {
    int acknowledgements[2];
    ASSERT_EQ(::pipe(acknowledgements), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      auto writer = Create(5);
      for (size_t i = 0; i < records.size(); ++i) {
        writer->Write(records[i]);
        if (!IsTick(records[i]) || !writer->Flush().ok()) continue;
        const size_t count = i + 1;
        if (::write(acknowledgements[1], &count, sizeof count) < 0) ::_exit(1);
      }
      ::pause();
    }
    ::close(acknowledgements[1]);
    size_t acknowledged = 0, stop = 20 + random.Below(records.size() / 2);
    for (size_t count = 0; acknowledged < stop;) {
      if (::read(acknowledgements[0], &count, sizeof count) != sizeof count) break;
      acknowledged = count;
    }
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    for (size_t count = 0; ::read(acknowledgements[0], &count, sizeof count) == sizeof count;) {
      acknowledged = count;
    }
    ::close(acknowledgements[0]);
    const std::string expected = Fingerprint(
        BuildRun({records.begin(), records.begin() + static_cast<std::ptrdiff_t>(acknowledged)}));
    const auto before = OpenRun(path_);
    ASSERT_TRUE(before.ok()) << before.error().Message();
    EXPECT_TRUE(IsPartOf(expected, Fingerprint(*before)));
    EXPECT_TRUE(IsPartOf(Fingerprint(*before), Fingerprint(BuildRun(records))));
    ASSERT_TRUE(RecoverRun(path_).ok());
    const auto after = OpenRun(path_);
    ASSERT_TRUE(after.ok());
    EXPECT_EQ(Fingerprint(*after), Fingerprint(*before));
    EXPECT_TRUE(VerifyRun(path_)->Intact());
    std::filesystem::remove(path_);
  }
}

}  // namespace
}  // namespace epochmeter::runfile
