// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "diagnose/rules/all.h"
#include "diagnose/test_run.h"
#include "model/gpu_metrics.h"
#include "model/host_metrics.h"

namespace epochmeter::diagnose {
namespace {

const RuleDef& kRule = rules::kWorkerCount;

constexpr model::MetricDef kCpus = model::Metric(
    {"host.cpu.limit", "", "cpu_limit_cores", "host_cpu_limit_cores", "{cpu}",
     model::MetricKind::kGauge, model::Scope::kHost, 0.01, "CPUs.", "sched_getaffinity"});
constexpr model::MetricDef kWorkers =
    model::Metric({"process.workers.count", "", "workers", "rank_workers", "{process}",
                   model::MetricKind::kGauge, model::Scope::kProcess, 1, "Workers.", "/proc"});

std::vector<model::Finding> Judged(double workers, double cpus, double wait_s,
                                   double utilization = 0.3) {
  TestRun run(60);
  run.Constant(run.Host(), kCpus, 10, cpus);
  const model::EntityId rank = run.Entity({.id = 0,
                                           .scope = model::Scope::kProcess,
                                           .name = "rank:0",
                                           .labels = {{"rank", "0"}},
                                           .attributes = {}});
  run.Constant(rank, kWorkers, 1, workers);
  run.Constant(run.Gpu(0), model::gpu::kUtilization, 1, utilization);
  run.Train({.data_wait_s = [wait_s](int) { return wait_s; }});
  return run.Judge(kRule);
}

TEST(WorkerCount, TooFewWhileStepsWaitIsAWarning) {
  const auto findings = Judged(2, 16, 0.05);
  ASSERT_EQ(SeverityOf(findings), "info");
  EXPECT_EQ(findings[0].evidence.at(0).series, "rank:0 workers");
  EXPECT_EQ(findings[0].advice.size(), 3U);
  EXPECT_NE(findings[0].advice[2].code.find("num_workers=16"), std::string::npos);
}

TEST(WorkerCount, FewWorkersThatKeepUpAreNoFault) {
  EXPECT_EQ(SeverityOf(Judged(2, 16, 0.001)), "none");
  EXPECT_EQ(SeverityOf(Judged(0, 16, 0.001)), "none");
}

TEST(WorkerCount, WaitingThatTheGpuHidesIsNoFault) {
  EXPECT_EQ(SeverityOf(Judged(2, 16, 0.05, 0.97)), "none");
}

TEST(WorkerCount, EnoughWorkersThatAreSlowAreAnothersFault) {
  EXPECT_EQ(SeverityOf(Judged(14, 16, 0.05)), "none");
}

TEST(WorkerCount, MoreThanCpusIsInfoAndAWarningWhereStepsWait) {
  EXPECT_EQ(SeverityOf(Judged(32, 8, 0.001)), "info");
  EXPECT_EQ(SeverityOf(Judged(32, 8, 0.05)), "info");
}

TEST(WorkerCount, ATreeOfTheRankAloneHasNoWorkers) {
  for (const double processes : {1.0, 5.0}) {
    TestRun run(60);
    run.Constant(run.Host(), kCpus, 10, 16);
    run.Constant(run.Tree(), model::host::kTreeProcesses, 1, processes);
    run.Train({.data_wait_s = [](int) { return 0.05; }});
    const Facts& facts = run.Finish();
    const Judgement judgement = kRule.Judge(facts);
    EXPECT_EQ(judgement.findings.size(), processes > 1 ? 0U : 1U);
    EXPECT_EQ(judgement.not_applicable.empty(), processes <= 1);
  }
}

TEST(WorkerCount, CannotJudgeWithoutCpus) {
  TestRun run(60);
  run.Train({});
  EXPECT_NE(run.NotApplicableReason(kRule), "");
}

}  // namespace
}  // namespace epochmeter::diagnose
