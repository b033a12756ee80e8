// SPDX-License-Identifier: Apache-2.0
#include "week_stream.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <string>

#include "model/gpu_activity_metrics.h"
#include "model/gpu_link_metrics.h"
#include "model/gpu_metrics.h"

namespace epochmeter::bench {
namespace {

namespace gpu = model::gpu;

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kBeginNs = 75'000 * kSecond;
constexpr int64_t kValidateTicks = 240, kSaveTicks = 30;  // at the end of each epoch

constexpr std::array<model::MetricDef, kMetricsPerGpu> kMetrics = {
    // Hardly ever another value.
    gpu::kMemoryTotal, gpu::kMemoryReserved, gpu::kMemoryUsed, gpu::kMemoryFree, gpu::kMemoryClock,
    gpu::kPowerLimit, gpu::kThrottleReasons, gpu::kPcieGeneration, gpu::kPcieWidth,
    gpu::kPcieReplays, gpu::kNvlinkActive, gpu::kProcessCount,
    // Slow.
    gpu::kUtilization, gpu::kMemoryActivity, gpu::kTemperature, gpu::kMemoryTemperature,
    gpu::kSmClock, gpu::kBar1Used,
    // Noise.
    gpu::kPower, gpu::kPowerInstant, gpu::kPowerAverage, gpu::kEnergy, gpu::kPcieTransmit,
    gpu::kPcieReceive, gpu::kNvlinkTransmit, gpu::kNvlinkReceive,
    // Ratios.
    gpu::kSmActive, gpu::kSmOccupancy, gpu::kTensorActive, gpu::kDramActive};
constexpr size_t kFirstRatio = 26;

// The double nearest to `steps` of 1/`per_unit`, as a source has it that read an integer.
double InSteps(double value, double per_unit) { return std::round(value * per_unit) / per_unit; }

}  // namespace

WeekStream::WeekStream(const StreamShape& shape)
    : shape_(shape),
      gpus_(static_cast<size_t>(shape.gpus)),
      t_ns_(kBeginNs),
      step_end_ns_(kBeginNs) {}

int64_t WeekStream::BeginNs() { return kBeginNs; }

std::vector<model::Record> WeekStream::Definitions() const {
  std::vector<model::Record> records;
  records.push_back(model::RunInfo{
      .run_id = "week",
      .boot_id = "8d1e0c3a-52f8-4c7c-a9a6-0e5b7a1f2d44",
      .anchor = {.mono_ns = kBeginNs, .boot_ns = kBeginNs, .wall_ns = 1'796'020'882 * kSecond},
      .attributes = {{"command", "python train.py"}, {"host", "node"}}});
  for (uint32_t index = 0; index < gpus_.size(); ++index) {
    char uuid[64];
    std::snprintf(uuid, sizeof uuid, "GPU-%08x-74d1-4a0e-9f1b-2a6b8c5d%04x",
                  0x5F21A3C7u * (index + 1), index);
    records.push_back(model::EntityDef{.id = index,
                                       .scope = model::Scope::kGpu,
                                       .name = uuid,
                                       .labels = {{"gpu", std::to_string(index)}, {"uuid", uuid}},
                                       .attributes = {{"product", "NVIDIA H200"}}});
    for (size_t metric = 0; metric < kMetrics.size(); ++metric) {
      model::SeriesDef def{.id = static_cast<model::SeriesId>(index * kMetrics.size() + metric),
                           .entity = index,
                           .period_ns = kSecond,
                           .metric = model::InfoOf(kMetrics[metric])};
      if (metric >= kFirstRatio) def.metric.resolution = shape_.ratio_step;
      records.push_back(std::move(def));
    }
  }
  return records;
}

double WeekStream::Uniform() {
  state_ ^= state_ << 13;
  state_ ^= state_ >> 7;
  state_ ^= state_ << 17;
  return static_cast<double>(state_ >> 11) * 0x1p-53;
}

double WeekStream::Noise() {
  state_ ^= state_ << 13;
  state_ ^= state_ >> 7;
  state_ ^= state_ << 17;
  // Four uniform numbers of 16 bits: their sum has the variance 4/12 in units of 65536.
  const double sum = static_cast<double>((state_ & 0xFFFF) + (state_ >> 16 & 0xFFFF) +
                                         (state_ >> 32 & 0xFFFF) + (state_ >> 48));
  return (sum - 131070) * (1.7320508 / 65536);
}

WeekStream::Phase WeekStream::PhaseNow() const {
  const int64_t left = kEpochTicks - tick_ % kEpochTicks;
  return left <= kSaveTicks                    ? Phase::kSave
         : left <= kSaveTicks + kValidateTicks ? Phase::kValidate
                                               : Phase::kTrain;
}

void WeekStream::GpuTick(Gpu& g, Phase phase, double* v) {
  const double work = phase == Phase::kTrain ? 1 : phase == Phase::kValidate ? 0.7 : 0.02;
  g.level = 0.98 * g.level + 0.2 * Noise();
  const double power_target = 90 + work * (550 + 2 * g.level);
  g.power_w += 0.6 * (power_target - g.power_w);
  const double power = g.power_w + 4 * Noise();
  g.temperature_c += 0.02 * (32 + power * 0.042 - g.temperature_c) + 0.03 * Noise();
  g.memory_c += 0.02 * (36 + power * 0.044 - g.memory_c) + 0.03 * Noise();
  g.energy_mj += (g.power_w + 4.5 * Noise()) * 1e3;
  g.pcie_tx += std::round(work * 23e6 + 0.4e6 * Noise() + 1e6);
  g.pcie_rx += std::round(work * 122e6 + 1.7e6 * Noise() + 6e6);
  g.nvlink_tx += std::round(work * 4.9e6 + (work > 0.5 ? 45e3 * Noise() : 0)) * 1024;
  g.nvlink_rx += std::round(work * 4.9e6 + (work > 0.5 ? 45e3 * Noise() : 0)) * 1024;
  if (Uniform() < 2e-4) g.memory_bytes = 71.3e9 + std::floor(Uniform() * 8) * 2097152;
  if (Uniform() < 2e-6) ++g.replays;
  const double used = std::floor(g.memory_bytes / 4096) * 4096;
  const bool capped = power > 652;
  const double steady[] = {150'754'820'096,
                           640'679'936,
                           used,
                           150'114'140'160 - used,
                           3201e6,
                           700,
                           capped ? 4.0 : 0.0,
                           5,
                           16,
                           g.replays,
                           18,
                           1};
  v = std::copy(std::begin(steady), std::end(steady), v);
  const double busy = std::clamp(work * 0.985 + (work > 0.5 ? 0.01 : 0.015) * Noise(), 0.0, 1.0);
  *v++ = InSteps(busy, 100);
  *v++ = InSteps(std::clamp(work * 0.44 + 0.006 * Noise() * work, 0.0, 1.0), 100);
  *v++ = std::round(g.temperature_c);
  *v++ = std::round(g.memory_c);
  *v++ = capped ? 1980e6 - 15e6 * std::floor(1 + 2 * Uniform()) : 1980e6;
  *v++ = Uniform() < 0.001 ? 4'194'304 : 2'097'152;
  const double milliwatts = InSteps(power, 1000);
  *v++ = milliwatts;
  *v++ = InSteps(std::max(60.0, g.power_w + work * 45 * Noise()), 1000);
  *v++ = milliwatts;  // of these boards the same number
  *v++ = InSteps(g.energy_mj / 1e3, 1000);
  for (const double counter : {g.pcie_tx, g.pcie_rx, g.nvlink_tx, g.nvlink_rx}) *v++ = counter;
  const double per_unit = std::round(1 / shape_.ratio_step);
  *v++ = InSteps(std::clamp(work * 0.83 + 0.006 * work * Noise(), 0.0, 1.0), per_unit);
  *v++ = InSteps(std::clamp(work * 0.41 + 0.003 * work * Noise(), 0.0, 1.0), per_unit);
  *v++ = InSteps(std::clamp(work * 0.37 + 0.004 * work * Noise(), 0.0, 1.0), per_unit);
  *v++ = InSteps(std::clamp(work * 0.29 + 0.003 * work * Noise(), 0.0, 1.0), per_unit);
}

void WeekStream::Begin(std::vector<model::Event>* events) {
  for (int rank = 0; rank < shape_.ranks; ++rank) {
    events->push_back({.t_ns = t_ns_,
                       .kind = model::EventKind::kTrainBegin,
                       .rank = rank,
                       .name = "",
                       .fields = {{.key = "framework", .value = std::string("pytorch")},
                                  {.key = "source", .value = std::string("hook")},
                                  {.key = "gpus", .value = std::to_string(rank)}}});
  }
}

void WeekStream::Step(std::vector<model::Event>* events) {
  const double mean_s = 1 / shape_.steps_per_tick;
  const auto duration_ns = static_cast<int64_t>(mean_s * 1e9 * (0.985 + 0.004 * Noise()));
  // Validation and saving leave a hole; steps never run ahead of the clock.
  step_end_ns_ = std::max(step_end_ns_ + duration_ns, t_ns_ - kSecond);
  const double loss = 1.2 + 6 / (1 + static_cast<double>(step_) / 2e4) + 0.04 * Noise();
  const double reserved = 76'433'850'368;
  if (Uniform() < 0.02) allocated_ = 41'994'224'640 + 524'288 * static_cast<int64_t>(4 * Uniform());
  ++step_;
  for (int rank = 0; rank < shape_.ranks; ++rank) {
    const auto wait_ns = static_cast<int64_t>(360e3 + 60e3 * Noise());
    const int64_t its_ns = duration_ns + static_cast<int64_t>(rank == 0 ? 0 : 1e5 * Noise());
    events->push_back(
        {.t_ns = step_end_ns_,
         .kind = model::EventKind::kStep,
         .rank = rank,
         .epoch = tick_ / kEpochTicks,
         .step = step_,
         .name = "",
         .fields = {{.key = "duration_s", .value = static_cast<double>(its_ns) / 1e9},
                    {.key = "data_wait_s", .value = static_cast<double>(wait_ns) / 1e9},
                    {.key = "scalar.loss", .value = static_cast<double>(static_cast<float>(loss))},
                    {.key = "allocated_bytes", .value = allocated_},
                    {.key = "reserved_bytes", .value = static_cast<int64_t>(reserved)},
                    {.key = "batch_size", .value = int64_t{128}}}});
  }
}

void WeekStream::Tick(model::Samples* samples, std::vector<model::Event>* events) {
  t_ns_ = kBeginNs + tick_ * kSecond + static_cast<int64_t>(120'000 + 40'000 * Noise());
  samples->t_ns = t_ns_;
  samples->values.resize(gpus_.size() * kMetricsPerGpu);
  const Phase phase = PhaseNow();
  std::array<double, kMetricsPerGpu> values{};
  for (size_t index = 0; index < gpus_.size(); ++index) {
    GpuTick(gpus_[index], phase, values.data());
    for (size_t metric = 0; metric < values.size(); ++metric) {
      const size_t id = index * values.size() + metric;
      samples->values[id] = {.series = static_cast<model::SeriesId>(id), .value = values[metric]};
    }
  }
  if (tick_ == 0 && shape_.ranks > 1) Begin(events);
  for (steps_due_ += shape_.steps_per_tick; steps_due_ >= 1; --steps_due_) Step(events);
  ++tick_;
}

}  // namespace epochmeter::bench
