// SPDX-License-Identifier: Apache-2.0
// A long training as records, made up but with the levels, noises and rhythms of H200 recordings:
// 30 metrics a GPU at 1 Hz, of which 12 hardly move, 6 move slowly, 8 are noise (power, energy,
// PCIe, NVLink) and 4 are ratios; and the steps of one rank or several. Repeatable; one thread.
#pragma once

#include <cstdint>
#include <vector>

#include "model/record.h"

namespace epochmeter::bench {

inline constexpr int kMetricsPerGpu = 30;
inline constexpr int64_t kWeekTicks = 604'800;
inline constexpr int64_t kEpochTicks = 6'720;  // 90 epochs a week

struct StreamShape {
  int gpus = 8;
  double ratio_step = 1e-4;  // resolution of the four ratios
  double steps_per_tick = 1e6 / kWeekTicks;
  int ranks = 1;  // that tell each step; of several, each says first that it has a GPU of its own
};

class WeekStream {
 public:
  explicit WeekStream(const StreamShape& shape);

  // RunInfo, entities and series: what is written first.
  std::vector<model::Record> Definitions() const;
  // The next second: `samples` is overwritten, the second's events are appended.
  void Tick(model::Samples* samples, std::vector<model::Event>* events);
  int64_t t_ns() const { return t_ns_; }
  static int64_t BeginNs();

 private:
  // What the noise of one GPU remembers.
  struct Gpu {
    double power_w = 640, temperature_c = 58, memory_c = 62, level = 0;
    double energy_mj = 3e9, pcie_tx = 4e12, pcie_rx = 9e12, nvlink_tx = 8e12, nvlink_rx = 8e12;
    double memory_bytes = 71.3e9;
    double replays = 20;
  };
  enum class Phase { kTrain, kValidate, kSave };

  double Uniform();  // 0 <= result < 1
  double Noise();    // normal, 0 and 1; by a sum of uniform numbers, so never beyond 3.5
  Phase PhaseNow() const;
  void GpuTick(Gpu& gpu, Phase phase, double* values);
  void Begin(std::vector<model::Event>* events);
  void Step(std::vector<model::Event>* events);

  StreamShape shape_;
  uint64_t state_ = 0x9E3779B97F4A7C15;
  std::vector<Gpu> gpus_;
  int64_t tick_ = 0;
  int64_t t_ns_;
  int64_t step_ = 0;
  double steps_due_ = 0;
  int64_t step_end_ns_;
  int64_t allocated_ = 41'994'224'640;
};

}  // namespace epochmeter::bench
