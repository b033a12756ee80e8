// SPDX-License-Identifier: Apache-2.0
// Which block devices carry bytes themselves.
#pragma once

#include <string_view>

namespace epochmeter::collect {

// Devices in memory (ram, zram), and those made of other devices or files (dm, md, loop,
// bcache): their bytes count on what is below, too. Optical and floppy drives are no matter.
inline bool IsStackedDisk(std::string_view name) {
  for (const std::string_view prefix : {"loop", "ram", "zram", "dm-", "md", "sr", "fd", "bcache"}) {
    if (name.substr(0, prefix.size()) == prefix) return true;
  }
  return false;
}

}  // namespace epochmeter::collect
