// SPDX-License-Identifier: Apache-2.0
// Which driver a built library plays. The objects are the same for all; the export map leaves out
// what a driver did not have yet, and this says the rest.
#pragma once

#include <cstdint>
#include <string_view>

namespace nvml_replay {

struct Generation {
  int branch;                 // 470, 510, 535, ...
  std::string_view driver;    // version text that a script without "driver" shows
  int cuda_version;           // 13000 is CUDA 13.0
  bool r535_process_entries;  // 32-byte entries from the _v3 process list
};

// Defined by variant.cc, compiled once per built library.
extern const Generation kGeneration;

}  // namespace nvml_replay
