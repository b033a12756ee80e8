// SPDX-License-Identifier: Apache-2.0
#include "collect/nvml/asleep.h"

#include <fcntl.h>

#include <filesystem>

#include "base/strings.h"
#include "collect/proc_file.h"

namespace epochmeter::collect::nvml {
namespace {

std::string ReadWord(const std::filesystem::path& path) {
  std::string text;
  if (ReadAt(AT_FDCWD, path.c_str(), text, 64) != 0) return {};
  return std::string(base::Trim(text));
}

}  // namespace

bool AllGpusAsleep(const std::string& sys_root) {
  std::error_code failed;
  std::filesystem::directory_iterator entry(sys_root + "/bus/pci/devices", failed);
  if (failed) return false;
  bool asleep = false;
  for (const std::filesystem::directory_iterator end; entry != end; entry.increment(failed)) {
    const std::filesystem::path& device = entry->path();
    // Display controllers only: the same card has audio and USB functions.
    if (ReadWord(device / "vendor") != "0x10de") continue;
    if (!base::StartsWith(ReadWord(device / "class"), "0x03")) continue;
    if (ReadWord(device / "power/runtime_status") != "suspended") return false;
    asleep = true;
    if (failed) return false;
  }
  return asleep;
}

}  // namespace epochmeter::collect::nvml
