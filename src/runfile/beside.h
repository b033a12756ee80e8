// SPDX-License-Identifier: Apache-2.0
// Keeps what would otherwise be lost in a file of its own, under a name that is free.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "runfile/file_system.h"

namespace epochmeter::runfile {

// Copies `from` from the offset `begin` to its end into a new file: `path`, or `path`.1, .2, ...
// when that exists. A file of the same content serves, so that a repeated call makes no second one.
// Durable when it returns the name. On error nothing is left behind.
base::Result<std::string> SaveRestOf(FileSystem& file_system, const File& from, uint64_t begin,
                                     const std::string& path);

// Renames `from` to the first of these names that is free, durably. Gives the name.
base::Result<std::string> RenameToFreeName(FileSystem& file_system, const std::string& from,
                                           const std::string& path);

}  // namespace epochmeter::runfile
