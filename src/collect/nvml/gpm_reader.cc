// SPDX-License-Identifier: Apache-2.0
#include "collect/nvml/gpm_reader.h"

#include <vector>

#include "base/clock.h"

namespace epochmeter::collect::nvml {
namespace {

constexpr std::array<uint32_t, kGpmCount> kIds = {
    kNvmlGpmGraphicsUtil,  kNvmlGpmSmUtil,         kNvmlGpmSmOccupancy, kNvmlGpmIntegerUtil,
    kNvmlGpmAnyTensorUtil, kNvmlGpmHmmaTensorUtil, kNvmlGpmDramBwUtil,  kNvmlGpmFp64Util,
    kNvmlGpmFp32Util,      kNvmlGpmFp16Util,       kNvmlGpmPcieTx,      kNvmlGpmPcieRx,
    kNvmlGpmNvlinkRx,      kNvmlGpmNvlinkTx};

// A late tick may leave less time to the next.
constexpr int64_t kLeastWindowNs = 150 * base::kNsPerMs;

}  // namespace

bool GpmReader::Sample(const Reading& reading, const GpmTarget& target,
                       NvmlGpmMetricsGet& request) {
  const int64_t t_ns = reading.out.t_ns;
  if (!reading.group.Due(reading.device, first_call_, t_ns)) {
    filled_ = -1;
    return false;
  }
  if (generation_ != reading.device.generation && !Prepare(reading, target)) return false;
  const int64_t now_ns = monotonic_ns_();
  const bool too_soon = t_ns - t_ns_ < kGpmLeastPeriodNs || now_ns - read_at_ns_ < kLeastWindowNs;
  if (filled_ >= 0 && too_soon) return false;
  const int next = filled_ == 0 ? 1 : 0;
  const NvmlReturn rc = Take(reading, target, samples_[static_cast<size_t>(next)]);
  if (!reading.group.Took(reading.device, first_call_, rc, t_ns)) {
    filled_ = -1;
    return false;
  }
  const bool put = filled_ >= 0 && ReadMetrics(reading, next, request);
  filled_ = next;
  t_ns_ = t_ns;
  read_at_ns_ = now_ns;
  return put;
}

// The call for instances exists since there is GPM; that a device handle may be one of an instance
// is newer.
NvmlReturn GpmReader::Take(const Reading& reading, const GpmTarget& target,
                           NvmlGpmSample sample) const {
  const Api& api = reading.api;
  if (target.parent != nullptr && api.gpm_mig_sample_get != nullptr) {
    return api.gpm_mig_sample_get(target.parent, target.gpu_instance, sample);
  }
  return api.gpm_sample_get != nullptr ? api.gpm_sample_get(reading.device.handle, sample)
                                       : NvmlReturn{kNvmlFunctionNotFound};
}

// Asks for support and makes the sample objects anew: those of an older handle are void.
bool GpmReader::Prepare(const Reading& reading, const GpmTarget& target) {
  const Api& api = reading.api;
  Free(api);
  NvmlGpmSupport support{.version = kNvmlGpmVersion, .is_supported = 0};
  const NvmlDevice asked = target.parent != nullptr ? target.parent : reading.device.handle;
  const NvmlReturn rc = api.gpm_support != nullptr ? api.gpm_support(asked, &support)
                                                   : NvmlReturn{kNvmlFunctionNotFound};
  if (!reading.group.Took(reading.device, first_call_, rc, reading.out.t_ns)) return false;
  if (support.is_supported == 0) {
    reading.group.Unsupported(reading.device, first_call_,
                              "this GPU has no GPM counters; they begin with Hopper",
                              reading.out.t_ns);
    return false;
  }
  for (NvmlGpmSample& sample : samples_) {
    const NvmlReturn made = api.gpm_sample_alloc != nullptr ? api.gpm_sample_alloc(&sample)
                                                            : NvmlReturn{kNvmlFunctionNotFound};
    if (!reading.group.Took(reading.device, first_call_, made, reading.out.t_ns)) return false;
  }
  generation_ = reading.device.generation;
  return true;
}

bool GpmReader::ReadMetrics(const Reading& reading, int next, NvmlGpmMetricsGet& request) {
  std::vector<size_t> asked;
  last_ = {};
  request = {};
  request.version = kNvmlGpmVersion;
  request.sample1 = samples_[static_cast<size_t>(filled_)];
  request.sample2 = samples_[static_cast<size_t>(next)];
  for (size_t i = 0; i < kGpmCount; ++i) {
    if (!reading.group.Due(reading.device, first_call_ + 1 + i, reading.out.t_ns)) continue;
    request.metrics[asked.size()].metric_id = kIds[i];
    asked.push_back(i);
  }
  request.num_metrics = static_cast<uint32_t>(asked.size());
  if (asked.empty()) return false;
  const auto call = reading.api.gpm_metrics_get;
  const NvmlReturn rc = call != nullptr ? call(&request) : NvmlReturn{kNvmlFunctionNotFound};
  if (!reading.group.Took(reading.device, first_call_, rc, reading.out.t_ns)) return false;
  for (size_t k = 0; k < asked.size(); ++k) {
    const NvmlGpmMetric& metric = request.metrics[k];
    const size_t state = first_call_ + 1 + asked[k];
    if (reading.group.Took(reading.device, state, metric.nvml_return, reading.out.t_ns)) {
      PutMetric(reading, asked[k], metric.value);
    }
  }
  return true;
}

void GpmReader::PutMetric(const Reading& reading, size_t metric, double value) {
  constexpr double kBytesPerMib = 1048576.0;
  constexpr double kMostBytesPerSecond = 1e14;
  const bool share = kIds[metric] < kNvmlGpmPcieTx;
  const double number = share ? value / 100 : value * kBytesPerMib;
  // Rounding may lift a full pipe slightly over 1. An instance's SMs are counted against a wrong
  // number by some drivers and show more: kept as it is and said.
  const bool is_instance =
      metric == kGpmSmActive && number > 1.05 && number <= 8 && reading.group.of_instances();
  if (is_instance) {
    reading.group.NoteImplausible(reading.device, first_metric_ + metric, "above 100 % of its SMs",
                                  reading.out.t_ns);
  }
  const double most = is_instance ? 8 : share ? 1.05 : kMostBytesPerSecond;
  reading.PutInRange(first_metric_ + metric, number, 0, most);
  if (number >= 0 && number <= most) last_[metric] = number;
}

void GpmReader::Free(const Api& api) {
  for (NvmlGpmSample& sample : samples_) {
    if (sample != nullptr && api.gpm_sample_free != nullptr) api.gpm_sample_free(sample);
    sample = nullptr;
  }
  filled_ = -1;
  generation_ = 0;
}

}  // namespace epochmeter::collect::nvml
