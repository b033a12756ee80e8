// SPDX-License-Identifier: Apache-2.0
// The driver's buffers of past readings (nvmlDeviceGetSamples): power each 20 ms, utilisation each
// 200 ms. Read often enough they give what lies between two ticks.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "collect/nvml/api.h"

namespace epochmeter::collect::nvml {

// One buffer of one device. Stamps are us of a clock that the driver chooses (wall, boot or
// monotonic): they are compared with each other only.
class SampleBuffer {
 public:
  explicit SampleBuffer(uint32_t type) : type_(type) {}

  // Appends the readings that came since the last call, in order of time. Success with none of them
  // when the driver says NOT_FOUND: it has nothing new, as on an idle GPU. The first call gives
  // what the buffer holds.
  NvmlReturn Read(const Api& api, NvmlDevice handle, std::vector<double>* values);
  // Distance of the readings of the last call; nothing with fewer than two.
  std::optional<double> spacing_s() const { return spacing_s_; }

 private:
  NvmlReturn Ask(const Api& api, NvmlDevice handle, std::vector<NvmlSample>* samples);

  uint32_t type_;
  uint32_t room_ = 0;
  uint32_t value_type_ = 0;
  uint64_t newest_us_ = 0;
  int empty_in_a_row_ = 0;
  std::optional<double> spacing_s_;
};

// Figures over the readings of one window.
struct WindowStats {
  double mean = 0, min = 0, max = 0, p95 = 0;
};
// `values` is not empty; it is sorted.
WindowStats Summarise(std::vector<double>* values);

}  // namespace epochmeter::collect::nvml
