// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "diagnose/report_builder.h"
#include "diagnose/rules/all.h"
#include "diagnose/test_memory.h"

namespace epochmeter::diagnose {
namespace {

const RuleDef& kRule = rules::kOutOfMemory;
constexpr double kGiB = 1073741824.0;

void Raise(TestRun& run, double t_s, int32_t rank, const std::string& message,
           const std::string& type = "OutOfMemoryError") {
  run.Event(t_s, model::EventKind::kException, rank, type, {{"message", message}});
}

constexpr const char* kTorch =
    "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 24.00 GiB of "
    "which 0.50 GiB is free. Including non-PyTorch memory, this process has 23.50 GiB memory in "
    "use. Of the allocated memory 20.00 GiB is allocated by PyTorch, and 0.25 GiB is reserved by "
    "PyTorch but unallocated.";

TEST(OutOfMemory, SaysWhichStepAskedForWhatAndWhatGrew) {
  TestRun run(40);
  AddDevice(run, 0, 24 * kGiB, [](double t_s) { return 1e9 + 6e8 * t_s; });
  AddAllocator(run, 0, {.held = [](double t_s) { return 4e8 + 6e8 * t_s; }});
  run.Train({.epochs = 1, .steps = 300, .ends = false});
  Raise(run, 31.55, 0, kTorch);
  const auto findings = run.Judge(kRule);
  ASSERT_EQ(SeverityOf(findings), "critical");
  EXPECT_EQ(findings[0].rank, 0);
  EXPECT_EQ(findings[0].gpu, 0);
  ASSERT_EQ(findings[0].evidence.size(), 2U);
  EXPECT_EQ(findings[0].evidence[0].steps, std::vector<int64_t>{301});
  EXPECT_EQ(ValueOf(findings[0], "asked_bytes"), 2 * kGiB);
  EXPECT_EQ(ValueOf(findings[0], "allocated_bytes"), 20 * kGiB);
  EXPECT_NEAR(ValueOf(findings[0], "slope_bytes_per_step", 1), 6e7, 1e6);
  EXPECT_NE(findings[0].summary.en.find("had grown"), std::string::npos);
}

TEST(OutOfMemory, AFewSamplesThatRoseAreSaidAndAreNoTrend) {
  TestRun run(40);
  AddDevice(run, 0, 24 * kGiB, [](double t_s) { return 1e9 + 6e8 * t_s; });
  AddAllocator(run, 0, {.period_s = 7, .held = [](double t_s) { return 4e8 + 6e8 * t_s; }});
  run.Train({.epochs = 1, .steps = 300, .ends = false});
  Raise(run, 31.55, 0, kTorch);
  const auto findings = run.Judge(kRule);
  ASSERT_EQ(SeverityOf(findings), "critical");
  EXPECT_NE(findings[0].summary.en.find("had risen"), std::string::npos);
}

TEST(OutOfMemory, AFewLevelSamplesSayNothingOfGrowth) {
  TestRun run(40);
  AddDevice(run, 0, 24 * kGiB, [](double) { return 20 * kGiB; });
  AddAllocator(run, 0, {.period_s = 7, .held = [](double) { return 4e8; }});
  run.Train({.epochs = 1, .steps = 300, .ends = false});
  Raise(run, 31.55, 0, kTorch);
  const auto findings = run.Judge(kRule);
  ASSERT_EQ(SeverityOf(findings), "critical");
  EXPECT_EQ(findings[0].summary.en.find("risen"), std::string::npos);
  EXPECT_EQ(findings[0].summary.en.find("grew"), std::string::npos);
}

TEST(OutOfMemory, NamesFragmentation) {
  TestRun run(40);
  AddDevice(run, 0, 24 * kGiB, [](double) { return 23 * kGiB; });
  run.Train({.epochs = 1, .steps = 300, .ends = false});
  Raise(run, 31.55, 0,
        "CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 24.00 GiB total capacity; 15.00 "
        "GiB already allocated; 0.50 GiB free; 22.50 GiB reserved in total by PyTorch)");
  const auto findings = run.Judge(kRule);
  ASSERT_EQ(SeverityOf(findings), "critical");
  EXPECT_NE(findings[0].summary.en.find("fragmented"), std::string::npos);
  EXPECT_EQ(ValueOf(findings[0], "reserved_unallocated_bytes"), 7.5 * kGiB);
}

TEST(OutOfMemory, NamesOtherProcesses) {
  TestRun run(40);
  AddDevice(run, 0, 24 * kGiB, [](double) { return 23 * kGiB; });
  run.Train({.epochs = 1, .steps = 300, .ends = false});
  Raise(run, 31.55, 0,
        "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 24.00 GiB "
        "of which 0.50 GiB is free. Process 99 has 16.00 GiB memory in use. Including non-PyTorch "
        "memory, this process has 7.50 GiB memory in use. Of the allocated memory 7.00 GiB is "
        "allocated by PyTorch, and 0.10 GiB is reserved by PyTorch but unallocated.");
  const auto findings = run.Judge(kRule);
  ASSERT_EQ(SeverityOf(findings), "critical");
  EXPECT_EQ(ValueOf(findings[0], "pid99_bytes"), 16 * kGiB);
  EXPECT_NE(findings[0].summary.en.find("Other processes"), std::string::npos);
}

TEST(OutOfMemory, ACaughtOneIsAWarning) {
  TestRun run(60);
  run.Train({});
  Raise(run, 10, 0, kTorch);
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "warning");
}

TEST(OutOfMemory, AChainOfExceptionsIsOneFinding) {
  TestRun run(60);
  run.Train({.epochs = 1, .steps = 50, .ends = false});
  Raise(run, 8, 0, kTorch);
  Raise(run, 8.1, 0, std::string("Trainer failed: ") + kTorch, "RuntimeError");
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "critical");
}

TEST(OutOfMemory, ReadsTheOutputWhereNoExceptionWasTold) {
  TestRun run(60);
  run.EndWith({.reason = "exited", .exit_code = 1});
  run.Train({.epochs = 1, .steps = 50, .framework = "paddle", .ends = false});
  run.Write(model::LogText{.t_ns = 8'000'000'000,
                           .stream = 2,
                           .text = "Out of memory error on GPU 0. Cannot allocate 5.300939GB "
                                   "memory on GPU 0, available memory is only 4.233276GB."});
  const auto findings = run.Judge(kRule);
  ASSERT_EQ(SeverityOf(findings), "critical");
  EXPECT_LT(findings[0].confidence, 1);
  EXPECT_NEAR(ValueOf(findings[0], "free_bytes"), 4.233276 * kGiB, 1);
}

TEST(OutOfMemory, OutputOfATrainingThatEndedWellIsNone) {
  TestRun run(60);
  run.Train({});
  run.Write(model::LogText{.t_ns = 8'000'000'000, .stream = 2, .text = "CUDA out of memory"});
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "none");
}

TEST(OutOfMemory, OtherExceptionsAreNone) {
  TestRun run(60);
  run.Train({.epochs = 1, .steps = 50, .ends = false});
  Raise(run, 8, 0, "shape mismatch", "ValueError");
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "none");
}

TEST(OutOfMemory, TellsAKillByTheKernel) {
  TestRun run(60);
  run.EndWith({.reason = "signalled", .signal = 9});
  run.Train({.epochs = 1, .steps = 50, .ends = false});
  run.Event(
      59, model::EventKind::kProcess, {}, "oom_kill",
      {{"cgroup", std::string("/job")}, {"where", std::string("job")}, {"count", int64_t{1}}});
  const auto findings = run.Judge(kRule);
  ASSERT_EQ(SeverityOf(findings), "critical");
  EXPECT_NE(findings[0].summary.en.find("/job"), std::string::npos);
  EXPECT_EQ(findings[0].evidence[0].steps, std::vector<int64_t>{51});
}

// The recorder reads it there, and keeps the text as well.
TEST(OutOfMemory, TakesWhatTheOutputSaysOnceAndByItsText) {
  const auto judge = [](bool text_kept) {
    TestRun run(60);
    run.EndWith({.reason = "exited", .exit_code = 1});
    if (text_kept) run.Write(model::LogText{.t_ns = 8'000'000'000, .stream = 2, .text = kTorch});
    run.Event(8, model::EventKind::kException, {}, "oom_gpu",
              {{"message", std::string("CUDA out of memory. Tried to allocate 2.00 GiB.")},
               {"source", std::string("output")}});
    return run.Judge(kRule);
  };
  const auto kept = judge(true);
  ASSERT_EQ(kept.size(), 1U);
  EXPECT_EQ(ValueOf(kept[0], "allocated_bytes"), 20 * kGiB);
  const auto thinned = judge(false);
  ASSERT_EQ(thinned.size(), 1U);
  EXPECT_EQ(ValueOf(thinned[0], "asked_bytes"), 2 * kGiB);
  EXPECT_LT(thinned[0].confidence, 1);
}

TEST(OutOfMemory, AKillWithMemoryToSpareIsNone) {
  TestRun run(60);
  run.EndWith({.reason = "signalled", .signal = 9});
  run.Train({.epochs = 1, .steps = 50, .ends = false});
  EXPECT_EQ(SeverityOf(run.Judge(kRule)), "none");
}

TEST(OutOfMemory, CannotJudgeARunOfWhichNobodyTellsTheEnd) {
  model::RunBuilder builder;
  const model::Run run = builder.Finish();
  const model::Report report = BuildReport(run, {});
  const Limits limits;
  EXPECT_FALSE(kRule.Judge(Facts(run, report, limits)).not_applicable.empty());
}

TEST(OutOfMemory, TheClassWithoutATextIsOfTheDevice) {
  for (const char* message : {"", "out of memory"}) {
    TestRun run(60);
    run.Train({.ends = false});
    run.Event(45, model::EventKind::kException, 0, "OutOfMemoryError", {{"message", message}});
    const auto findings = run.Judge(kRule);
    ASSERT_EQ(findings.size(), 1U);
    EXPECT_NE(findings[0].summary.en.find("device memory"), std::string::npos)
        << findings[0].summary.en;
  }
  TestRun host(60);
  host.Train({.ends = false});
  host.Event(45, model::EventKind::kException, 0, "MemoryError", {{"message", ""}});
  EXPECT_NE(host.Judge(kRule).at(0).summary.en.find("host memory"), std::string::npos);
}

}  // namespace
}  // namespace epochmeter::diagnose
