// SPDX-License-Identifier: Apache-2.0
// Whether the driver's library can be loaded and answers, and if not, which of the many causes it
// is: each has another fix.
#include "base/strings.h"
#include "collect/checks/check_list.h"
#include "collect/checks/look.h"
#include "collect/nvml/abi_codes.h"

namespace epochmeter::collect {
namespace {

constexpr const char* kGoesOn = "recording goes on without GPU metrics";
constexpr const char* kUtility =
    "start the container with --gpus all -e NVIDIA_DRIVER_CAPABILITIES=compute,utility";

std::string Reason(const base::Error& error) {
  std::string text = error.where;
  if (!error.why.empty()) text += (text.empty() ? "" : ": ") + error.why;
  return text;
}

// The version that a driver's library carries in its file name, which its .so.1 is a link to.
std::string VersionOfFile(const std::string& path) {
  const size_t at = path.rfind(".so.");
  const std::string version = at == std::string::npos ? "" : path.substr(at + 4);
  return version.find('.') == std::string::npos ? "" : version;
}

model::CheckFact NoGpu(const CheckContext& context) {
  std::string why = "no PCI device of NVIDIA, no driver, no /dev/nvidiactl";
  const base::Error& error = context.probe->nvml.open_error;
  if (error.code != kNvmlLibraryNotFound) why += "; " + error.what + ": " + Reason(error);
  return Info("this machine has no NVIDIA GPU: runs are recorded without GPU", why);
}

model::CheckFact NotFound(const CheckContext& context) {
  const std::string why = Reason(context.probe->nvml.open_error);
  const std::string container = ContainerKind(context);
  if (IsWsl(context)) {
    return Fault("WSL without its driver library", why,
                 "install the NVIDIA driver on Windows, then `wsl --shutdown`; the library comes "
                 "from there, never from a Linux package");
  }
  if (!container.empty()) {
    return Fault("there is a GPU, but no libnvidia-ml.so.1 in this container (" + container + ")",
                 "the capability `utility` was not given; " + why, kUtility);
  }
  return Fault("there is a GPU, but no libnvidia-ml.so.1", why,
               "install the NVIDIA driver (package nvidia-driver or libnvidia-ml1), or name the "
               "library in EPOCHMETER_NVML_LIBRARY");
}

model::CheckFact Mismatch(const CheckContext& context) {
  const NvmlProbe& nvml = context.probe->nvml;
  const std::string module = KernelModuleVersion(context);
  std::string library = VersionOfFile(nvml.path);
  if (library.empty()) library = nvml.driver_version;
  return Fault("driver and library are of different versions",
               "loaded kernel module " + (module.empty() ? "unknown" : module) + ", library " +
                   (library.empty() ? "of another version" : library) + " at " +
                   nvml.open_error.where + "; the driver was upgraded while it was loaded",
               "reboot, or stop all users of the GPU and run `rmmod nvidia_uvm nvidia && modprobe "
               "nvidia_uvm`; jobs that run now keep their metrics");
}

model::CheckFact NotLoaded(const CheckContext& context) {
  const bool container = !ContainerKind(context).empty();
  return Fault("the NVIDIA kernel driver is not loaded", Reason(context.probe->nvml.open_error),
               container ? "start the container with --gpus all (docker) or request nvidia.com/gpu "
                           "(Kubernetes)"
                         : "run `modprobe nvidia`; if it fails look at `dmesg | grep -i nvidia` "
                           "(Secure Boot, or no module built for this kernel)");
}

model::CheckFact NotOpen(const CheckContext& context) {
  const base::Error& error = context.probe->nvml.open_error;
  const std::string why = Reason(error);
  const bool stub = error.what.find("stub") != std::string::npos;
  if (stub || error.where.find("/stubs/") != std::string::npos) {
    return Fault("the NVIDIA library found is the CUDA toolkit's stub", why,
                 "take the stubs folder out of LD_LIBRARY_PATH, or set EPOCHMETER_NVML_LIBRARY to "
                 "the driver's own libnvidia-ml.so.1");
  }
  switch (error.code) {
    case kNvmlLibraryNotFound:
      return NotFound(context);
    case kNvmlDriverNotLoaded:
      return NotLoaded(context);
    case kNvmlLibRmVersionMismatch:
      return Mismatch(context);
    case kNvmlNoPermission:
    case kNvmlOperatingSystem:
      return Fault("the GPU may not be used from here", why,
                   "ask the scheduler for a GPU, or start the container with --gpus all; "
                   "/dev/nvidiactl must be open to this user and its device cgroup");
    default:
      return Fault(error.what, why,
                   error.what_to_do.empty() ? "run `nvidia-smi` and look for NVRM lines in the "
                                              "kernel log"
                                            : error.what_to_do);
  }
}

model::CheckFact Opened(const CheckContext& context) {
  const NvmlProbe& nvml = context.probe->nvml;
  const std::string module = KernelModuleVersion(context);
  const bool differs =
      !module.empty() && !nvml.driver_version.empty() && module != nvml.driver_version;
  if (differs) {
    return Fault("driver and library are of different versions",
                 "loaded kernel module " + module + ", library of driver " + nvml.driver_version +
                     " at " + nvml.path,
                 "reboot, or set EPOCHMETER_NVML_LIBRARY to the library of driver " + module);
  }
  return Ok("NVML " + nvml.nvml_version + " of driver " + nvml.driver_version + " answers",
            nvml.path);
}

model::CheckFacts Run(const CheckContext& context) {
  if (context.probe == nullptr || !context.probe->gpu_asked) return {};
  const MachineProbe& probe = *context.probe;
  model::CheckFacts facts;
  if (!probe.gpu_output.ended_badly.empty()) {
    const std::string call =
        probe.gpu_output.last_call.empty() ? "" : " in " + probe.gpu_output.last_call;
    facts.push_back(Fault("the NVIDIA library failed" + call, probe.gpu_output.ended_badly,
                          "look for NVRM and Xid lines in `dmesg`; a GPU reset or a reboot may be "
                          "needed; recorders outlive this, the sampler is restarted"));
  }
  if (IsWsl(context)) {
    facts.push_back(Limited("this is WSL: the driver is that of Windows",
                            "WSL gives no per-process list, fan, ECC, XID events or PCIe counters; "
                            "/usr/lib/wsl/lib is searched first",
                            "nothing to fix here; record on Linux for these"));
  }
  if (IsTegra(context)) {
    facts.push_back(Limited("this is a Jetson (Tegra): NVML is missing or gives placeholders",
                            "its GPU is not a PCI device, and its counters are in sysfs, which no "
                            "source here reads",
                            "host metrics and training events are recorded all the same"));
  }
  if (probe.nvml.open) {
    facts.push_back(Opened(context));
  } else if (probe.nvml.answered && IsTegra(context)) {
    facts.push_back(Info("NVML gives nothing here", Reason(probe.nvml.open_error), kGoesOn));
  } else if (probe.nvml.answered) {
    facts.push_back(HasNvidia(context) || IsWsl(context) ? NotOpen(context) : NoGpu(context));
  }
  return facts;
}

}  // namespace

const CheckDef kGpuLibraryCheck = {
    .id = "gpu.library", .summary = "the driver and its library", .Run = Run};

}  // namespace epochmeter::collect
