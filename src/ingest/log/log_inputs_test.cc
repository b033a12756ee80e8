// SPDX-License-Identifier: Apache-2.0
#include "ingest/log/log_inputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

#include "ingest/log/file_head.h"

namespace epochmeter::ingest::log {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class LogFinderTest : public testing::Test {
 protected:
  LogFinderTest() {
    std::string folder = testing::TempDir() + "log_inputs-XXXXXX";
    EXPECT_NE(::mkdtemp(folder.data()), nullptr);
    folder_ = folder + "/";
  }
  ~LogFinderTest() override { std::filesystem::remove_all(folder_); }

  std::string Make(const std::string& name, const std::string& bytes = "step 1 loss 2\n") {
    std::filesystem::create_directories(std::filesystem::path(folder_ + name).parent_path());
    std::ofstream(folder_ + name, std::ios::binary) << bytes;
    return folder_ + name;
  }

  std::vector<std::string> Find(const std::vector<std::string>& words, bool live = false) {
    LogFinder finder(live);
    std::vector<std::string> names;
    for (const LogInput& input : finder.Find(words)) names.push_back(Short(input.name));
    errors_.clear();
    for (const base::Error& error : finder.errors()) errors_.push_back(error.Message());
    left_out_ = finder.LeftOut();
    return names;
  }

  std::string Short(const std::string& path) const {
    return path.substr(0, folder_.size()) == folder_ ? path.substr(folder_.size()) : path;
  }

  static std::string Noise(size_t size) {
    std::mt19937 random(6);
    std::string bytes;
    while (bytes.size() < size) bytes += static_cast<char>(random());
    return bytes;
  }

  std::string folder_;
  std::vector<std::string> errors_, left_out_;
};

TEST_F(LogFinderTest, ReadsAFolderWithAllBelowItInNaturalOrder) {
  Make("log/workerlog.10");
  Make("log/workerlog.2");
  Make("log/node1/0/stdout.log");
  Make("log/empty.log", "");
  EXPECT_THAT(Find({folder_ + "log"}), ElementsAre("log/empty.log", "log/node1/0/stdout.log",
                                                   "log/workerlog.2", "log/workerlog.10"));
  EXPECT_THAT(errors_, IsEmpty());
  EXPECT_THAT(left_out_, IsEmpty());
}

TEST_F(LogFinderTest, LeavesOutOfFoldersWhatIsNoLogAndCountsIt) {
  Make("d/train.log");
  Make("d/utf16.log", std::string("\xff\xfes\0t\0e\0p\0 \0001\0\n\0", 16));
  Make("d/.git/config");
  Make("d/.hidden");
  Make("d/events.out.tfevents.1", Noise(5000));
  Make("d/curve.jpg", "\xff\xd8\xff text all the same");
  Make("d/picture", std::string("\x89PNG\r\n\x1a\n") + Noise(50));
  Make("d/run", std::string("\x89") + "EMR\r\n\x1a\n");
  Make("d/model.pdparams", "text");
  Make("d/zeros", std::string(5000, '\0'));
  EXPECT_THAT(Find({folder_ + "d"}), ElementsAre("d/train.log", "d/utf16.log"));
  ASSERT_EQ(left_out_.size(), 1u);
  EXPECT_THAT(left_out_[0], HasSubstr("8 files were left out"));
  EXPECT_THAT(left_out_[0], HasSubstr("2 hidden"));
  EXPECT_THAT(left_out_[0], HasSubstr("2 binary"));
  EXPECT_THAT(left_out_[0], HasSubstr("2 by their ending"));
  EXPECT_THAT(left_out_[0], HasSubstr("1 run files"));
  EXPECT_THAT(left_out_[0], HasSubstr("1 pictures and archives"));
}

TEST_F(LogFinderTest, ReadsALogThatBeginsWithTheHoleOfATruncation) {
  Make("d/train.log", std::string(100'000, '\0') + "step 1 loss 2\nstep 2 loss 1\n");
  EXPECT_THAT(Find({folder_ + "d"}), ElementsAre("d/train.log"));
}

TEST_F(LogFinderTest, ReadsALogWithAHoleInItsMidst) {
  const std::string hole(100'000, '\0'), line = "step 1 loss 2\n";
  const std::vector<std::string> paths = {
      Make("d/a.log", line + hole + line), Make("d/b.log", std::string(3000, '\0') + line + line),
      Make("d/c.log", line + std::string(300, '\0') + line + std::string(400, '\0') + line),
      Make("d/d.log", hole + line + hole)};
  EXPECT_THAT(Find(paths), ElementsAre("d/a.log", "d/b.log", "d/c.log", "d/d.log"));
  EXPECT_THAT(errors_, IsEmpty());
  EXPECT_THAT(Find({folder_ + "d"}), ElementsAre("d/a.log", "d/b.log", "d/c.log"));
}

TEST_F(LogFinderTest, TakesNoBinaryWithHolesForALog) {
  const std::string hole(100'000, '\0');
  std::string tar(10'240, '\0');
  tar.replace(0, 9, "train.log");
  tar.replace(257, 5, "ustar");
  tar.replace(512, 500, 500, 'a');
  for (const std::string& bytes :
       {"\x7f"
        "ELF\2\1\1" +
            hole + Noise(9000),
        std::string("\x89PNG\r\n\x1a\n") + hole + Noise(9000), Noise(9000) + hole + Noise(9000),
        std::string("SQLite format 3\0", 16) + hole, tar, "MARK1" + hole}) {
    EXPECT_THAT(Find({Make("noise", bytes)}), IsEmpty()) << bytes.substr(0, 8);
    EXPECT_THAT(errors_, ElementsAre(HasSubstr("it is binary, no text")));
  }
}

TEST_F(LogFinderTest, SaysWhichFoldersItMayNotRead) {
  Make("d/train.log");
  Make("d/shut/b.log");
  Make("shut/c.log");
  Make("no_entry/d.log");
  namespace fs = std::filesystem;
  const auto allow = [&](const char* name, int mode) {
    fs::permissions(folder_ + name, static_cast<fs::perms>(mode));
  };
  allow("", 0755);
  allow("d/shut", 0);
  allow("shut", 0);
  allow("no_entry", 0444);
  // Nothing is shut for the superuser.
  EXPECT_EXIT(
      {
        if (::geteuid() == 0 && ::setuid(65534) != 0) std::_Exit(2);
        const auto found = Find({folder_ + "shut", folder_ + "d", folder_ + "no_entry"});
        for (const std::string& error : errors_) std::fprintf(stderr, "%s\n", error.c_str());
        std::_Exit(found == std::vector<std::string>{"d/train.log"} && errors_.size() == 3 ? 0 : 1);
      },
      testing::ExitedWithCode(0),
      "/shut: Permission denied.*/d/shut: Permission denied.*/no_entry");
  for (const char* name : {"d/shut", "shut", "no_entry"}) allow(name, 0755);
}

TEST_F(LogFinderTest, ExpandsAPatternThatTheShellDidNot) {
  Make("log/workerlog.10");
  Make("log/workerlog.9");
  Make("log/other.txt");
  EXPECT_THAT(Find({folder_ + "log/worker*"}), ElementsAre("log/workerlog.9", "log/workerlog.10"));
  EXPECT_THAT(Find({folder_ + "lo?"}),
              ElementsAre("log/other.txt", "log/workerlog.9", "log/workerlog.10"));
  EXPECT_THAT(Find({folder_ + "log/*.none"}), IsEmpty());
  EXPECT_THAT(errors_, ElementsAre(HasSubstr("no file matches this pattern")));
  Make("odd[1].log");
  EXPECT_THAT(Find({folder_ + "odd[1].log"}), ElementsAre("odd[1].log"));
}

TEST_F(LogFinderTest, PutsRotatedFilesTogether) {
  for (const char* name : {"train.log", "train.log.1", "train.log.2"}) Make(name);
  LogFinder finder(false);
  const auto found =
      finder.Find({folder_ + "train.log", folder_ + "train.log.2", folder_ + "train.log.1"});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(Short(found[0].name), "train.log");
  EXPECT_THAT(found[0].parts,
              ElementsAre(folder_ + "train.log.2", folder_ + "train.log.1", folder_ + "train.log"));
  EXPECT_TRUE(found[0].modified_ns);
}

TEST_F(LogFinderTest, ReadsAFileOnceHoweverOftenItIsNamed) {
  const std::string path = Make("log/a.log");
  std::filesystem::create_symlink(path, folder_ + "log/latest.log");
  EXPECT_THAT(Find({path, folder_ + "log", folder_ + "log/*"}), ElementsAre("log/a.log"));
}

TEST_F(LogFinderTest, SaysWhatCanNotBeRead) {
  const std::string path = Make("a.log");
  std::filesystem::create_symlink(folder_ + "loop", folder_ + "loop");
  EXPECT_THAT(Find({folder_ + "none", path + "/b", folder_ + "loop", path}), ElementsAre("a.log"));
  EXPECT_THAT(errors_, ElementsAre(HasSubstr("none: No such file or directory"),
                                   HasSubstr("Not a directory"), HasSubstr("symbolic links")));
  EXPECT_THAT(Find({Make("x.emr",
                         "\x89"
                         "EMR\r\n\x1a\n")}),
              IsEmpty());
  EXPECT_THAT(errors_, ElementsAre(HasSubstr("epochmeter report")));
  EXPECT_THAT(Find({Make("x.xz", std::string("\xfd"
                                             "7zXZ\0",
                                             6))}),
              IsEmpty());
  EXPECT_THAT(errors_, ElementsAre(HasSubstr("xz -dc")));
  EXPECT_THAT(Find({Make("noise", Noise(20'000))}), IsEmpty());
  EXPECT_THAT(errors_, ElementsAre(HasSubstr("binary")));
}

TEST_F(LogFinderTest, ReadsANamedFileThatIsTextInPart) {
  EXPECT_THAT(Find({Make("a.log", Noise(5000) + std::string(9000, 'a'))}), ElementsAre("a.log"));
  EXPECT_THAT(Find({Make("b.log", std::string(9000, '\0'))}), ElementsAre("b.log"));
  EXPECT_THAT(errors_, IsEmpty());
}

TEST_F(LogFinderTest, FindsLaterWhatIsNotThereYet) {
  LogFinder finder(true);
  const std::vector<std::string> words = {folder_ + "train.log", folder_ + "log/worker*"};
  auto found = finder.Find(words);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_FALSE(found[0].there);
  EXPECT_TRUE(finder.open());
  EXPECT_THAT(finder.errors(), IsEmpty());
  Make("train.log");
  Make("log/workerlog.0");
  found = finder.Find(words);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(Short(found[0].name), "log/workerlog.0");
  EXPECT_THAT(finder.Find(words), IsEmpty());
}

TEST_F(LogFinderTest, TakesNoRotatedFileForANewLog) {
  Make("log/train.log");
  LogFinder finder(true);
  EXPECT_EQ(finder.Find({folder_ + "log"}).size(), 1u);
  std::filesystem::rename(folder_ + "log/train.log", folder_ + "log/train.log.1");
  Make("log/train.log");
  Make("log/train.log.2");
  EXPECT_THAT(finder.Find({folder_ + "log"}), IsEmpty());
  // Also where the word is one that names the log itself.
  EXPECT_THAT(finder.Find({folder_ + "log/train.log", folder_ + "log/*"}), IsEmpty());
}

}  // namespace
}  // namespace epochmeter::ingest::log
