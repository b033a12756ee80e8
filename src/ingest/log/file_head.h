// SPDX-License-Identifier: Apache-2.0
// What a file is by its first bytes. Any thread.
#pragma once

#include <cstdint>
#include <string_view>

namespace epochmeter::ingest::log {

enum class HeadKind : uint8_t {
  kText,  // also UTF-16, and an empty file
  kGzip,
  kZstd,
  kXz,
  kBzip2,
  kRunFile,
  kPicture,
  kArchive,
  kNuls,  // and nothing else
  kBinary
};

// 4 KiB tell; at least 16 bytes where there are as many.
HeadKind KindOfHead(std::string_view head);
// Whether bytes from the middle of a file look like text, also as UTF-16 and with holes of NULs.
bool IsText(std::string_view bytes);
// Whether the name ends as those of files that are no logs: checkpoints, pictures, archives,
// sources, settings.
bool NamesNoLog(std::string_view name);

}  // namespace epochmeter::ingest::log
