// SPDX-License-Identifier: Apache-2.0
// What the time and energy of a run went to. Sums of time are whole nanoseconds and add up exactly:
// wall time x devices = the sum over uses = the sum over epochs, phases, ranks or GPUs.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/message.h"

namespace epochmeter::model {

// Each ns of a device is in exactly one of them.
enum class TimeUse : uint8_t {
  kProductive,     // training steps that survived, less what follows
  kDataWait,       // in steps: waiting for the next batch
  kCommunication,  // in steps: as far as the training tells it (phase comm)
  kThrottle,       // of productive time: lost to clocks that heat or hardware held down
  kRepeated,       // steps that a restart threw away: they were run again
  kEvaluation,
  kCheckpoint,
  kCompile,
  kOther,     // phases with a name of the training's own, outside of steps
  kStall,     // no step for far longer than a step takes, and nothing said why
  kIdle,      // between steps and phases
  kStartUp,   // before the first step, of a restart, too
  kTearDown,  // after the training
  kUnused,    // a GPU of the job that no rank uses
  kUnknown,   // nothing was told or recorded
};
inline constexpr size_t kTimeUseCount = 15;
std::string_view TimeUseName(TimeUse use);  // "data_wait"

// A price per GPU and hour, for GPUs whose name matches ('*' and '?' stand for any text or letter).
struct GpuPrice {
  std::string name = "*";
  double gpu_hour = 0;
  std::optional<double> evaluation_gpu_hour;  // for kEvaluation; else as the rest
  std::optional<double> idle_gpu_hour;        // for kIdle and kUnused; else as the rest
};

// What a config says; nothing is priced that has no price here.
struct Rates {
  std::string currency;        // "EUR"
  std::vector<GpuPrice> gpus;  // the first that matches holds
  std::optional<double> electricity_kwh;
  double pue = 1;  // of the data centre: its energy per energy of its computers
  std::optional<double> carbon_g_per_kwh;
};

struct UseFigures {
  int64_t ns = 0;
  double energy_j = 0;  // as far as it was measured
  double cost = 0;      // of GPU time, as far as it has a price
};

// One device, epoch, phase or rank, or all together. Only the members that name it are set.
struct BillLine {
  std::optional<int32_t> rank, gpu;
  std::optional<int64_t> pid, epoch;
  std::string name;  // of the phase, or what the driver calls the GPU
  std::array<UseFigures, kTimeUseCount> uses{};
  int64_t total_ns = 0;  // the sum over uses
  // Mean activity of the GPU in productive time, which part of that time it was sampled in, and
  // productive time x activity; absent where less than half of it was sampled.
  std::optional<double> activity_ratio;
  std::optional<double> activity_coverage_ratio;  // absent without productive time
  std::optional<int64_t> effective_ns;
  // By the energy counter and as the integral of power samples, and which part of total_ns each
  // covers. `energy_j` is the counter's where it covers more, else the integral.
  std::optional<double> counter_j, integral_j, energy_j;
  double counter_coverage_ratio = 0, integral_coverage_ratio = 0, energy_coverage_ratio = 0;
  std::optional<double> cost;                        // of the GPU time that has a price
  double cost_coverage_ratio = 0;                    // which part of total_ns that is
  std::optional<double> electricity_cost, carbon_g;  // of energy_j x PUE

  const UseFigures& Of(TimeUse use) const { return uses[static_cast<size_t>(use)]; }
};

struct Bill {
  // "gpu", or "rank" when no GPU of the job is known: then the devices are the ranks' processes,
  // and neither energy nor price is known.
  std::string basis = "gpu";
  int64_t wall_ns = 0;  // of the recording, to the training's end
  int64_t devices = 0;
  BillLine total;
  // Time outside of all epochs is in a line without an epoch, training itself in the phase "train",
  // what no rank did in a line without a rank. Only lines with time.
  std::vector<BillLine> epochs, phases, ranks, gpus;
  // Where activity comes from: "sm_active_ratio", "utilization_ratio", "power_of_limit"; empty
  // without any. `mixed` when GPUs differ: then it is the weakest of theirs.
  std::string activity_source;
  bool mixed_activity = false;
  // |counter - integral| / counter where both cover nearly all of the time of all GPUs.
  std::optional<double> energy_disagreement_ratio;
  Rates rates;
  std::vector<Message> notes;  // what was decided or is missing, and what to do about it
};

}  // namespace epochmeter::model
