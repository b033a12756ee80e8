// SPDX-License-Identifier: Apache-2.0
#include "cli/helper_output.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "base/file.h"

namespace epochmeter::cli {
namespace {

constexpr int64_t kLater = 2 * HelperOutput::kGatherNs;

// The helper's end, which outlives the parent's copy of it.
base::UniqueFd Begin(HelperOutput& output) {
  base::UniqueFd helper(::dup(output.Make()));
  output.Started(0);
  return helper;
}

void Print(const base::UniqueFd& fd, const std::string& text) {
  EXPECT_TRUE(base::WriteAll(fd.get(), text, "pipe").ok());
}

TEST(HelperOutput, FirstLinesAreToldTogetherAndOnce) {
  HelperOutput output;
  const base::UniqueFd helper = Begin(output);
  Print(helper, "WARNING\n");
  EXPECT_EQ(output.Take(1, false), "");
  Print(helper, "a stub\n");
  EXPECT_EQ(output.Take(kLater, false), "WARNING\na stub");
  Print(helper, "more\n");
  EXPECT_EQ(output.Take(2 * kLater, false), "");
}

TEST(HelperOutput, LastWordsAreTold) {
  HelperOutput output;
  base::UniqueFd helper = Begin(output);
  Print(helper, "hello\n");
  EXPECT_EQ(output.Take(kLater, false), "hello");
  Print(helper, "our bug: x\n");
  helper.Reset();
  EXPECT_EQ(output.Take(kLater + 1, true), "our bug: x");
  EXPECT_EQ(output.Take(kLater + 2, true), "");
}

TEST(HelperOutput, SilenceFirstDoesNotHideWhatComesLater) {
  HelperOutput output;
  const base::UniqueFd helper = Begin(output);
  EXPECT_EQ(output.Take(kLater, false), "");
  Print(helper, "late\n");
  EXPECT_EQ(output.Take(2 * kLater, false), "late");
}

TEST(HelperOutput, TheNextHelperThatSaysTheSameAddsNothing) {
  HelperOutput output;
  for (const char* expected : {"same", ""}) {
    const base::UniqueFd helper = Begin(output);
    Print(helper, "same\n");
    EXPECT_EQ(output.Take(kLater, false), expected);
  }
}

TEST(HelperOutput, AFloodIsCutAndNeitherBlocksNorKillsTheHelper) {
  HelperOutput output;
  const base::UniqueFd helper = Begin(output);
  const std::string line(1000, 'x');
  ssize_t n = 0;
  for (int i = 0; i < 1000 && n >= 0; ++i) n = ::write(helper.get(), line.data(), line.size());
  EXPECT_EQ(n, -1);
  EXPECT_EQ(errno, EAGAIN);
  EXPECT_EQ(output.Take(kLater, false).size(), HelperOutput::kMostBytes);
}

}  // namespace
}  // namespace epochmeter::cli
