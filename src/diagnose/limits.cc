// SPDX-License-Identifier: Apache-2.0
#include "diagnose/limits.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.h"

namespace epochmeter::diagnose {
namespace {

// In the order of the rules' ids; one block a rule.
constexpr auto kTable = std::to_array<LimitDef>({
    {"allocator_slack.device_ratio", 0.01, "1",
     "unused reserved memory by the device's, from where it matters to anyone; own choice"},
    {"allocator_slack.pool_ratio", 0.8, "1",
     "reserved by the device's memory: a pool taken at the start (TensorFlow all, Paddle 92 %)"},
    {"allocator_slack.swing_ratio", 0.05, "1",
     "growth of the reserved, or swing of what outlives a step, by the reserved: fragmentation; "
     "own "
     "choice"},
    {"allocator_slack.unused_ratio", 0.15, "1",
     "reserved that is in no use at a step's highest need; own choice, healthy caches have 3 to "
     "12 %"},
    {"batch_headroom.used_ratio", 0.5, "1",
     "highest use of the device below which a larger batch would fit; of the jobs of one large "
     "cluster half stay below it"},
    {"bursty_gpu.high_ratio", 0.7, "1",
     "utilisation that counts as a burst; SageMaker's rule for fluctuation uses it for p95"},
    {"bursty_gpu.low_ratio", 0.1, "1", "utilisation that counts as a lull; as above, for p5"},
    {"bursty_gpu.share_info", 0.1, "1",
     "part of the samples that must be lulls, and bursts; own choice, above sampling by chance"},
    {"bursty_gpu.share_warning", 0.3, "1", "the same; own choice"},
    {"checkpoint_stall.info_ratio", 0.01, "1",
     "share of the time between first and last step spent in saving; own choice"},
    {"checkpoint_stall.warning_ratio", 0.05, "1", "the same; own choice, as for goodput reports"},
    {"cpu_bound.busy_ratio", 0.9, "1",
     "CPU time by what the job may use; SageMaker's CPU bottleneck uses 90 %"},
    {"cpu_bound.utilization_ratio", 0.5, "1",
     "GPU utilisation below which a busy CPU is taken for the reason; own choice"},
    {"data_starvation.info_ratio", 0.05, "1",
     "share of a step spent waiting for data; TensorFlow's profiler calls 5 % moderately "
     "input-bound"},
    {"data_starvation.warning_ratio", 0.20, "1",
     "the same; TensorFlow's profiler calls 20 % highly input-bound"},
    {"ecc_errors.corrected_info", 10, "{error}",
     "corrected memory errors in a run that are worth a word; own choice, they do no harm"},
    {"ecc_errors.storm_per_hour", 1000, "{error}/h",
     "corrected memory errors an hour (of the first hour at least) that are too many; own choice"},
    {"eval_share.idler_ratio", 0.5, "1",
     "utilisation in evaluation by that in training, below which a share worth a word is a "
     "warning; own choice"},
    {"eval_share.info_ratio", 0.15, "1", "share of the time since the first step; own choice"},
    {"eval_share.warning_ratio", 0.30, "1", "the same; own choice"},
    {"gpu_imbalance.batch_ratio", 0.67, "1",
     "mean batch of a rank by the median of the others; own choice"},
    {"gpu_imbalance.memory_ratio", 0.5, "1",
     "memory of a GPU by the fullest one's that is worth a word; own choice"},
    {"gpu_imbalance.power_ratio", 0.8, "1",
     "power by that of the busiest GPU: above it GPUs that wait look different but are not"},
    {"gpu_imbalance.spread", 0.1, "1",
     "SM activity between the busiest and the idlest GPU; own choice (utilisation: twice that, as "
     "in profilers of clusters)"},
    {"gpu_imbalance.work_ratio", 0.6, "1",
     "SM activity by that of the busiest GPU; own choice, healthy pairs are above 0.9"},
    {"gpu_memory_leak.least_bytes", 4194304, "By",
     "least growth over the judged part; two blocks of a small allocator pool, less is "
     "bookkeeping"},
    {"host_memory_leak.forecast_s", 2592000, "s",
     "time to the limit at the present growth from where on it is told; own choice, 30 days"},
    {"host_memory_leak.growth_ratio", 0.05, "1",
     "growth of the floor by its first value; a floor that rose by a twentieth raised no false "
     "alarm on memory of 142 containers but one"},
    {"host_memory_leak.least_bytes", 33554432, "By",
     "the same in bytes; own choice, heaps of Python programs move by as much"},
    {"host_memory_pressure.faults_per_s", 1, "{fault}/s",
     "page faults that read storage over steady steps, from where swapping is felt; own choice"},
    {"host_memory_pressure.full_info_ratio", 0.85, "1",
     "memory in use by its limit; JMC calls up to 85 % of physical memory safe"},
    {"host_memory_pressure.full_ratio", 0.95, "1", "the same; JMC warns from 95 % on"},
    {"host_memory_pressure.held_per_s", 1, "{event}/s",
     "times that a process was held at memory.high over steady steps; own choice"},
    {"host_memory_pressure.stalled_ratio", 0.02, "1",
     "part of the steps' time in which all tasks waited for memory; own choice"},
    {"host_memory_pressure.swapped_bytes", 67108864, "By",
     "memory in swap that is worth a word; own choice, what is not used is swapped at no cost"},
    {"host_memory_pressure.waiting_info_ratio", 0.01, "1",
     "part of the steps' time in which a task waited for memory; own choice"},
    {"host_memory_pressure.waiting_ratio", 0.10, "1",
     "the same, from where it is a warning; own choice"},
    {"idle_gpu.after_training_s", 300, "s",
     "how long a job may hold its GPUs after its training; own choice, saving and ending processes "
     "take a minute or two"},
    {"idle_gpu.info_s", 60, "s",
     "idle time of a GPU that is worth knowing, whatever its share; own choice"},
    {"idle_gpu.stretch_s", 10, "s",
     "shortest stretch that counts as idle; own choice, above the pauses between epochs"},
    {"idle_gpu.utilization_ratio", 0.01, "1",
     "a GPU at or below this is idle; the smallest step that the driver reports"},
    {"idle_gpu.warning_ratio", 0.10, "1",
     "idle part of the time since the first step; own choice, between healthy runs (0) and jobs "
     "that hold a GPU"},
    {"idle_gpu.warning_s", 3600, "s",
     "the same in all; clusters warn their users after 60 idle minutes"},
    {"invisible_memory.info_ratio", 0.03, "1",
     "memory in use beside the allocator, by the device's; own choice, above contexts and buffers "
     "of collectives (0.5 to 1.5 %)"},
    {"invisible_memory.warning_ratio", 0.15, "1",
     "the same, from where it is a warning; own choice"},
    {"io_bound.stalled_ratio", 0.1, "1",
     "share of time in which all tasks waited for I/O (PSI full); own choice"},
    {"io_bound.utilization_ratio", 0.5, "1",
     "GPU utilisation below which waiting for I/O is taken for the reason; own choice"},
    {"io_bound.waiting_ratio", 0.5, "1",
     "share of time in which some task waited for I/O (PSI some), or CPUs did (iowait); "
     "SageMaker's "
     "I/O bottleneck uses 50 %"},
    {"loss_spike.deviations", 5, "1",
     "scaled MADs above the weighted mean; 3 is usual, more because losses have heavy tails"},
    {"loss_spike.first_ratio", 0.05, "1",
     "rise by the level of the first values; own choice, noise around nearly 0 stays below"},
    {"loss_spike.mean_ratio", 0.5, "1", "rise by the weighted mean before it; own choice"},
    {"loss_spike.values", 3, "{value}",
     "how many values in a row; one or two are a bad batch; own choice"},
    {"low_gpu_utilization.info_ratio", 0.5, "1",
     "mean utilisation over steady steps; PyTorch's profiler advises below 50 %"},
    {"low_gpu_utilization.warning_ratio", 0.15, "1",
     "the same; clusters show jobs below 15 % in red"},
    {"low_sm_activity.busy_ratio", 0.8, "1",
     "without SM activity: utilisation from which little power is a contradiction; own choice"},
    {"low_sm_activity.full_ratio", 0.9, "1", "utilisation that reads as a full GPU; own choice"},
    {"low_sm_activity.info_ratio", 0.15, "1",
     "mean SM activity over steady steps that is worth a word; own choice"},
    {"low_sm_activity.misleading_ratio", 0.33, "1",
     "SM activity by such a utilisation that is worth a word; own choice, healthy training has 0.6 "
     "to 0.9, steps that mostly wait for one spinning thread 0.25"},
    {"low_sm_activity.power_ratio", 0.25, "1",
     "without SM activity: power by its limit; one spinning thread draws 17 % of an H200's"},
    {"low_sm_activity.warning_ratio", 0.10, "1",
     "mean SM activity over steady steps; own choice: tiny kernels give 0.1 %, one spinning thread "
     "0.7 %, a small convolutional network 10 %, healthy training 35 to 70 %"},
    {"memory_spike.device_ratio", 0.01, "1",
     "what a step needed beyond the usual, by the device's memory, from where it is a warning; own "
     "choice"},
    {"memory_spike.ratio", 1.5, "1",
     "need of a step by the highest need before it; own choice, above what batches of varying "
     "length do after an epoch"},
    {"nvlink_errors.damaged_per_s", 100, "{error}/s",
     "damaged packets a second while they came; DCGM's health check fails a link from here on"},
    {"nvlink_errors.replays", 1, "{error}",
     "packets sent again in a run; DCGM's health check warns from the first on"},
    {"oom_forecast.confidence", 0.8, "1",
     "confidence of the leak from which its end is worth telling; own choice"},
    {"oom_forecast.horizon_s", 86400, "s",
     "time to the limit that is a warning where the training does not say how long it is; own "
     "choice"},
    {"out_of_memory.fragmented_ratio", 0.10, "1",
     "memory of the allocator in no tensor, by all that it took, from which the failed request "
     "would "
     "have had room; PyTorch's own hint names no number, own choice"},
    {"out_of_memory.host_full_ratio", 0.95, "1",
     "memory in use by its limit when a training that was killed is taken as out of it; JMC warns "
     "at 95 % of physical memory"},
    {"out_of_memory.others_ratio", 0.10, "1",
     "part of the device that other processes held for them to be the cause; own choice"},
    {"pcie_bound.full_ratio", 0.70, "1",
     "mean rate in one direction by the link's; own choice, copies reach 80 to 90 % at best"},
    {"pcie_bound.sm_active_ratio", 0.50, "1",
     "SM activity below which a full link is what the GPU waits for; own choice"},
    {"pcie_bound.working_ratio", 0.50, "1",
     "utilisation from which a GPU works, so that its link should run at full speed; own choice"},
    {"periodic_stall.info_ratio", 0.01, "1",
     "share of the steps' time that regular stalls take; own choice"},
    {"periodic_stall.median_factor", 1.5, "1",
     "a stall is a step longer than this times the median; own choice, below step_outlier's"},
    {"periodic_stall.warning_ratio", 0.05, "1",
     "the same share; JVM tools call halts of 5 % of the time worth a word"},
    {"power_throttle.brake_ratio", 0.01, "1",
     "share of the steady time in which the hardware braked for power; own choice, it never "
     "should"},
    {"power_throttle.clock_lost_ratio", 0.10, "1",
     "part of the highest clock that is missing on average; below it the power cap costs little"},
    {"power_throttle.info_ratio", 0.05, "1",
     "share of the steady time at the power limit that is worth a word; own choice"},
    {"power_throttle.warning_ratio", 0.50, "1",
     "the same, from which on a clock that falls far is a warning; own choice"},
    {"printed_memory_growth.info_ratio", 0.10, "1",
     "gain of the highest figure over the run, by its first; own choice, less is noise of batches"},
    {"printed_memory_growth.warning_ratio", 0.20, "1",
     "the same, from which it is a warning; own choice, twice as much"},
    {"recorder_health.info_ratio", 0.01, "1",
     "share of the time without samples, or with late ones, that is worth a word; own choice"},
    {"recorder_health.warning_ratio", 0.05, "1",
     "share of time or events that is missing; own choice, means and sums may be off by as much"},
    {"shm_exhaustion.forecast_s", 86400, "s",
     "time to a full /dev/shm at its present growth from where on it is told; own choice"},
    {"shm_exhaustion.growth_ratio", 0.05, "1",
     "growth of the floor, by the size of /dev/shm, that is looked at; own choice"},
    {"shm_exhaustion.warning_ratio", 0.80, "1",
     "highest use by the size; own choice, one more batch of each worker then no longer fits"},
    {"slow_start.info_ratio", 0.10, "1", "start by the length of the run; own choice"},
    {"slow_start.info_s", 60, "s", "from which a start is worth a word; own choice"},
    {"slow_start.warning_s", 1200, "s", "SageMaker's MaxInitializationTime: 20 minutes"},
    {"slowing_down.info_ratio", 1.3, "1",
     "late steps by early ones, from which it is worth a word; own choice"},
    {"slowing_down.warning_ratio", 1.5, "1",
     "the same, from which it is a warning; own choice, half as much time again for each step"},
    {"stalled_steps.factor", 10, "1",
     "times the usual step that a silence must last; as in watchdogs of training frameworks"},
    {"stalled_steps.floor_s", 10, "s",
     "shortest silence that is a stall; own choice, above a single slow step"},
    {"stalled_steps.recovered_ratio", 0.2, "1",
     "the same by the length of the recording, for short ones; own choice, a fifth of the run"},
    {"stalled_steps.recovered_s", 30, "s",
     "from here on a silence that ended by itself is a warning where no rank was seen waiting for "
     "another; own choice"},
    {"step_outlier.deviations", 5, "1",
     "scaled deviations above the median; flags 0.1 to 5 % of the steps of real clusters"},
    {"step_outlier.info_ratio", 0.01, "1",
     "share of the steps' time that slow ones take beyond the median; own choice"},
    {"step_outlier.median_factor", 2, "1",
     "and longer than this times the median, as Google's goodput library counts slow loading"},
    {"step_outlier.warning_ratio", 0.05, "1", "the same share; own choice"},
    {"straggler_rank.held_ratio", 0.20, "1",
     "ranks that step together: part of the steps' time for which the others wait, by data waits, "
     "communication or utilisation; own choice, healthy pairs of GPUs differ by up to 0.1"},
    {"straggler_rank.info_factor", 1.1, "1",
     "own time by the median of the others, in 3 of 8 steps; constant skew of 10 % shows in real "
     "jobs without harm"},
    {"straggler_rank.of_best_ratio", 0.75, "1",
     "the fastest rank's median by the own one over 20 steps; NVIDIA's resiliency extension uses "
     "0.75"},
    {"straggler_rank.warning_factor", 1.3, "1",
     "own time by the median of the others, in 3 of 8 steps; names the labelled stragglers of four "
     "public jobs of a GPU cluster and nobody else"},
    {"straggler_rank.windows_ratio", 0.5, "1",
     "part of the windows in which a rank must be behind the fastest one; own choice"},
    {"tensor_cores_unused.sm_ratio", 0.2, "1",
     "SM activity from which it matters which pipes work; own choice"},
    {"tensor_cores_unused.tensor_ratio", 0.002, "1",
     "mean activity of the tensor pipes that counts as none; a convolutional network in half "
     "precision shows 4 to 10 %"},
    {"thermal_throttle.hardware_ratio", 0.01, "1",
     "share of the steady time in which the hardware's own heat limit held; own choice, it comes "
     "after the driver's limit failed"},
    {"thermal_throttle.info_ratio", 0.005, "1",
     "share of the steady time with clocks lowered by heat; own choice, above brief blips"},
    {"thermal_throttle.warning_ratio", 0.05, "1", "the same; own choice"},
    {"trend.growth_ratio", 0.01, "1",
     "growth of a floor, by its first value, that is worth a word; allocator counters have no "
     "noise"},
    {"trend.largest_rise_ratio", 0.5, "1",
     "share of the growth that came in one rise: more is a jump, such as a first evaluation"},
    {"trend.plateau_ratio", 0.5, "1",
     "growth of the last third by that of the first: less levels off (a second difference)"},
    {"trend.rises_ratio", 0.7, "1",
     "share of the windows that rise by a fifth of the mean rise; less is growth here and there"},
    {"trend.steadiness_ratio", 0.9, "1",
     "growth by the sum of all rises and falls; a random walk and a saw-tooth come down again"},
    {"trend.straightness_ratio", 0.15, "1",
     "farthest floor from the fitted line, by the growth; at 0.15 under 1 % of random walks pass"},
    {"worker_count.over_ratio", 1, "1",
     "data loader workers by the CPUs that the run may use; PyTorch warns from here on"},
    {"worker_count.under_ratio", 0.7, "1",
     "the same while steps wait for data; SageMaker's data loader rule begins at 70 %"},
    {"worker_memory_growth.growth_ratio", 0.05, "1",
     "growth of a worker's floor by its first value; resident memory has more noise than an "
     "allocator's counters, own choice"},
    {"worker_memory_growth.least_bytes", 33554432, "By",
     "the same in bytes of one worker; own choice, batches of varying size need as much"},
    {"zombie_gpu_memory.lasting_s", 5, "s",
     "how long memory must have no process; one that ends gives it back within a second or two"},
    {"zombie_gpu_memory.least_bytes", 268435456, "By",
     "memory of others that is worth a word; own choice, below a CUDA context of 300 to 600 MB and "
     "above what a desktop takes"},
    {"zombie_gpu_memory.warning_ratio", 0.05, "1",
     "the same by the device's memory, from where it is a warning; own choice"},
});

const LimitDef* Find(std::string_view id) {
  const auto* const found = std::find_if(kTable.begin(), kTable.end(),
                                         [id](const LimitDef& limit) { return limit.id == id; });
  return found == kTable.end() ? nullptr : &*found;
}

}  // namespace

std::span<const LimitDef> LimitTable() { return kTable; }

double Limits::operator[](std::string_view id) const {
  const auto changed = changed_.find(id);
  if (changed != changed_.end()) return changed->second;
  const LimitDef* limit = Find(id);
  EPM_CHECK(limit != nullptr);
  return limit->value;
}

bool Limits::Set(std::string_view id, double value) {
  if (Find(id) == nullptr || !std::isfinite(value) || value < 0) return false;
  changed_.insert_or_assign(std::string(id), value);
  return true;
}

}  // namespace epochmeter::diagnose
