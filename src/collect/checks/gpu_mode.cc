// SPDX-License-Identifier: Apache-2.0
// Modes of a GPU that change what can be known of it: MIG, persistence, vGPU, unified memory.
#include "base/strings.h"
#include "collect/checks/check_list.h"
#include "collect/checks/look.h"
#include "collect/nvml/abi_codes.h"

namespace epochmeter::collect {
namespace {

std::string NameOf(const ProbedGpu& gpu) { return "GPU " + std::to_string(gpu.index); }

model::CheckFact Mig(const ProbedGpu& gpu) {
  std::string what = NameOf(gpu) + " is split by MIG";
  if (gpu.mig_instances) what += " into " + std::to_string(*gpu.mig_instances) + " instances";
  if (gpu.mig_instances == 0) {
    return Fault(what, "MIG is on, but no instance was made: nothing can run on it",
                 "`nvidia-smi mig -cgi PROFILE -C`, or switch it off: `nvidia-smi -i " +
                     std::to_string(gpu.index) + " -mig 0`");
  }
  return Limited(what,
                 "the driver measures utilisation and processes of whole GPUs only; power and "
                 "energy are those of the whole GPU",
                 "read memory and, from Hopper on, SM activity of the instance; the whole figures "
                 "need MIG off");
}

constexpr int64_t kVirtualGpu = 2;  // NVML_GPU_VIRTUALIZATION_MODE_VGPU: this is the guest

// For drivers that don't tell. Names of virtual GPUs end in a profile: "NVIDIA A100-20C", "GRID
// T4-16Q".
bool LooksVirtual(std::string_view name) {
  if (base::StartsWith(name, "GRID ")) return true;
  const size_t dash = name.rfind('-');
  if (dash == std::string_view::npos || dash + 2 >= name.size()) return false;
  const std::string_view profile = name.substr(dash + 1, name.size() - dash - 2);
  const bool digits = profile.find_first_not_of("0123456789") == std::string_view::npos;
  return digits && std::string_view("ABCQ").find(name.back()) != std::string_view::npos;
}

void Add(const ProbedGpu& gpu, model::CheckFacts& facts) {
  if (gpu.mig_mode.value_or(0) == 1) facts.push_back(Mig(gpu));
  if (gpu.mig_pending && gpu.mig_mode && *gpu.mig_pending != *gpu.mig_mode) {
    facts.push_back(Limited(
        NameOf(gpu) + ": a change of MIG mode waits for a reset",
        "current mode " + std::to_string(*gpu.mig_mode) + ", pending " +
            std::to_string(*gpu.mig_pending),
        "`nvidia-smi --gpu-reset -i " + std::to_string(gpu.index) + "` when the GPU is idle"));
  }
  if (gpu.persistence == 0) {
    facts.push_back(Info(NameOf(gpu) + ": persistence mode is off",
                         "each first call wakes the GPU, which takes seconds; an open recorder "
                         "holds it awake",
                         "`nvidia-smi -pm 1`, or run nvidia-persistenced (root)"));
  }
  const bool is_virtual =
      gpu.virtualization ? *gpu.virtualization == kVirtualGpu : LooksVirtual(gpu.name);
  if (is_virtual) {
    facts.push_back(Limited(NameOf(gpu) + " is a virtual GPU (" + gpu.name + ")",
                            "guests see no power, temperature, fan or PCIe counters",
                            "ask the host's administrator for these"));
  }
  const bool unified = gpu.mig_mode.value_or(0) != 1 && gpu.code == kNvmlSuccess &&
                       (gpu.memory_code == kNvmlNotSupported ||
                        (gpu.memory_code == kNvmlSuccess && gpu.memory_total_bytes == 0));
  if (unified) {
    facts.push_back(Limited(NameOf(gpu) + " has no memory of its own to measure",
                            "CPU and GPU share one memory, or the driver does not tell",
                            "look at the host's memory and at the framework's allocator"));
  }
}

model::CheckFacts Run(const CheckContext& context) {
  model::CheckFacts facts;
  if (context.probe == nullptr) return facts;
  for (const ProbedGpu& gpu : context.probe->nvml.gpus) Add(gpu, facts);
  return facts;
}

}  // namespace

const CheckDef kGpuModeCheck = {
    .id = "gpu.mode", .summary = "MIG, persistence, virtual GPUs, unified memory", .Run = Run};

}  // namespace epochmeter::collect
