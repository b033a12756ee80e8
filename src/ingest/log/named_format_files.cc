// SPDX-License-Identifier: Apache-2.0
// EPM_FORMAT_FILES is the path of the joined files, set by CMake.
#include "ingest/log/named_format_files.h"

#include <cstddef>

// The assembler copies the file; no other way takes a file into a C++20 program as it is.
__asm__(
    ".pushsection .rodata\n"
    ".hidden epm_format_files_begin\n"
    ".hidden epm_format_files_end\n"
    ".global epm_format_files_begin\n"
    ".global epm_format_files_end\n"
    "epm_format_files_begin:\n"
    ".incbin \"" EPM_FORMAT_FILES
    "\"\n"
    "epm_format_files_end:\n"
    ".byte 0\n"
    ".popsection\n");

extern "C" {
extern const char epm_format_files_begin[];
extern const char epm_format_files_end[];
}

namespace epochmeter::ingest::log {

std::string_view NamedFormatFiles() {
  return {epm_format_files_begin,
          static_cast<size_t>(epm_format_files_end - epm_format_files_begin)};
}

}  // namespace epochmeter::ingest::log
