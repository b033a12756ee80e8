// SPDX-License-Identifier: Apache-2.0
// Which of the machine's GPUs may be read from here.
#include "collect/checks/check_list.h"
#include "collect/checks/look.h"
#include "collect/nvml/abi_codes.h"

namespace epochmeter::collect {
namespace {

constexpr const char* kAskFor =
    "ask for it: --gres=gpu:N or --gpus=N (Slurm), nvidia.com/gpu (Kubernetes), --gpus all "
    "(docker); only then the device cgroup admits it";

std::string NameOf(const ProbedGpu& gpu) {
  return "GPU " + std::to_string(gpu.index) + (gpu.name.empty() ? "" : " (" + gpu.name + ")");
}

// A GPU that answers to nothing while its device file is refused: access was taken away after the
// container had started.
bool AccessRevoked(const CheckContext& context, const ProbedGpu& gpu) {
  const std::string node = context.Path("/dev/nvidia" + std::to_string(gpu.index));
  return gpu.code == kNvmlUnknown && !ContainerKind(context).empty() && Exists(node);
}

model::CheckFact Refused(const CheckContext& context, const ProbedGpu& gpu) {
  const std::string why = "NVML answers " + gpu.error;
  switch (gpu.code) {
    case kNvmlNoPermission:
    case kNvmlOperatingSystem:
      return Limited(NameOf(gpu) + " is present, not permitted",
                     why + ": the device cgroup or the rights of /dev/nvidia" +
                         std::to_string(gpu.index) + " keep it from this process",
                     kAskFor);
    case kNvmlGpuIsLost:
      return Fault(NameOf(gpu) + " is lost", why + ": it fell off the bus",
                   "look for Xid lines in `dmesg`; it needs a reset or a reboot");
    case kNvmlResetRequired:
      return Fault(NameOf(gpu) + " needs a reset", why, "`nvidia-smi --gpu-reset`, or reboot");
    default:
      break;
  }
  if (AccessRevoked(context, gpu)) {
    return Fault(NameOf(gpu) + ": device access revoked",
                 why +
                     ": after `systemctl daemon-reload` on the host the container's device rules "
                     "are gone; running jobs go on",
                 "restart the container; for the future give the devices by --device, or let the "
                 "runtime use cgroupfs");
  }
  return Fault(NameOf(gpu) + " can't be read", why,
               "run `nvidia-smi` and look for NVRM lines in `dmesg`");
}

// Device files that are there, nvidia0 and on.
size_t DeviceFiles(const CheckContext& context) {
  size_t count = 0;
  for (const std::string& name : NamesIn(context.Path("/dev"))) {
    const bool node = name.rfind("nvidia", 0) == 0 && name.size() > 6 &&
                      name.find_first_not_of("0123456789", 6) == std::string::npos;
    count += node ? 1 : 0;
  }
  return count;
}

model::CheckFact Count(const CheckContext& context, size_t usable) {
  const size_t on_bus = NvidiaPciDevices(context).size();
  const std::string text = std::to_string(usable) + (usable == 1 ? " GPU" : " GPUs");
  if (on_bus <= context.probe->nvml.gpus.size()) return Ok(text + " can be read");
  const std::string why = std::to_string(on_bus) + " on the PCI bus, " +
                          std::to_string(DeviceFiles(context)) + " with a device file here";
  if (!ContainerKind(context).empty()) return Info(text + " can be read; others are hidden", why);
  return Limited(text + " can be read, fewer than the machine has", why,
                 "look for NVRM lines in `dmesg`: a GPU that failed at start, or is bound to "
                 "another driver (vfio)");
}

model::CheckFacts Run(const CheckContext& context) {
  if (context.probe == nullptr || !context.probe->nvml.open) return {};
  model::CheckFacts facts;
  size_t usable = 0;
  for (const ProbedGpu& gpu : context.probe->nvml.gpus) {
    if (gpu.code == kNvmlSuccess) {
      ++usable;
    } else {
      facts.push_back(Refused(context, gpu));
    }
  }
  if (usable == 0 && !context.probe->nvml.gpus.empty()) {
    for (model::CheckFact& fact : facts) fact.status = model::CheckStatus::kFault;
  }
  if (context.probe->nvml.gpus.empty()) {
    facts.push_back(NvidiaPciDevices(context).empty()
                        ? Info("the driver is there, but no GPU", "NVML counts 0 devices")
                        : Fault("the driver shows no GPU",
                                "NVML counts 0 devices, the PCI bus has "
                                "some",
                                kAskFor));
  } else if (usable > 0) {
    facts.insert(facts.begin(), Count(context, usable));
  }
  return facts;
}

}  // namespace

const CheckDef kGpuAccessCheck = {
    .id = "gpu.access", .summary = "which GPUs may be read from here", .Run = Run};

}  // namespace epochmeter::collect
