// SPDX-License-Identifier: Apache-2.0
#include "collect/checks/look.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>

#include "base/file.h"
#include "base/strings.h"

namespace epochmeter::collect {
namespace {

constexpr size_t kMostBytes = size_t{4} << 20;

// mountinfo writes a space as \040 and so on.
std::string Unescape(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto code = text[i] == '\\' ? base::ParseUint(text.substr(i + 1, 3), 8) : std::nullopt;
    if (code) i += 3;
    out += code ? static_cast<char>(*code) : text[i];
  }
  return out;
}

std::optional<Mount> ParseMount(std::string_view line) {
  const auto words = base::SplitWhitespace(line);
  const auto dash = std::find(words.begin(), words.end(), "-");
  if (words.size() < 7 || words.end() - dash < 4) return std::nullopt;
  return Mount{.point = Unescape(words[4]),
               .type = std::string(dash[1]),
               .options = std::string(words[5]) + "," + std::string(dash[3])};
}

}  // namespace

model::CheckFact Ok(std::string what, std::string why) {
  return {
      .status = model::CheckStatus::kOk, .what = std::move(what), .why = std::move(why), .fix = {}};
}

model::CheckFact Info(std::string what, std::string why, std::string fix) {
  return {.status = model::CheckStatus::kInfo,
          .what = std::move(what),
          .why = std::move(why),
          .fix = std::move(fix)};
}

model::CheckFact Limited(std::string what, std::string why, std::string fix) {
  return {.status = model::CheckStatus::kLimited,
          .what = std::move(what),
          .why = std::move(why),
          .fix = std::move(fix)};
}

model::CheckFact Fault(std::string what, std::string why, std::string fix) {
  return {.status = model::CheckStatus::kFault,
          .what = std::move(what),
          .why = std::move(why),
          .fix = std::move(fix)};
}

bool Exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

std::vector<std::string> NamesIn(const std::string& folder) {
  std::vector<std::string> names;
  DIR* dir = ::opendir(folder.c_str());
  if (dir == nullptr) return names;
  for (const dirent* entry = ::readdir(dir); entry != nullptr; entry = ::readdir(dir)) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  ::closedir(dir);
  std::sort(names.begin(), names.end());
  return names;
}

std::optional<std::string> ReadTrimmed(const std::string& path) {
  const base::Result<std::string> text = base::ReadFile(path, kMostBytes);
  if (!text.ok()) return std::nullopt;
  return std::string(base::Trim(*text));
}

int ReadErrno(const std::string& path) {
  const base::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  char byte = 0;
  if (!fd.valid() || ::read(fd.get(), &byte, 1) < 0) return errno;
  return 0;
}

std::string LinkOf(const std::string& path) {
  std::array<char, PATH_MAX> text{};
  const ssize_t size = ::readlink(path.c_str(), text.data(), text.size());
  return size <= 0 ? std::string() : std::string(text.data(), static_cast<size_t>(size));
}

std::string EnvironmentOf(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool Mount::Has(std::string_view option) const {
  const auto words = base::Split(options, ',');
  return std::find(words.begin(), words.end(), option) != words.end();
}

std::vector<Mount> ReadMounts(const CheckContext& context) {
  std::vector<Mount> mounts;
  const auto text = ReadTrimmed(context.Path("/proc/self/mountinfo"));
  if (!text) return mounts;
  for (const std::string_view line : base::Split(*text, '\n')) {
    if (auto mount = ParseMount(line)) mounts.push_back(std::move(*mount));
  }
  return mounts;
}

std::optional<Mount> MountAt(const CheckContext& context, std::string_view point) {
  std::optional<Mount> found;
  for (Mount& mount : ReadMounts(context)) {
    if (mount.point == point) found = std::move(mount);
  }
  return found;
}

std::vector<std::string> NvidiaPciDevices(const CheckContext& context) {
  std::vector<std::string> found;
  const std::string folder = context.Path("/sys/bus/pci/devices");
  for (const std::string& name : NamesIn(folder)) {
    const std::string device = folder + "/" + name;
    if (ReadTrimmed(device + "/vendor") != "0x10de") continue;
    // 0x03....: display controllers, of which 0x0302 are the accelerators without an output.
    const auto type = ReadTrimmed(device + "/class");
    if (type && base::StartsWith(*type, "0x03")) found.push_back(name);
  }
  return found;
}

bool IsWsl(const CheckContext& context) { return Exists(context.Path("/dev/dxg")); }

bool IsTegra(const CheckContext& context) {
  if (Exists(context.Path("/etc/nv_tegra_release"))) return true;
  const auto compatible = ReadTrimmed(context.Path("/proc/device-tree/compatible"));
  return compatible && compatible->find("nvidia,tegra") != std::string::npos;
}

std::string ContainerKind(const CheckContext& context) {
  if (!EnvironmentOf("KUBERNETES_SERVICE_HOST").empty()) return "kubernetes";
  if (Exists(context.Path("/.dockerenv"))) return "docker";
  if (Exists(context.Path("/run/.containerenv"))) return "podman";
  if (!EnvironmentOf("APPTAINER_CONTAINER").empty() ||
      !EnvironmentOf("SINGULARITY_CONTAINER").empty()) {
    return "apptainer";
  }
  const auto cgroup = ReadTrimmed(context.Path("/proc/1/cgroup"));
  if (!cgroup) return {};
  if (cgroup->find("kubepods") != std::string::npos) return "kubernetes";
  if (cgroup->find("/docker") != std::string::npos) return "docker";
  if (cgroup->find("/lxc") != std::string::npos) return "lxc";
  return {};
}

bool HasNvidia(const CheckContext& context) {
  return !NvidiaPciDevices(context).empty() ||
         Exists(context.Path("/proc/driver/nvidia/version")) ||
         Exists(context.Path("/dev/nvidiactl")) || IsTegra(context) ||
         (IsWsl(context) && Exists(context.Path("/usr/lib/wsl/lib/libcuda.so.1"))) ||
         (context.probe != nullptr && !context.probe->nvml.gpus.empty());
}

std::string KernelModuleVersion(const CheckContext& context) {
  if (auto version = ReadTrimmed(context.Path("/sys/module/nvidia/version"))) return *version;
  const auto text = ReadTrimmed(context.Path("/proc/driver/nvidia/version"));
  if (!text) return {};
  // NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.04  Thu ...
  for (const std::string_view word : base::SplitWhitespace(base::Split(*text, '\n').front())) {
    const bool number =
        word.find('.') != std::string_view::npos && word.front() >= '0' && word.front() <= '9';
    if (number) return std::string(word);
  }
  return {};
}

}  // namespace epochmeter::collect
