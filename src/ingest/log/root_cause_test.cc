// SPDX-License-Identifier: Apache-2.0
#include "ingest/log/root_cause.h"

#include <gtest/gtest.h>

#include <sstream>

#include "ingest/log/events.h"

namespace epochmeter::ingest::log {
namespace {

// Reads logs, all of one file each, and finds the cause.
class Case : public LogSink {
 public:
  void OnRecord(const LogRecord&) override {}
  void OnEvent(const LogEvent& event) override { finder_.Event(event); }

  // Lines "record" are training records.
  Case& File(uint32_t file, std::optional<int32_t> rank, const std::string& text,
             std::optional<int64_t> wall_ns = {}) {
    std::istringstream in(text);
    uint64_t number = 0;
    for (std::string line; std::getline(in, line);) {
      const LinePlace place{file, file, ++number, rank, wall_ns};
      if (line == "record") {
        LogRecord record;
        record.place = place;
        events_.Record(record);
        finder_.Record(record);
      } else if (events_.WantsNext(file) || EventReader::MayMatter(line)) {
        events_.Line(place, line);
      }
    }
    events_.Finish();
    return *this;
  }
  std::optional<model::LogCause> Cause() { return finder_.Take(); }

 private:
  RootCauseFinder finder_;
  EventReader events_{*this};
};

constexpr char kPeerGone[] =
    "record\nTraceback (most recent call last):\n  File \"a.py\", line 3, in step\n    loss()\n"
    "RuntimeError: [pair.cc:598] Connection closed by peer [10.0.0.7]:2222\n";
constexpr char kBadLabel[] =
    "record\nTraceback (most recent call last):\n  File \"a.py\", line 9, in load\n    load()\n"
    "ValueError: label 91 is not in [0, 80)\n";

TEST(RootCause, IsTheErrorThatBeganItNotTheRankThatLostItsPeer) {
  const auto cause = Case().File(0, 0, kPeerGone).File(1, 1, kBadLabel).Cause();
  ASSERT_TRUE(cause);
  EXPECT_EQ(cause->file, 1U);
  EXPECT_EQ(cause->rank, 1);
  EXPECT_EQ(cause->text, "ValueError: label 91 is not in [0, 80)");
}

TEST(RootCause, IsNotWhatTheLauncherNames) {
  const std::string log = std::string(kBadLabel) + kPeerGone +
                          "Traceback (most recent call last):\n  File \"run.py\", line 1, in main\n"
                          "    main()\n"
                          "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
                          "=====\nRoot Cause (first observed failure):\n[0]:\n  rank      : 0\n"
                          "  exitcode  : 1 (pid: 12)\n=====\n";
  const auto cause = Case().File(0, {}, log).Cause();
  ASSERT_TRUE(cause);
  EXPECT_EQ(cause->kind, "exception");
  EXPECT_EQ(cause->line, 5U);
  EXPECT_EQ(cause->confidence, "high");
}

TEST(RootCause, OfATracebackIsTheEventItEndsIn) {
  const auto cause =
      Case()
          .File(0, {},
                "Traceback (most recent call last):\n  File \"a.py\", line 9, in f\n    f()\n"
                "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has "
                "a total capacity of 8.00 GiB of which 1.00 GiB is free. 0 bytes is reserved by "
                "PyTorch but unallocated.\nKilled\n")
          .Cause();
  ASSERT_TRUE(cause);
  EXPECT_EQ(cause->kind, "oom_gpu");
}

TEST(RootCause, KilledAloneDoesNotProveThatMemoryRanOut) {
  const auto cause = Case().File(0, {}, "record\nKilled\n").Cause();
  ASSERT_TRUE(cause);
  EXPECT_EQ(cause->kind, "killed");
  EXPECT_EQ(cause->confidence, "medium");
  EXPECT_NE(cause->why.en.find("Nothing here says by whom"), std::string::npos);
}

TEST(RootCause, TheKernelsWordExplainsKilled) {
  const auto cause = Case()
                         .File(0, {}, "record\nKilled\n")
                         .File(1, {}, "[ 1] Out of memory: Killed process 71 (python)\n")
                         .Cause();
  ASSERT_TRUE(cause);
  EXPECT_EQ(cause->kind, "oom_kill_host");
}

TEST(RootCause, OfACollectiveThatTimedOutIsTheRankThatDidNotCome) {
  const auto cause =
      Case()
          .File(0, 0,
                "[Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=9, "
                "OpType=ALLREDUCE, Timeout(ms)=1000) ran for 1100 milliseconds\n"
                " - the lagging/dead/mismatched ranks that caused the desync are:\n"
                "     [3] finished collective #8, but didn't join collective #9\n")
          .Cause();
  ASSERT_TRUE(cause);
  EXPECT_NE(cause->why.en.find("Rank 3 did not join"), std::string::npos);
}

TEST(RootCause, ALogThatGoesOnHasNone) {
  std::string log = kBadLabel;
  for (int i = 0; i < 30; ++i) log += "record\n";
  EXPECT_FALSE(Case().File(0, {}, log).Cause());
  const std::string at_start = std::string(kBadLabel).substr(7);
  EXPECT_TRUE(Case().File(0, {}, at_start).Cause());
  EXPECT_FALSE(Case().File(0, {}, at_start + "record\n").Cause()) << "it was started again";
}

TEST(RootCause, OfAStartBeforeIsForgottenWhenTrainingStartsAnew) {
  const auto cause =
      Case()
          .File(0, {},
                std::string(kBadLabel).substr(7) + "***** Running training *****\nrecord\n" +
                    "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT "
                    "2025-01-02T03:04:05 DUE TO TIME LIMIT ***\n")
          .Cause();
  ASSERT_TRUE(cause);
  EXPECT_EQ(cause->kind, "slurm_cancelled");
}

}  // namespace
}  // namespace epochmeter::ingest::log
