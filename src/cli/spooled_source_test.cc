// SPDX-License-Identifier: Apache-2.0
#include "cli/spooled_source.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "base/file.h"
#include "base/unique_fd.h"

namespace epochmeter::cli {
namespace {

// A pipe that holds `text` and has no writer any more, as a path.
class FullPipe {
 public:
  explicit FullPipe(const std::string& text) {
    int ends[2] = {-1, -1};
    EXPECT_EQ(::pipe(ends), 0);
    reading_ = base::UniqueFd(ends[0]);
    const base::UniqueFd writing(ends[1]);
    EXPECT_TRUE(base::WriteAll(writing.get(), text, "pipe").ok());
  }
  std::string path() const { return "/proc/self/fd/" + std::to_string(reading_.get()); }

 private:
  base::UniqueFd reading_;
};

TEST(SpooledSource, APipeBecomesAFileThatIsRemoved) {
  const FullPipe pipe("abc");
  std::string path;
  {
    const auto source = SpooledSource::Make(pipe.path());
    ASSERT_TRUE(source.ok());
    path = source->path();
    EXPECT_EQ(base::ReadFile(path).value(), "abc");
    EXPECT_EQ(source->name(), pipe.path());
    EXPECT_EQ(source->Renamed({.what = "x", .where = path, .why = "", .what_to_do = ""}).where,
              pipe.path());
  }
  EXPECT_NE(::access(path.c_str(), F_OK), 0);
  EXPECT_NE(::access(path.substr(0, path.rfind('/')).c_str(), F_OK), 0);
}

TEST(SpooledSource, TooMuchIsRefusedAndRemoved) {
  const FullPipe pipe("abcd");
  EXPECT_TRUE(SpooledSource::Make(FullPipe("abc").path(), 3).ok());
  const auto source = SpooledSource::Make(pipe.path(), 3);
  ASSERT_FALSE(source.ok());
  EXPECT_NE(source.error().Message().find("through the pipe"), std::string::npos);
}

TEST(SpooledSource, AFileStaysWhereItIs) {
  const auto source = SpooledSource::Make("/proc/self/exe");
  ASSERT_TRUE(source.ok());
  EXPECT_EQ(source->path(), "/proc/self/exe");
  EXPECT_TRUE(SpooledSource::Make("/nonexistent").ok());  // who opens it says why it can't
}

}  // namespace
}  // namespace epochmeter::cli
