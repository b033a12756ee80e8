// SPDX-License-Identifier: Apache-2.0
#include "collect/checks.h"

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <set>

#include "collect/checks/check_list.h"
#include "collect/checks/look.h"
#include "collect/source_test_util.h"

namespace epochmeter::collect {
namespace {

using model::CheckStatus;

TEST(ChecksTest, IdsAreUniqueAndEveryCheckHasASummary) {
  std::set<std::string_view> ids;
  for (const CheckDef& check : Checks()) {
    EXPECT_TRUE(ids.insert(check.id).second) << check.id;
    EXPECT_FALSE(check.summary.empty()) << check.id;
  }
}

TEST(ChecksTest, EveryFaultAndLimitHasItsCauseAndFixOnAnEmptyMachine) {
  const TempFolder root;
  MachineProbe probe;
  const CheckContext context{.root = root.path(),
                             .pid = 4711,
                             .run_folder = "/proc/none",
                             .socket_error = "not private",
                             .probe = &probe};
  int faults = 0;
  for (const CheckDef& check : Checks()) {
    for (const model::CheckFact& fact : check.Run(context)) {
      EXPECT_FALSE(fact.what.empty()) << check.id;
      if (fact.status != CheckStatus::kFault && fact.status != CheckStatus::kLimited) continue;
      EXPECT_FALSE(fact.why.empty()) << check.id << ": " << fact.what;
      EXPECT_FALSE(fact.fix.empty()) << check.id << ": " << fact.what;
      faults += fact.status == CheckStatus::kFault ? 1 : 0;
    }
  }
  EXPECT_GE(faults, 4);  // /proc, run folder, socket folder, Python hooks, process
}

TEST(ChecksTest, PressureThatIsCompiledInButOffNamesTheBootParameter) {
  const model::CheckFact off = PressureFact(EOPNOTSUPP);
  EXPECT_EQ(off.status, CheckStatus::kLimited);
  EXPECT_NE(off.fix.find("psi=1"), std::string::npos);
  EXPECT_EQ(PressureFact(0).status, CheckStatus::kOk);
  EXPECT_NE(PressureFact(ENOENT).fix.find("CONFIG_PSI"), std::string::npos);
  EXPECT_NE(PressureFact(EACCES).why.find("may not be read"), std::string::npos);
}

TEST(ChecksTest, SharedMemoryOfADefaultContainerIsTooSmall) {
  const model::CheckFact small = SharedMemoryFact("/dev/shm", 64e6, 64e6);
  EXPECT_EQ(small.status, CheckStatus::kLimited);
  EXPECT_NE(small.fix.find("--shm-size"), std::string::npos);
  EXPECT_EQ(SharedMemoryFact("/dev/shm", 8e9, 0.1e9).status, CheckStatus::kLimited);
  EXPECT_EQ(SharedMemoryFact("/dev/shm", 8e9, 8e9).status, CheckStatus::kOk);
}

TEST(ChecksTest, TheKernelModulesVersionIsReadFromEitherPlace) {
  const TempFolder root;
  const CheckContext context{.root = root.path()};
  EXPECT_EQ(KernelModuleVersion(context), "");
  root.Write("proc/driver/nvidia/version",
             "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build\n"
             "GCC version:  gcc version 12.2.0\n");
  EXPECT_EQ(KernelModuleVersion(context), "580.65.06");
  root.Write("sys/module/nvidia/version", "575.57.08\n");
  EXPECT_EQ(KernelModuleVersion(context), "575.57.08");
}

TEST(ChecksTest, MountsAreReadWithSpacesAndTheLastOneCounts) {
  const TempFolder root;
  const CheckContext context{.root = root.path()};
  root.Write("proc/self/mountinfo",
             "20 1 0:1 / /sys rw - sysfs sysfs rw\n"
             "garbage\n"
             "21 1 0:2 / /my\\040disk rw,noatime shared:1 master:2 - ext4 /dev/vda rw\n"
             "22 20 0:1 / /sys ro,nosuid - sysfs sysfs rw\n");
  ASSERT_EQ(ReadMounts(context).size(), 3U);
  EXPECT_TRUE(MountAt(context, "/my disk").has_value());
  EXPECT_TRUE(MountAt(context, "/sys")->Has("ro"));
  EXPECT_FALSE(MountAt(context, "/sys")->Has("r"));
}

// A source that never came to be, with two metrics.
constexpr std::array kMetrics = {
    model::Metric({"host.test", "kind=a", "test_a", "test_a", "1", model::MetricKind::kGauge,
                   model::Scope::kHost, 0, "A.", "test"}),
    model::Metric({"host.test", "kind=b", "test_b", "test_b", "1", model::MetricKind::kGauge,
                   model::Scope::kHost, 0, "B.", "test"})};
SourceDef TestSource() {
  return {.name = "host.test",
          .summary = "test",
          .metrics = kMetrics,
          .tier = Tier::kTick,
          .Make = nullptr};
}

TEST(MachineProbeTest, ASourceThatSaidNothingHasTheGivenReasonAndNoCost) {
  const SourceDef def = TestSource();
  const auto sources = ReadSourceProbe({}, std::span(&def, 1), "it hung");
  ASSERT_EQ(sources.size(), 1U);
  EXPECT_FALSE(sources[0].median_us.has_value());
  ASSERT_EQ(sources[0].metrics.size(), 2U);
  EXPECT_FALSE(sources[0].metrics[1].measured());
  EXPECT_EQ(sources[0].metrics[1].reason, "it hung");
}

TEST(MachineProbeTest, ValueReasonAndCostComeFromTheRecords) {
  std::vector<model::Record> records;
  const auto series = [&](model::SeriesId id, model::EntityId entity, model::MetricInfo info) {
    records.emplace_back(
        model::SeriesDef{.id = id, .entity = entity, .period_ns = 1, .metric = std::move(info)});
  };
  series(0, 0, model::InfoOf(kMetrics[0]));
  series(1, 1, model::InfoOf(kMetrics[0]));
  series(2, 0, model::InfoOf(kMetrics[1]));
  model::MetricInfo duration;
  duration.name = "recorder.source.duration";
  duration.label = "source=host.test";
  series(3, 2, duration);
  for (const double cost_s : {0.9, 20e-6, 10e-6, 30e-6}) {
    records.emplace_back(model::Samples{
        .t_ns = 1, .values = {{.series = 0, .value = 5}, {.series = 3, .value = cost_s}}});
  }
  records.emplace_back(model::SeriesState{.t_ns = 1,
                                          .series = 2,
                                          .condition = model::SeriesCondition::kNotSupported,
                                          .detail = "no sensor"});
  const SourceDef def = TestSource();
  const auto sources = ReadSourceProbe(records, std::span(&def, 1), "unused");
  EXPECT_NEAR(*sources[0].median_us, 20, 1e-9);  // the first reading, which opens files, left out
  EXPECT_EQ(sources[0].reads, 3);
  EXPECT_EQ(sources[0].metrics[0].value, 5);
  EXPECT_EQ(sources[0].metrics[0].entities, 1);
  EXPECT_EQ(sources[0].metrics[0].known_entities, 2);
  EXPECT_EQ(sources[0].metrics[1].reason, "not_supported: no sensor");
}

}  // namespace
}  // namespace epochmeter::collect
