// SPDX-License-Identifier: Apache-2.0
#include "base/network_folder.h"

#include <sys/statfs.h>

#include <array>
#include <cstdint>

namespace epochmeter::base {

std::string NetworkFileSystem(const std::string& folder) {
  struct Kind {
    uint32_t magic;
    const char* name;
  };
  constexpr std::array<Kind, 8> kKinds = {{{0x6969, "NFS"},
                                           {0x0BD00BD0, "Lustre"},
                                           {0x65735546, "FUSE"},
                                           {0xFF534D42, "CIFS"},
                                           {0xFE534D42, "SMB"},
                                           {0x00C36400, "Ceph"},
                                           {0x47504653, "GPFS"},
                                           {0x19830326, "BeeGFS"}}};
  struct statfs info {};
  if (::statfs(folder.c_str(), &info) != 0) return {};
  for (const Kind& kind : kKinds) {
    if (static_cast<uint32_t>(info.f_type) == kind.magic) return kind.name;
  }
  return {};
}

}  // namespace epochmeter::base
