// SPDX-License-Identifier: Apache-2.0
// What frameworks say when memory ran out: their sentences, old and new, as figures. Pure, any
// thread; text of any kind and length.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace epochmeter::model {

struct OomText {
  bool host = false;  // memory of the machine, not of a device
  std::optional<double> asked_bytes;
  // Of the device: installed, and left when it failed.
  std::optional<double> total_bytes, free_bytes;
  // Of the framework's allocator: in tensors, and taken from the device but in none.
  std::optional<double> allocated_bytes, unallocated_bytes;
  std::optional<double> process_bytes;             // all of this process, the framework's included
  std::optional<int32_t> gpu;                      // as the process counts them
  std::vector<std::pair<int64_t, double>> others;  // pid and bytes of other processes
};

// The sentences of PyTorch (1.x "already allocated", 2.x "is allocated by PyTorch"), Paddle
// ("Cannot allocate"), TensorFlow ("OOM when allocating tensor"), JAX, CUDA and cuBLAS, and of the
// host's allocators and killers. Nothing when the text tells of none; TensorFlow's remark that an
// allocation failed and is tried otherwise is none. Sizes are in powers of 1024, as all of them
// write, whatever the unit is called.
std::optional<OomText> ParseOomText(std::string_view text);

}  // namespace epochmeter::model
