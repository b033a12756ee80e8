// SPDX-License-Identifier: Apache-2.0
#include "diagnose/figures.h"

#include <gtest/gtest.h>

#include "diagnose/report_builder.h"
#include "model/gpu_metrics.h"
#include "model/registry.h"
#include "model/run_builder.h"

namespace epochmeter::diagnose {
namespace {

constexpr int64_t kSecond = base::kNsPerSecond;

// The energy of a GPU without an energy counter, with 100 W at each of `power_s`, read each
// `period_s`, in a run of `length_s`.
std::optional<double> EnergyOf(const std::vector<int64_t>& power_s, int64_t period_s,
                               int64_t length_s) {
  model::RunBuilder builder;
  builder.Write(model::RunInfo{.run_id = "r", .boot_id = {}, .anchor = {}, .attributes = {}});
  model::Registry registry(builder);
  const model::EntityId gpu = registry.AddEntity({.scope = model::Scope::kGpu,
                                                  .name = "GPU-0",
                                                  .labels = {{"gpu", "0"}, {"uuid", "GPU-0"}},
                                                  .attributes = {}});
  const auto power = registry.AddSeries(gpu, model::gpu::kPower, period_s * kSecond);
  for (const int64_t t_s : power_s) {
    builder.Write(model::Samples{.t_ns = t_s * kSecond, .values = {{power, 100}}});
  }
  builder.Write(
      model::RunEnd{.t_ns = length_s * kSecond, .reason = "exited", .exit_code = 0, .signal = {}});
  const model::Report report = BuildReport(builder.Finish());
  return report.gpus.at(0).energy_j;
}

TEST(Energy, OfOneSampleIsUnknownHoweverLongThePeriod) {
  EXPECT_EQ(EnergyOf({0}, 15, 15), std::nullopt);
  EXPECT_EQ(EnergyOf({15}, 15, 15), std::nullopt) << "nothing says since when";
  EXPECT_EQ(EnergyOf({0}, 15, 1), std::nullopt);
}

TEST(Energy, IsTheIntegralOfPowerOverWhatItsSamplesCover) {
  EXPECT_DOUBLE_EQ(EnergyOf({0, 15}, 15, 15).value_or(0), 1500);
  EXPECT_DOUBLE_EQ(EnergyOf({0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, 1, 10).value_or(0), 1000)
      << "to the end of its period";
}

TEST(Energy, DoesNotBridgeAGap) {
  EXPECT_EQ(EnergyOf({0, 1, 2, 3, 57, 58, 59, 60}, 1, 60), std::nullopt);
  EXPECT_EQ(EnergyOf({0, 15}, 15, 37), std::nullopt) << "less than half is covered";
}

}  // namespace
}  // namespace epochmeter::diagnose
