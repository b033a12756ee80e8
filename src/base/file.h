// SPDX-License-Identifier: Apache-2.0
// Whole-file helpers over open/read/write with EINTR and short counts handled. Any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"

namespace epochmeter::base {

// open(2) with O_CLOEXEC added.
Result<UniqueFd> OpenFile(const std::string& path, int flags, unsigned mode = 0644);
// All bytes of a file, also of /proc and pipes; more than `limit` bytes is an error.
Result<std::string> ReadFile(const std::string& path, size_t limit = size_t{1} << 31);
Result<std::string> ReadFd(int fd, const std::string& path_for_errors, size_t limit);
// Writes every byte, or says how far it came in the error.
Result<> WriteAll(int fd, std::string_view bytes, const std::string& path_for_errors);
// Creates or replaces `path` by writing beside it and renaming.
Result<> WriteFileAtomically(const std::string& path, std::string_view bytes, unsigned mode = 0644);
// mkdir -p; fine when it is there.
Result<> MakeDirectories(const std::string& path, unsigned mode = 0755);

}  // namespace epochmeter::base
