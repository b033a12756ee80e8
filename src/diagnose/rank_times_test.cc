// SPDX-License-Identifier: Apache-2.0
#include "diagnose/rank_times.h"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>

namespace epochmeter::diagnose {
namespace {

using Time = std::function<double(size_t rank, int64_t step)>;

std::vector<RankTime> Compare(size_t ranks, int64_t steps, const Time& time, double k = 1.3) {
  std::vector<RankStep> all;
  for (int64_t step = 0; step < steps; ++step) {
    for (size_t rank = 0; rank < ranks; ++rank) {
      all.push_back({.step = step, .rank = rank, .duration_s = time(rank, step)});
    }
  }
  return CompareRanks(std::move(all), ranks, k, 0.75);
}

TEST(RankTimes, MedianOfOthersLeavesOneOut) {
  const std::vector<double> sorted = {1, 2, 3, 10};
  EXPECT_EQ(MedianOfOthers(sorted, 0), 3);
  EXPECT_EQ(MedianOfOthers(sorted, 3), 2);
  EXPECT_EQ(MedianOfOthers(std::vector<double>{1, 5}, 1), 1);
  EXPECT_EQ(MedianOfOthers(std::vector<double>{1, 2, 3}, 2), 1.5);
}

TEST(RankTimes, FindsAnEpisodeOfSlowSteps) {
  const auto times = Compare(10, 300, [](size_t rank, int64_t step) {
    return rank == 6 && step >= 181 && step <= 188 ? 2.0 : 1.0 + 0.01 * static_cast<double>(rank);
  });
  for (size_t rank = 0; rank < 10; ++rank) EXPECT_EQ(times[rank].slow > 0, rank == 6) << rank;
  EXPECT_EQ(times[6].first_slow_step, 183);
  EXPECT_EQ(times[6].last_slow_step, 188);
  EXPECT_EQ(times[6].windows_behind, 0U);
}

TEST(RankTimes, FindsHalfOfAllRanksPersistentlySlow) {
  const auto times = Compare(10, 200, [](size_t rank, int64_t) { return rank % 2 ? 2.0 : 1.0; });
  for (size_t rank = 0; rank < 10; ++rank) {
    EXPECT_EQ(times[rank].windows, 10U);
    EXPECT_EQ(times[rank].windows_behind, rank % 2 ? 10U : 0U);
  }
}

TEST(RankTimes, SingleSlowStepsAreNoEpisode) {
  const auto times = Compare(
      4, 200, [](size_t rank, int64_t step) { return rank == 1 && step % 10 == 0 ? 3.0 : 1.0; });
  EXPECT_EQ(times[1].slow, 0U);
}

TEST(RankTimes, RanksThatWaitForOneAnotherComeOutEven) {
  // What one step takes longer, the next takes less: both ranks do the same in the end.
  const auto times = Compare(2, 200, [](size_t rank, int64_t step) {
    return (static_cast<int64_t>(rank) + step) % 2 == 0 ? 1.4 : 0.6;
  });
  EXPECT_EQ(times[0].slow, 0U);
  EXPECT_EQ(times[1].slow, 0U);
}

TEST(RankTimes, TakesThousandsOfRanks) {
  const auto begin = std::chrono::steady_clock::now();
  const auto times =
      Compare(5000, 40, [](size_t rank, int64_t) { return rank == 4321 ? 2.0 : 1.0; });
  EXPECT_EQ(times[4321].slow, 33U);
  EXPECT_EQ(times[0].slow, 0U);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
}

TEST(RankTimes, OfNothingIsNothing) {
  EXPECT_TRUE(CompareRanks({}, 0, 1.3, 0.75).empty());
  EXPECT_EQ(Compare(1, 30, [](size_t, int64_t) { return 1.0; })[0].windows, 0U);
}

}  // namespace
}  // namespace epochmeter::diagnose
