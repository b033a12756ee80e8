// SPDX-License-Identifier: Apache-2.0
#include "ingest/log/log_names.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace epochmeter::ingest::log {
namespace {

using Names = std::vector<std::string>;

std::vector<Names> Joined(const Names& paths, const Names& there = {}) {
  std::vector<Names> logs;
  for (const LogParts& log : JoinRotated(paths, [&there](const std::string& path) {
         return std::find(there.begin(), there.end(), path) != there.end();
       })) {
    logs.push_back(log.paths);
  }
  return logs;
}

TEST(NaturalLess, CountsNumbersInNamesAsNumbers) {
  Names names = {"workerlog.10",
                 "workerlog.2",
                 "a/b",
                 "a.log",
                 "log2/x",
                 "log10/x",
                 "workerlog.02",
                 "B",
                 "x99999999999999999999",
                 "x1"};
  std::sort(names.begin(), names.end(), NaturalLess);
  EXPECT_EQ(names, (Names{"B", "a/b", "a.log", "log2/x", "log10/x", "workerlog.2", "workerlog.02",
                          "workerlog.10", "x1", "x99999999999999999999"}));
}

TEST(NaturalLess, IsAnOrder) {
  for (const char* name : {"", "1", "01", "a1b", "a01b", "a1"})
    EXPECT_FALSE(NaturalLess(name, name));
  EXPECT_NE(NaturalLess("a1b", "a01b"), NaturalLess("a01b", "a1b"));
}

TEST(ReadRotatedName, KnowsWhatRotationsAppend) {
  struct Case {
    const char *name, *base, *date;
    uint64_t number;
    bool packed;
  };
  for (const Case& each :
       {Case{"train.log.1", "train.log", "", 1, false},
        Case{"d/train.log.12.gz", "d/train.log", "", 12, true},
        Case{"out.3.zst", "out", "", 3, true},
        Case{"train.log-20260131", "train.log", "20260131", 0, false},
        Case{"train.log-20260131-1769817600.gz", "train.log", "202601311769817600", 0, true},
        Case{"train.log.2026-01-31_12-00", "train.log", "202601311200", 0, false},
        Case{"0.log.20260131-120000", "0.log", "20260131120000", 0, false},
        Case{"train.2026-01-31_12-00-00_123456.log", "train.log", "20260131120000123456", 0,
             false}}) {
    const auto read = ReadRotatedName(each.name);
    ASSERT_TRUE(read) << each.name;
    EXPECT_EQ(read->base, each.base) << each.name;
    EXPECT_EQ(read->date, each.date) << each.name;
    EXPECT_EQ(read->number, each.number) << each.name;
    EXPECT_EQ(read->packed, each.packed) << each.name;
  }
}

TEST(ReadRotatedName, TakesOtherNumbersForNone) {
  for (const char* name : {"train.log", "slurm-4711.out", "run-v1.2.log", "train.log.123456", ".1",
                           "d.1/train.log", "train.gz", "train.log.x1", "t.19-1.log", ""}) {
    EXPECT_FALSE(ReadRotatedName(name)) << name;
  }
}

TEST(JoinRotated, PutsTheOldestFirst) {
  EXPECT_EQ(
      Joined({"train.log", "train.log.1", "train.log.10.gz", "train.log.2.gz"}),
      (std::vector<Names>{{"train.log.10.gz", "train.log.2.gz", "train.log.1", "train.log"}}));
  EXPECT_EQ(Joined({"a", "t.log-20260201", "t.log-20260131.gz", "b", "t.log"}),
            (std::vector<Names>{{"a"}, {"t.log-20260131.gz", "t.log-20260201", "t.log"}, {"b"}}));
}

TEST(JoinRotated, LeavesRanksApart) {
  const Names ranks = {"workerlog.0", "workerlog.1", "workerlog.2"};
  EXPECT_EQ(Joined(ranks), (std::vector<Names>{{ranks[0]}, {ranks[1]}, {ranks[2]}}));
  EXPECT_EQ(Joined({"workerlog.1", "workerlog.2"}),
            (std::vector<Names>{{"workerlog.1"}, {"workerlog.2"}}));
  // The launcher's own file beside those of ranks.
  EXPECT_EQ(Joined({"out", "out.0", "out.1"}), (std::vector<Names>{{"out"}, {"out.0"}, {"out.1"}}));
}

TEST(JoinRotated, KnowsARotationByTheLogThatWasNotNamedOrByWhatIsPacked) {
  EXPECT_EQ(Joined({"t.log.1", "t.log.2"}, {"t.log"}),
            (std::vector<Names>{{"t.log.2", "t.log.1"}}));
  EXPECT_EQ(Joined({"t.log.1", "t.log.2.gz", "t.log.3.gz"}),
            (std::vector<Names>{{"t.log.3.gz", "t.log.2.gz", "t.log.1"}}));
  EXPECT_EQ(Joined({"t.log.1.gz", "t.log.2.gz"}),
            (std::vector<Names>{{"t.log.1.gz"}, {"t.log.2.gz"}}));
  EXPECT_EQ(Joined({"t.log-20260131", "t.log-20260201"}),
            (std::vector<Names>{{"t.log-20260131"}, {"t.log-20260201"}}));
}

TEST(JoinRotated, TakesAPartOnceThatIsThereTwice) {
  EXPECT_EQ(Joined({"t.log", "t.log.1", "t.log.1.gz"}), (std::vector<Names>{{"t.log.1", "t.log"}}));
}

}  // namespace
}  // namespace epochmeter::ingest::log
