// SPDX-License-Identifier: Apache-2.0
// Bytes of a fuzzer as the two files of a run, with the checksums of a whole file around them.
#pragma once

#include <string>
#include <string_view>

#include "runfile/memory_file_system.h"

namespace epochmeter::fuzz {

inline constexpr const char* kRunPath = "run.emr";

// Makes the checksum of the file header, of every frame header and payload, and of everything in a
// chunk set right where they stand, so that a decoder meets what is behind them. A frame that says
// to be longer than the file is left alone.
std::string RepairChecksums(std::string file);

// One byte (bit 0: leave the checksums as they are), then the main file; what begins with a second
// file header is the tail.
void MakeRunFiles(std::string_view bytes, runfile::MemoryFileSystem* files);

}  // namespace epochmeter::fuzz
