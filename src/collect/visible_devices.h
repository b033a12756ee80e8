// SPDX-License-Identifier: Apache-2.0
// Which GPUs a process may use, by the variables in its environment: the grammar of CUDA, of the
// container runtime and of Paddle. NVML itself knows nothing of these variables. Pure.
//
// CUDA_VISIBLE_DEVICES: unset is all, empty is none. Tokens hold from the left; the first that is
// invalid or negative ends the list and those before it stay. A device named twice makes the whole
// list empty. The first token decides between numbers and names, a token of the other kind is
// invalid. Numbers are read as strtoul does ("1gpu2" is 1). Names are "GPU-" with any beginning of
// a UUID that only one device has, "MIG-" with a UUID, or "MIG-GPU-<uuid>/gi/ci". Up to driver 525
// a process gets one MIG device at most.
//
// A number counts devices in the order of CUDA: by bus id with CUDA_DEVICE_ORDER=PCI_BUS_ID, else
// fastest first, which is the same among GPUs of one model and can't be foretold among several.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace epochmeter::collect {

struct MigIdentity {
  std::string uuid;  // "MIG-..."
  uint32_t gpu_instance = 0;
  uint32_t compute_instance = 0;
};

struct GpuIdentity {
  std::string uuid;    // "GPU-..."
  std::string bus_id;  // "0000:1a:00.0", any number of digits in the domain
  std::string model;
  std::vector<MigIdentity> mig = {};
};

// As in an environment; nothing where the variable is not set, which differs from empty.
struct VisibleVariables {
  std::optional<std::string> cuda;      // CUDA_VISIBLE_DEVICES
  std::optional<std::string> nvidia;    // NVIDIA_VISIBLE_DEVICES
  std::optional<std::string> selected;  // FLAGS_selected_gpus, counted inside the list above
  std::optional<std::string> order;     // CUDA_DEVICE_ORDER
  bool operator==(const VisibleVariables&) const = default;
};
// From the text of /proc/PID/environ.
VisibleVariables VisibleVariablesOf(std::string_view environ_text);

struct VisibleGpus {
  // False: the variables choose nothing, or it can't be told what; `gpus` then has all.
  bool restricted = false;
  std::vector<size_t> gpus;      // places in the list that was given, in the order of CUDA
  std::vector<std::string> mig;  // MIG devices as they were named
  // Why a word of the list does not count or the choice can't be told; empty when all is clear.
  std::string note;
};
// `gpus` are those that the process can open: a device cgroup hides others from CUDA as well.
// `driver_branch` is the driver's major version, 0 when not known.
VisibleGpus ResolveVisibleGpus(const VisibleVariables& variables, std::span<const GpuIdentity> gpus,
                               int driver_branch = 0);

}  // namespace epochmeter::collect
