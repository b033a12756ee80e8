// SPDX-License-Identifier: Apache-2.0
#include "cli/followed_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/file.h"

namespace epochmeter::cli {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr size_t kAll = size_t{1} << 30;
constexpr int64_t kMs = base::kNsPerMs;

class FollowedFileTest : public testing::Test, public FollowSink {
 protected:
  FollowedFileTest() {
    std::string folder = testing::TempDir() + "followed-XXXXXX";
    EXPECT_NE(::mkdtemp(folder.data()), nullptr);
    folder_ = folder;
    path_ = folder + "/train.log";
  }
  ~FollowedFileTest() override { fs::remove_all(folder_); }

  void OnText(std::string_view bytes) override { text_ += bytes; }
  void OnTold(const std::string& sentence) override { told_.push_back(sentence); }

  // A writer that appends, as `>>` does.
  static base::UniqueFd Writer(const std::string& path, int flags = O_APPEND) {
    return base::UniqueFd(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0644));
  }
  static void Write(const base::UniqueFd& fd, std::string_view text) {
    ASSERT_TRUE(base::WriteAll(fd.get(), text, "").ok());
  }
  // What came since the last call, after that time went by.
  std::string After(FollowedFile& file, int64_t ms) {
    t_ns_ += ms * kMs;
    text_.clear();
    file.Look(t_ns_, kAll);
    return text_;
  }

  std::string folder_, path_, text_;
  std::vector<std::string> told_;
  int64_t t_ns_ = 1000 * kMs;
};

TEST_F(FollowedFileTest, GivesWhatIsAddedOnce) {
  const base::UniqueFd writer = Writer(path_);
  Write(writer, "one\n");
  FollowedFile file(path_, *this);
  EXPECT_EQ(After(file, 0), "one\n");
  EXPECT_EQ(After(file, 10), "");
  Write(writer, "tw");
  EXPECT_EQ(After(file, 10), "tw");
  EXPECT_TRUE(file.open_line());
  Write(writer, "o\n");
  EXPECT_EQ(After(file, 10), "o\n");
  EXPECT_FALSE(file.open_line());
  EXPECT_THAT(told_, IsEmpty());
}

TEST_F(FollowedFileTest, WaitsForAFileThatIsNotThere) {
  FollowedFile file(path_, *this);
  EXPECT_EQ(After(file, 0), "");
  EXPECT_EQ(After(file, 100), "");
  EXPECT_THAT(told_, ElementsAre(HasSubstr("is not there yet")));
  Write(Writer(path_), "one\n");
  EXPECT_EQ(After(file, 100), "one\n");
}

TEST_F(FollowedFileTest, ReadsTheOldFileToItsEndBeforeTheNewOne) {
  const base::UniqueFd old = Writer(path_);
  Write(old, "1\n");
  FollowedFile file(path_, *this);
  EXPECT_EQ(After(file, 0), "1\n");
  fs::rename(path_, path_ + ".1");
  Write(old, "2\n");
  EXPECT_EQ(After(file, 10), "2\n");
  const base::UniqueFd fresh = Writer(path_);
  Write(old, "3\n");
  EXPECT_EQ(After(file, 10), "3\n");
  // Empty: its writer has not moved on, however long that takes.
  EXPECT_EQ(After(file, 5000), "");
  Write(old, "4\n");
  EXPECT_EQ(After(file, 10), "4\n");
  Write(fresh, "5\n");
  Write(old, "still 4\n");
  EXPECT_EQ(After(file, 10), "still 4\n");
  EXPECT_EQ(After(file, 150), "");
  EXPECT_EQ(After(file, 60), "5\n");
  EXPECT_THAT(told_, ElementsAre(HasSubstr("line 1 of the new text is line 6")));
}

TEST_F(FollowedFileTest, GivesWholeLinesThatComeLate) {
  const base::UniqueFd old = Writer(path_);
  Write(old, "1\n");
  FollowedFile file(path_, *this);
  After(file, 0);
  fs::rename(path_, path_ + ".1");
  const base::UniqueFd fresh = Writer(path_);
  Write(fresh, "2 ");
  EXPECT_EQ(After(file, 300), "2 ");
  Write(old, "late\nand ");
  EXPECT_EQ(After(file, 10), "");  // not into the line that is open
  Write(fresh, "is here\n");
  EXPECT_EQ(After(file, 10), "is here\nlate\n");
  Write(old, "later\n");
  EXPECT_EQ(After(file, 10), "and later\n");
}

TEST_F(FollowedFileTest, FollowsThroughManyRotationsBetweenTwoLooks) {
  Write(Writer(path_), "0\n");
  FollowedFile file(path_, *this);
  std::string all = After(file, 0);
  for (int i = 1; i <= 5; ++i) {
    fs::rename(path_, path_ + "." + std::to_string(i));
    Write(Writer(path_), std::to_string(i) + "\n");
    all += After(file, 1);
  }
  for (int i = 0; i < 20; ++i) all += After(file, 150);
  EXPECT_EQ(all, "0\n1\n2\n3\n4\n5\n");
}

TEST_F(FollowedFileTest, EndsTheLineThatAnOldFileLeavesOpen) {
  Write(Writer(path_), "loss 0.1");
  FollowedFile file(path_, *this);
  After(file, 0);
  fs::rename(path_, path_ + ".1");
  Write(Writer(path_), "23\n");
  EXPECT_EQ(After(file, 300), "\n23\n");
}

TEST_F(FollowedFileTest, BeginsAnewWhereTheFileIsTruncated) {
  const base::UniqueFd writer = Writer(path_);
  Write(writer, "some text\nmore\n");
  FollowedFile file(path_, *this);
  After(file, 0);
  ASSERT_EQ(::ftruncate(writer.get(), 0), 0);
  Write(writer, "new\n");
  EXPECT_EQ(After(file, 10), "new\n");
  EXPECT_THAT(told_, ElementsAre(HasSubstr("was truncated")));
}

TEST_F(FollowedFileTest, SeesATruncationThatWasWrittenOver) {
  const base::UniqueFd writer = Writer(path_);
  Write(writer, "old\n");
  FollowedFile file(path_, *this);
  After(file, 0);
  ASSERT_EQ(::ftruncate(writer.get(), 0), 0);
  Write(writer, "new and longer than before\n");
  EXPECT_EQ(After(file, 10), "new and longer than before\n");
}

TEST_F(FollowedFileTest, ReadsTheRestOfATruncatedTextFromItsCopy) {
  const base::UniqueFd writer = Writer(path_);
  Write(writer, std::string(100, 'a') + "\n");
  FollowedFile file(path_, *this);
  After(file, 0);
  Write(writer, "not seen yet\n");
  fs::copy_file(path_, path_ + ".1");
  Write(Writer(path_ + ".2"), std::string(100, 'b') + "\nother\n");
  ASSERT_EQ(::ftruncate(writer.get(), 0), 0);
  Write(writer, "new\n");
  EXPECT_EQ(After(file, 10), "not seen yet\nnew\n");
  EXPECT_THAT(told_, ElementsAre(HasSubstr("read from a copy")));
}

TEST_F(FollowedFileTest, SkipsTheHoleOfAWriterThatDoesNotAppend) {
  const base::UniqueFd writer = Writer(path_, 0);
  Write(writer, std::string(1 << 20, 'a') + "\n");
  FollowedFile file(path_, *this);
  After(file, 0);
  ASSERT_EQ(::ftruncate(writer.get(), 0), 0);
  Write(writer, "new\n");
  const std::string text = After(file, 10);
  EXPECT_EQ(text.substr(text.find_last_of('\0') + 1), "new\n");
  EXPECT_LT(text.size(), size_t{1} << 16);
}

TEST_F(FollowedFileTest, WaitsForTheNextFileOfAName) {
  const base::UniqueFd old = Writer(path_);
  Write(old, "1\n");
  FollowedFile file(path_, *this);
  After(file, 0);
  fs::remove(path_);
  Write(old, "2\n");
  EXPECT_EQ(After(file, 10), "2\n");
  EXPECT_THAT(told_, IsEmpty());
  After(file, 1100);
  EXPECT_THAT(told_, ElementsAre(HasSubstr("is gone")));
  Write(Writer(path_), "3\n");
  EXPECT_EQ(After(file, 10) + After(file, 10), "3\n");
}

TEST_F(FollowedFileTest, GivesAllAtItsEnd) {
  const base::UniqueFd old = Writer(path_);
  Write(old, "1\n");
  FollowedFile file(path_, *this);
  After(file, 0);
  Write(old, "2");
  fs::rename(path_, path_ + ".1");
  Write(Writer(path_), "3\n");
  text_.clear();
  file.Hurry();
  file.Look(t_ns_ + kMs, kAll);
  file.End();
  EXPECT_EQ(text_, "2\n3\n");
}

TEST_F(FollowedFileTest, ReadsNoMoreAtOnceThanAskedFor) {
  Write(Writer(path_), std::string(4 << 20, 'x'));
  FollowedFile file(path_, *this);
  size_t sum = 0, most = 0;
  while (const size_t got = file.Look(t_ns_, 1 << 20)) {
    sum += got;
    most = std::max(most, got);
  }
  EXPECT_EQ(sum, size_t{4} << 20);
  EXPECT_LE(most, size_t{1} << 20);
}

}  // namespace
}  // namespace epochmeter::cli
