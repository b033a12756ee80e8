// SPDX-License-Identifier: Apache-2.0
#include "ingest/log/file_rank.h"

#include <gtest/gtest.h>

namespace epochmeter::ingest::log {
namespace {

TEST(RankOfPath, NamesAndFoldersSayIt) {
  EXPECT_EQ(RankOfPath("log/workerlog.3"), 3);
  EXPECT_EQ(RankOfPath("workerlog.0"), 0);
  EXPECT_EQ(RankOfPath("out/rank_12/train.log"), 12);
  EXPECT_EQ(RankOfPath("out/1/rank.03/stdout"), 3);
  EXPECT_EQ(RankOfPath("log.txt.rank7"), 7);
  EXPECT_EQ(RankOfPath("train_rank-5.log"), 5);
  EXPECT_EQ(RankOfPath("/tmp/none_x/attempt_0/2/stdout.log"), 2);
  EXPECT_EQ(RankOfPath("msrun_log/worker_4.log"), 4);
}

TEST(RankOfPath, OtherNumbersAreNone) {
  for (const char* path :
       {"train.log", "rank.log", "slurm-123.out", "ranking3.log", "frank2.txt", "gpu3/train.log",
        "run5/train.log", "node1/train.log", "worker-1.log", "rank123456789.log", "rank3b.log",
        "lora_rank", "", "/", "attempt_1/stdout.log"}) {
    EXPECT_EQ(RankOfPath(path), std::nullopt) << path;
  }
}

std::vector<std::optional<int32_t>> RanksOf(const std::vector<std::string>& names, size_t notes) {
  std::vector<LogFile> files;
  for (const std::string& name : names) files.push_back({.name = name});
  EXPECT_EQ(NameRanks(&files).size(), notes);
  std::vector<std::optional<int32_t>> ranks;
  for (const LogFile& file : files) ranks.push_back(file.rank);
  return ranks;
}

TEST(NameRanks, FoldersOfNodesThatCountFromZeroGoOn) {
  using Ranks = std::vector<std::optional<int32_t>>;
  EXPECT_EQ(RanksOf({"node10/workerlog.0", "node10/workerlog.1", "node2/workerlog.0",
                     "node2/workerlog.1"},
                    2),
            Ranks({2, 3, 0, 1}));
  EXPECT_EQ(RanksOf({"a/rank0.log", "a/rank1.log", "b/rank2.log", "b/rank3.log"}, 0),
            Ranks({0, 1, 2, 3}));
  EXPECT_EQ(RanksOf({"rank_0/out.log", "rank_0/err.log", "rank_1/out.log"}, 0), Ranks({0, 0, 1}));
  EXPECT_EQ(RanksOf({"train.log", "workerlog.1"}, 0), Ranks({std::nullopt, 1}));
}

}  // namespace
}  // namespace epochmeter::ingest::log
