// SPDX-License-Identifier: Apache-2.0
#include "diagnose/figures.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "diagnose/report_builder.h"
#include "model/gpu_metrics.h"
#include "model/registry.h"
#include "model/run_builder.h"

namespace epochmeter::diagnose {
namespace {

constexpr int64_t kSecond = base::kNsPerSecond;

// A run of one GPU.
struct GpuRun {
  GpuRun() {
    builder.Write(model::RunInfo{.run_id = "r", .boot_id = {}, .anchor = {}, .attributes = {}});
    gpu = registry.AddEntity({.scope = model::Scope::kGpu,
                              .name = "GPU-0",
                              .labels = {{"gpu", "0"}, {"uuid", "GPU-0"}},
                              .attributes = {}});
  }
  // 100 W at each of `power_s`, read each `period_s`.
  void PutPower(const std::vector<int64_t>& power_s, int64_t period_s) {
    const auto power = registry.AddSeries(gpu, model::gpu::kPower, period_s * kSecond);
    for (const int64_t t_s : power_s) {
      builder.Write(model::Samples{.t_ns = t_s * kSecond, .values = {{power, 100}}});
    }
  }
  model::Report Finish(int64_t length_s) {
    builder.Write(model::RunEnd{
        .t_ns = length_s * kSecond, .reason = "exited", .exit_code = 0, .signal = {}});
    return BuildReport(builder.Finish());
  }

  model::RunBuilder builder;
  model::Registry registry{builder};
  model::EntityId gpu = 0;
};

// The energy of a GPU without an energy counter, with 100 W at each of `power_s`, read each
// `period_s`, in a run of `length_s`.
std::optional<double> EnergyOf(const std::vector<int64_t>& power_s, int64_t period_s,
                               int64_t length_s) {
  GpuRun run;
  run.PutPower(power_s, period_s);
  return run.Finish(length_s).gpus.at(0).energy_j;
}

// The GPU of a run of `length_s` with an energy counter that read `energy_j` each second from 0 on,
// and, from there on, 100 W at each of `power_s`.
model::GpuStats ByCounter(const std::vector<double>& energy_j, const std::vector<int64_t>& power_s,
                          int64_t length_s) {
  GpuRun run;
  const auto energy = run.registry.AddSeries(run.gpu, model::gpu::kEnergy, kSecond);
  for (size_t i = 0; i < energy_j.size(); ++i) {
    run.builder.Write(model::Samples{.t_ns = static_cast<int64_t>(i) * kSecond,
                                     .values = {{energy, energy_j[i]}}});
  }
  run.PutPower(power_s, 1);
  return run.Finish(length_s).gpus.at(0);
}

TEST(Energy, AcrossAResetOfItsCounterComesFromPowerOrIsUnknown) {
  const std::vector<double> fallen = {9000, 9100, 9050, 9150, 9250};
  const model::GpuStats gpu = ByCounter(fallen, {0, 1, 2, 3, 4}, 4);
  EXPECT_DOUBLE_EQ(gpu.energy_j.value_or(0), 400);
  EXPECT_EQ(gpu.energy_source, "power_integral");
  EXPECT_EQ(ByCounter(fallen, {}, 4).energy_j, std::nullopt);
  EXPECT_EQ(ByCounter(fallen, {}, 4).energy_source, "");
}

TEST(Energy, ThatIsMissingInAnEpochHasAReason) {
  model::RunBuilder builder;
  model::Registry registry(builder);
  const model::EntityId gpu = registry.AddEntity({.scope = model::Scope::kGpu,
                                                  .name = "GPU-0",
                                                  .labels = {{"gpu", "0"}, {"uuid", "GPU-0"}},
                                                  .attributes = {}});
  const auto energy = registry.AddSeries(gpu, model::gpu::kEnergy, kSecond);
  const auto temperature = registry.AddSeries(gpu, model::gpu::kTemperature, kSecond);
  for (int i = 0; i <= 8; ++i) {
    const double joules = i < 6 ? 1000.0 + 100 * i : 100.0 * i;  // reset between 5 and 6 s
    builder.Write(
        model::Samples{.t_ns = i * kSecond, .values = {{energy, joules}, {temperature, 50}}});
  }
  for (int i = 0; i < 2; ++i) {
    for (const auto kind : {model::EventKind::kEpochBegin, model::EventKind::kEpochEnd}) {
      model::Event event;
      event.kind = kind;
      event.t_ns = (4 * i + (kind == model::EventKind::kEpochEnd ? 4 : 0)) * kSecond;
      event.epoch = i;
      builder.Write(event);
    }
  }
  const model::Report report = BuildReport(builder.Finish());
  ASSERT_EQ(report.epochs.size(), 2U);
  EXPECT_DOUBLE_EQ(report.epochs[0].energy_j.value_or(0), 400);
  EXPECT_EQ(report.epochs[1].energy_j, std::nullopt);
  EXPECT_EQ(
      std::count_if(report.not_measured.begin(), report.not_measured.end(),
                    [](const auto& item) { return item.subject == "gpu0 energy in epoch 1"; }),
      1);
}

TEST(Energy, OfACounterThatStandsStillIsUnknownNotZero) {
  EXPECT_EQ(ByCounter({500, 500, 500}, {}, 2).energy_j, std::nullopt);
}

TEST(Energy, OfACounterThatWasReadForASmallPartOfTheRunIsNotThatOfTheRun) {
  EXPECT_DOUBLE_EQ(ByCounter({0, 100, 200, 300}, {}, 3).energy_j.value_or(0), 300);
  EXPECT_EQ(ByCounter({0, 100, 200, 300}, {}, 30).energy_j, std::nullopt);
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
