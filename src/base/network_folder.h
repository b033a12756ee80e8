// SPDX-License-Identifier: Apache-2.0
// Whether files of a folder go over a network.
#pragma once

#include <string>

namespace epochmeter::base {

// "NFS", "Lustre", ... by the file system's magic; empty for a local folder and for one that can't
// be looked at. Waits for a server that does not answer.
std::string NetworkFileSystem(const std::string& folder);

}  // namespace epochmeter::base
