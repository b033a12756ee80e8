// SPDX-License-Identifier: Apache-2.0
#include "collect/nvml/identity.h"

#include <fcntl.h>

#include <array>

#include "base/strings.h"
#include "collect/proc_file.h"

namespace epochmeter::collect::nvml {
namespace {

using TextCall = NvmlReturn (*)(NvmlDevice, char*, uint32_t);

std::string ReadText(TextCall call, NvmlDevice handle) {
  std::array<char, kNvmlUuidBufferSize> text{};
  if (call == nullptr || call(handle, text.data(), text.size()) != kNvmlSuccess) return {};
  return TextInBuffer(text.data(), text.size());
}

// Adds what the call writes to its last argument, times `scale`; nothing when it fails or is
// absent.
template <typename Function, typename... Args>
void AddNumber(model::Labels* labels, const char* key, uint64_t scale, Function call,
               Args... args) {
  uint32_t value = 0;
  if (call == nullptr || call(args..., &value) != kNvmlSuccess) return;
  labels->emplace_back(key, std::to_string(value * scale));
}

void AddText(model::Labels* labels, const char* key, const std::string& value) {
  if (!value.empty()) labels->emplace_back(key, value);
}

std::string ReadFile(const std::string& path) {
  std::string text;
  return ReadAt(AT_FDCWD, path.c_str(), text, 4096) == 0 ? text : std::string();
}

std::string BrandName(uint32_t brand) {
  static constexpr std::array<const char*, 19> kNames = {
      "",       "Quadro",      "Tesla",     "NVS",     "GRID",    "GeForce",    "Titan",
      "vApps",  "vPC",         "vCS",       "RTX vWS", "vGaming", "Quadro RTX", "NVIDIA RTX",
      "NVIDIA", "GeForce RTX", "Titan RTX", "DLA",     "vGameDev"};
  return brand < kNames.size() ? kNames[brand] : "";
}

void AddDriver(const Library& library, const std::string& root, model::Labels* about) {
  AddText(about, "driver_version", library.driver_version());
  AddText(about, "nvml_version", library.nvml_version());
  AddText(about, "nvml_library", library.path());
  AddText(about, "cuda_version", CudaVersionOf(library.driver_version()));
  const std::string module = KernelModuleVersion(ReadFile(root + "/proc/driver/nvidia/version"));
  if (module != library.driver_version()) AddText(about, "kernel_module_version", module);
  // A library put before all others may stand between us and the driver and change numbers.
  AddText(about, "ld_preload", std::string(base::Trim(ReadFile(root + "/etc/ld.so.preload"))));
}

void AddChip(const Api& api, NvmlDevice handle, Identity* identity) {
  model::Labels* about = &identity->attributes;
  uint32_t value = 0;
  if (api.architecture != nullptr && api.architecture(handle, &value) == kNvmlSuccess) {
    identity->architecture = value == UINT32_MAX ? 0 : value;
    AddText(about, "architecture", ArchitectureName(value));
  }
  int32_t major = 0;
  int32_t minor = 0;
  if (api.compute_capability != nullptr &&
      api.compute_capability(handle, &major, &minor) == kNvmlSuccess) {
    about->emplace_back("compute_capability", std::to_string(major) + "." + std::to_string(minor));
  }
  AddText(about, "power_kind", PowerKind(identity->architecture, major, minor));
  if (api.brand != nullptr && api.brand(handle, &value) == kNvmlSuccess) {
    AddText(about, "brand", BrandName(value));
  }
  uint32_t pending = 0;
  if (api.mig_mode != nullptr && api.mig_mode(handle, &value, &pending) == kNvmlSuccess) {
    identity->mig = value == 1;
    about->emplace_back("mig_mode", std::to_string(value));
  }
}

// Where the GPU's memory is in the machine's map: a node of its own on GH200 and GB200.
void AddPlace(const Api& api, NvmlDevice handle, model::Labels* about) {
  uint32_t node = 0;
  if (api.numa_node != nullptr && api.numa_node(handle, &node) == kNvmlSuccess &&
      node != UINT32_MAX) {
    about->emplace_back("memory_numa_node", std::to_string(node));
  }
  NvmlAddressingModeV1 mode{.version = kNvmlAddressingModeV1Version, .mode = 0};
  if (api.addressing_mode == nullptr || api.addressing_mode(handle, &mode) != kNvmlSuccess) return;
  const char* name = mode.mode == kNvmlAddressingAts   ? "ats"
                     : mode.mode == kNvmlAddressingHmm ? "hmm"
                                                       : "none";
  about->emplace_back("addressing_mode", name);
}

}  // namespace

std::string SysfsBusId(const std::string& nvml_bus_id) {
  const std::string lower = base::ToLowerAscii(nvml_bus_id);
  return base::StartsWith(lower, "0000") && lower.find(':') == 8 ? lower.substr(4) : lower;
}

std::string ReadUuid(const Api& api, NvmlDevice handle) { return ReadText(api.uuid, handle); }
std::string ReadName(const Api& api, NvmlDevice handle) { return ReadText(api.name, handle); }

std::string ReadBusId(const Api& api, NvmlDevice handle) {
  NvmlPciInfo info{};
  if (api.pci_info == nullptr || api.pci_info(handle, &info) != kNvmlSuccess) return {};
  return TextInBuffer(info.bus_id, sizeof info.bus_id);
}

std::string ArchitectureName(uint32_t architecture) {
  switch (architecture) {
    case kNvmlArchKepler:
      return "Kepler";
    case kNvmlArchMaxwell:
      return "Maxwell";
    case kNvmlArchPascal:
      return "Pascal";
    case kNvmlArchVolta:
      return "Volta";
    case kNvmlArchTuring:
      return "Turing";
    case kNvmlArchAmpere:
      return "Ampere";
    case kNvmlArchAda:
      return "Ada";
    case kNvmlArchHopper:
      return "Hopper";
    case kNvmlArchBlackwell:
      return "Blackwell";
    case kNvmlArchRubin:
      return "Rubin";
    default:
      return {};
  }
}

std::string PowerKind(uint32_t architecture, int32_t major, int32_t minor) {
  if (architecture == 0) return {};
  if (architecture < kNvmlArchAmpere) return "instant";
  if (architecture > kNvmlArchAmpere) return "average_1s";
  if (major == 0) return {};
  return major == 8 && minor == 0 ? "instant" : "average_1s";
}

std::string CudaVersionOf(const std::string& driver_version) {
  struct Branch {
    int64_t driver;
    const char* cuda;
  };
  static constexpr std::array<Branch, 21> kBranches = {
      {{450, "11.0"}, {455, "11.1"}, {460, "11.2"}, {465, "11.3"}, {470, "11.4"}, {495, "11.5"},
       {510, "11.6"}, {515, "11.7"}, {520, "11.8"}, {525, "12.0"}, {530, "12.1"}, {535, "12.2"},
       {545, "12.3"}, {550, "12.4"}, {555, "12.5"}, {560, "12.6"}, {565, "12.7"}, {570, "12.8"},
       {575, "12.9"}, {580, "13.0"}, {590, "13.1"}}};
  const auto branch = base::ParseInt(driver_version.substr(0, driver_version.find('.')));
  for (const Branch& known : kBranches) {
    if (branch == known.driver) return known.cuda;
  }
  return {};
}

std::string KernelModuleVersion(const std::string& text) {
  // "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.04  Release Build  (...)"
  for (const std::string_view word : base::SplitWhitespace(text)) {
    const size_t dot = word.find('.');
    if (dot == std::string_view::npos || dot < 3) continue;
    if (base::ParseUint(word.substr(0, dot)) && base::ParseDouble(word.substr(0, dot + 2))) {
      return std::string(word);
    }
  }
  return {};
}

Identity ReadIdentity(const Library& library, NvmlDevice handle, const std::string& sysfs_bus_id,
                      const std::string& root) {
  Identity identity;
  model::Labels* about = &identity.attributes;
  const Api& api = library.api();
  AddText(about, "name", ReadName(api, handle));
  AddText(about, "pci_bus_id", sysfs_bus_id);
  AddText(about, "serial", ReadText(api.serial, handle));
  AddDriver(library, root, about);
  AddChip(api, handle, &identity);
  AddPlace(api, handle, about);
  constexpr uint64_t kHzPerMhz = 1000000;
  AddNumber(about, "minor", 1, api.minor_number, handle);
  AddNumber(about, "max_sm_clock_hz", kHzPerMhz, api.max_clock, handle, kNvmlClockSm);
  AddNumber(about, "max_memory_clock_hz", kHzPerMhz, api.max_clock, handle, kNvmlClockMem);
  const auto threshold = api.temperature_threshold;
  AddNumber(about, "temperature_slowdown_c", 1, threshold, handle, kNvmlThresholdSlowdown);
  AddNumber(about, "temperature_shutdown_c", 1, threshold, handle, kNvmlThresholdShutdown);
  return identity;
}

}  // namespace epochmeter::collect::nvml
