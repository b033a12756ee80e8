// SPDX-License-Identifier: Apache-2.0
// Exported calls: MIG mode and instances.
#include <cstdio>

#include "call.h"

namespace nvml_replay {
namespace {

// "1c.3g.40gb" is one compute slice of three GPU slices; without "c" they are the same number.
struct Slices {
  uint32_t compute = 1;
  uint32_t gpu = 1;
};

Slices SlicesOf(const std::string& profile) {
  Slices slices;
  unsigned first = 0;
  unsigned second = 0;
  char letter = 0;
  const int read = std::sscanf(profile.c_str(), "%u%c.%u", &first, &letter, &second);
  if (read >= 2 && letter == 'g') slices = {first, first};
  if (read == 3 && letter == 'c') slices = {first, second};
  return slices;
}

NvmlReturn Attributes(std::string_view function, NvmlDevice device, NvmlDeviceAttributes* out) {
  const Call call(function, device, Takes::kBoth);
  if (call.rc() != kNvmlSuccess) return call.rc();
  if (out == nullptr) return kNvmlInvalidArgument;
  if (call.unit().instance < 0) return kNvmlNotSupported;
  const Slices slices = SlicesOf(call.model().profile);
  const auto value = [&](const char* key, uint64_t fallback) {
    return static_cast<uint32_t>(call.U64Or(key, fallback));
  };
  constexpr uint64_t kSmsPerSlice = 16;
  out->multiprocessors = value("attribute_sm_count", kSmsPerSlice * slices.compute);
  out->shared_copy_engines = value("attribute_copy_engines", slices.gpu);
  out->shared_decoders = value("attribute_decoders", slices.gpu);
  out->shared_encoders = value("attribute_encoders", 0);
  out->shared_jpeg = value("attribute_jpegs", slices.gpu);
  out->shared_ofa = value("attribute_ofas", 0);
  out->gpu_instance_slices = value("attribute_gi_slices", slices.gpu);
  out->compute_instance_slices = value("attribute_ci_slices", slices.compute);
  out->memory_mib = call.U64Or("attribute_memory_mib", call.U64Or("memory_total", 0) >> 20);
  return kNvmlSuccess;
}

NvmlReturn InstanceId(std::string_view function, NvmlDevice device, int DeviceModel::*member,
                      uint32_t* id) {
  const Call call(function, device, Takes::kBoth);
  if (call.rc() != kNvmlSuccess) return call.rc();
  if (call.unit().instance < 0) return kNvmlNotSupported;
  if (id == nullptr) return kNvmlInvalidArgument;
  *id = static_cast<uint32_t>(call.model().*member);
  return kNvmlSuccess;
}

}  // namespace
}  // namespace nvml_replay

using nvml_replay::Call;
using nvml_replay::DeviceModel;
using nvml_replay::Takes;

EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetMigMode(NvmlDevice device, uint32_t* current,
                                                  uint32_t* pending) {
  const Call call("nvmlDeviceGetMigMode", device);
  if (call.rc() != kNvmlSuccess) return call.rc();
  const NvmlReturn rc = call.Put("mig_mode", current);
  if (rc == kNvmlSuccess && pending != nullptr) {
    *pending = static_cast<uint32_t>(call.U64Or("mig_pending", *current));
  }
  return rc;
}

// Zero where MIG is off or unknown.
EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetMaxMigDeviceCount(NvmlDevice device, uint32_t* count) {
  const Call call("nvmlDeviceGetMaxMigDeviceCount", device);
  if (call.rc() != kNvmlSuccess) return call.rc();
  if (count == nullptr) return kNvmlInvalidArgument;
  *count = call.player().MigEnabled(call.unit().device) ? call.model().max_instances : 0;
  return kNvmlSuccess;
}

// A hole, a destroyed instance and a GPU instance without compute instance are NOT_FOUND, as is
// every instance while the mode is off; a GPU that has no such mode is NOT_SUPPORTED.
EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetMigDeviceHandleByIndex(NvmlDevice device, uint32_t index,
                                                                 NvmlDevice* out) {
  const Call call("nvmlDeviceGetMigDeviceHandleByIndex", device);
  if (call.rc() != kNvmlSuccess) return call.rc();
  const DeviceModel& model = call.model();
  if (!call.player().HasKey(call.unit(), "mig_mode")) return kNvmlNotSupported;
  if (!call.player().MigEnabled(call.unit().device)) return kNvmlNotFound;
  if (out == nullptr || index >= model.max_instances) return kNvmlInvalidArgument;
  if (index >= model.instances.size()) return kNvmlNotFound;
  const DeviceModel& instance = model.instances[index];
  const nvml_replay::Unit unit{call.unit().device, static_cast<int>(index)};
  if (instance.hole || instance.compute_instance < 0) return kNvmlNotFound;
  if (call.player().StateOf(unit) != kNvmlSuccess) return kNvmlNotFound;
  *out = call.player().HandleOf(unit);
  return kNvmlSuccess;
}

EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetDeviceHandleFromMigDeviceHandle(NvmlDevice instance,
                                                                          NvmlDevice* device) {
  const Call call("nvmlDeviceGetDeviceHandleFromMigDeviceHandle", instance, Takes::kBoth);
  if (call.rc() != kNvmlSuccess) return call.rc();
  if (device == nullptr || call.unit().instance < 0) return kNvmlInvalidArgument;
  *device = call.player().HandleOf({call.unit().device});
  return kNvmlSuccess;
}

EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceIsMigDeviceHandle(NvmlDevice device, uint32_t* is_instance) {
  const Call call("nvmlDeviceIsMigDeviceHandle", device, Takes::kBoth);
  if (call.rc() != kNvmlSuccess) return call.rc();
  if (is_instance == nullptr) return kNvmlInvalidArgument;
  *is_instance = call.unit().instance >= 0 ? 1 : 0;
  return kNvmlSuccess;
}

EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetGpuInstanceId(NvmlDevice device, uint32_t* id) {
  return nvml_replay::InstanceId("nvmlDeviceGetGpuInstanceId", device, &DeviceModel::gpu_instance,
                                 id);
}

EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetComputeInstanceId(NvmlDevice device, uint32_t* id) {
  return nvml_replay::InstanceId("nvmlDeviceGetComputeInstanceId", device,
                                 &DeviceModel::compute_instance, id);
}

EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetAttributes_v2(NvmlDevice device,
                                                        NvmlDeviceAttributes* out) {
  return nvml_replay::Attributes("nvmlDeviceGetAttributes_v2", device, out);
}

EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetAttributes(NvmlDevice device, NvmlDeviceAttributes* out) {
  return nvml_replay::Attributes("nvmlDeviceGetAttributes", device, out);
}
