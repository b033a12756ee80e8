// SPDX-License-Identifier: Apache-2.0
// Exported calls: GPU performance monitoring.
#include "call.h"
#include "generation.h"
#include "keys.h"

namespace nvml_replay {
namespace {

struct GpmSample {
  bool filled = false;
  Unit unit;
  int64_t play_ns = 0;
};

GpmSample* Unwrap(NvmlGpmSample sample) { return reinterpret_cast<GpmSample*>(sample); }

bool HasGpm(const Player& player, Unit unit) {
  const auto& tracks = player.model(unit).tracks;
  const auto first = tracks.lower_bound("gpm");
  return first != tracks.end() && first->first.rfind("gpm", 0) == 0;
}

// Id 8 got its name, and an answer, with R595.
bool KnownId(uint32_t id) { return id != 8 || kGeneration.branch >= 595; }

void ReadMetric(const Player& player, const GpmSample& from, const GpmSample& to,
                NvmlGpmMetric* metric) {
  metric->nvml_return = kNvmlNotSupported;
  if (!KnownId(metric->metric_id)) return;
  const GpmName* row = FindGpm(metric->metric_id);
  const std::string raw = "gpm:" + std::to_string(metric->metric_id);
  const std::string key = row == nullptr || player.HasKey(from.unit, raw) ? raw : row->key;
  const Reading reading = player.GpmMean(from.unit, key, from.play_ns, to.play_ns);
  metric->nvml_return = reading.code;
  if (reading.code != 0) return;
  metric->value = reading.value;
  metric->short_name = row != nullptr ? row->name : "UNNAMED";
  metric->long_name = metric->short_name;
  metric->unit = row != nullptr ? row->unit : "";
}

// The GPU instance, or nothing when it has no compute instance to run on.
const DeviceModel* FindInstance(const DeviceModel& device, uint32_t gpu_instance, int* index) {
  for (size_t i = 0; i < device.instances.size(); ++i) {
    const DeviceModel& instance = device.instances[i];
    const bool same = !instance.hole && instance.gpu_instance == static_cast<int>(gpu_instance);
    if (!same || instance.compute_instance < 0) continue;
    *index = static_cast<int>(i);
    return &instance;
  }
  return nullptr;
}

}  // namespace
}  // namespace nvml_replay

using nvml_replay::Call;
using nvml_replay::Takes;
using nvml_replay::Unwrap;

EPM_REPLAY_EXPORT NvmlReturn nvmlGpmQueryDeviceSupport(NvmlDevice device, NvmlGpmSupport* out) {
  const Call call("nvmlGpmQueryDeviceSupport", device, Takes::kBoth);
  if (call.rc() != kNvmlSuccess) return call.rc();
  if (out == nullptr) return kNvmlInvalidArgument;
  if (out->version != kNvmlGpmVersion) return kNvmlArgumentVersionMismatch;
  bool any = nvml_replay::HasGpm(call.player(), call.unit());
  for (const auto& instance : call.model().instances) {
    any = any || instance.tracks.count("gpm.sm_util") > 0;
  }
  out->is_supported = static_cast<uint32_t>(call.U64Or("gpm_supported", any ? 1 : 0));
  return kNvmlSuccess;
}

EPM_REPLAY_EXPORT NvmlReturn nvmlGpmSampleAlloc(NvmlGpmSample* sample) {
  const Call call("nvmlGpmSampleAlloc");
  if (call.rc() != kNvmlSuccess) return call.rc();
  if (sample == nullptr) return kNvmlInvalidArgument;
  *sample = reinterpret_cast<NvmlGpmSample>(new nvml_replay::GpmSample);
  return kNvmlSuccess;
}

EPM_REPLAY_EXPORT NvmlReturn nvmlGpmSampleFree(NvmlGpmSample sample) {
  if (sample == nullptr) return kNvmlInvalidArgument;
  delete Unwrap(sample);
  return kNvmlSuccess;
}

// Drivers before R575 take only the handle of a whole GPU.
EPM_REPLAY_EXPORT NvmlReturn nvmlGpmSampleGet(NvmlDevice device, NvmlGpmSample sample) {
  const bool instances = nvml_replay::kGeneration.branch >= 575;
  const Call call("nvmlGpmSampleGet", device, instances ? Takes::kBoth : Takes::kGpu);
  if (call.rc() != kNvmlSuccess) return call.rc();
  if (sample == nullptr) return kNvmlInvalidArgument;
  if (!nvml_replay::HasGpm(call.player(), call.unit())) return kNvmlNotSupported;
  *Unwrap(sample) = {true, call.unit(), call.player().PlayNs()};
  return kNvmlSuccess;
}

EPM_REPLAY_EXPORT NvmlReturn nvmlGpmMigSampleGet(NvmlDevice device, uint32_t gpu_instance,
                                                 NvmlGpmSample sample) {
  const Call call("nvmlGpmMigSampleGet", device);
  if (call.rc() != kNvmlSuccess) return call.rc();
  if (sample == nullptr) return kNvmlInvalidArgument;
  if (!call.player().MigEnabled(call.unit().device)) return kNvmlNotSupported;
  int index = -1;
  const auto* instance = nvml_replay::FindInstance(call.model(), gpu_instance, &index);
  if (instance == nullptr) return kNvmlInvalidArgument;
  const nvml_replay::Unit unit{call.unit().device, index};
  if (!nvml_replay::HasGpm(call.player(), unit)) return kNvmlNotSupported;
  *Unwrap(sample) = {true, unit, call.player().PlayNs()};
  return kNvmlSuccess;
}

EPM_REPLAY_EXPORT NvmlReturn nvmlGpmMetricsGet(NvmlGpmMetricsGet* request) {
  const Call call("nvmlGpmMetricsGet");
  if (call.rc() != kNvmlSuccess) return call.rc();
  if (request == nullptr || request->num_metrics > kNvmlGpmMetricMax) return kNvmlInvalidArgument;
  if (request->version != kNvmlGpmVersion) return kNvmlArgumentVersionMismatch;
  const auto* from = Unwrap(request->sample1);
  const auto* to = Unwrap(request->sample2);
  if (from == nullptr || to == nullptr || !from->filled || !to->filled) return kNvmlInvalidArgument;
  if (from->unit != to->unit || from->play_ns >= to->play_ns) return kNvmlInvalidArgument;
  for (uint32_t i = 0; i < request->num_metrics; ++i) {
    nvml_replay::ReadMetric(call.player(), *from, *to, &request->metrics[i]);
  }
  return kNvmlSuccess;
}
