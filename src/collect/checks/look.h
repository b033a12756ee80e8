// SPDX-License-Identifier: Apache-2.0
// What several checks need to look at. Nothing here fails: what can't be read is not there.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collect/checks.h"

namespace epochmeter::collect {

model::CheckFact Ok(std::string what, std::string why = {});
model::CheckFact Info(std::string what, std::string why, std::string fix = {});
model::CheckFact Limited(std::string what, std::string why, std::string fix);
model::CheckFact Fault(std::string what, std::string why, std::string fix);

bool Exists(const std::string& path);
// The names in a folder, sorted.
std::vector<std::string> NamesIn(const std::string& folder);
// The file without the space around it; nothing when it can't be read.
std::optional<std::string> ReadTrimmed(const std::string& path);
// 0, or the errno of opening and reading the first byte.
int ReadErrno(const std::string& path);
// Where a symbolic link points to; empty when it can't be read.
std::string LinkOf(const std::string& path);
// "" when unset.
std::string EnvironmentOf(const char* name);

// A line of mountinfo. Options are those of the mount and of the file system, joined by commas.
struct Mount {
  std::string point, type, options;
  bool Has(std::string_view option) const;
};
std::vector<Mount> ReadMounts(const CheckContext& context);
// The mount that stands at `point` last, hence seen.
std::optional<Mount> MountAt(const CheckContext& context, std::string_view point);

// sysfs names of PCI devices of NVIDIA that are displays or accelerators.
std::vector<std::string> NvidiaPciDevices(const CheckContext& context);
bool IsWsl(const CheckContext& context);
bool IsTegra(const CheckContext& context);
// "docker", "podman", "kubernetes" ... or empty outside of a container.
std::string ContainerKind(const CheckContext& context);
// True when this machine seems to have an NVIDIA GPU, whatever can be measured of it.
bool HasNvidia(const CheckContext& context);
// The version in /sys/module/nvidia or /proc/driver/nvidia; empty when no module is loaded.
std::string KernelModuleVersion(const CheckContext& context);

}  // namespace epochmeter::collect
