// SPDX-License-Identifier: Apache-2.0
#include "collect/nvml/sample_buffer.h"

#include <algorithm>
#include <numeric>

#include "collect/nvml/device_source.h"

namespace epochmeter::collect::nvml {
namespace {

constexpr uint32_t kMostRoom = 4096;
// After so many answers without a reading the stamps are taken to have been set back.
constexpr int kEmptyUntilRestart = 3;

}  // namespace

NvmlReturn SampleBuffer::Ask(const Api& api, NvmlDevice handle, std::vector<NvmlSample>* samples) {
  if (api.samples == nullptr) return kNvmlFunctionNotFound;
  for (int attempt = 0; attempt < 3; ++attempt) {
    if (room_ == 0) {
      uint32_t capacity = 0;
      const NvmlReturn rc = api.samples(handle, type_, 0, &value_type_, &capacity, nullptr);
      if (rc != kNvmlSuccess) return rc;
      room_ = std::clamp(capacity, 1U, kMostRoom);
    }
    samples->assign(room_, NvmlSample{});
    uint32_t count = room_;
    const NvmlReturn rc =
        api.samples(handle, type_, newest_us_, &value_type_, &count, samples->data());
    if (rc == kNvmlInsufficientSize) {
      room_ = 0;
      continue;
    }
    samples->resize(rc == kNvmlSuccess ? std::min(count, room_) : 0);
    return rc;
  }
  return kNvmlInsufficientSize;
}

NvmlReturn SampleBuffer::Read(const Api& api, NvmlDevice handle, std::vector<double>* values) {
  std::vector<NvmlSample> samples;
  spacing_s_.reset();
  const NvmlReturn rc = Ask(api, handle, &samples);
  if (rc != kNvmlSuccess && rc != kNvmlNotFound) return rc;
  // The driver's own filter by time is not relied on.
  std::erase_if(samples, [this](const NvmlSample& s) { return s.timestamp_us <= newest_us_; });
  std::sort(samples.begin(), samples.end(), [](const NvmlSample& a, const NvmlSample& b) {
    return a.timestamp_us < b.timestamp_us;
  });
  if (samples.empty()) {
    if (++empty_in_a_row_ >= kEmptyUntilRestart) newest_us_ = 0;
    return kNvmlSuccess;
  }
  empty_in_a_row_ = 0;
  newest_us_ = samples.back().timestamp_us;
  if (samples.size() > 1) {
    const uint64_t span_us = newest_us_ - samples.front().timestamp_us;
    spacing_s_ = static_cast<double>(span_us) * 1e-6 / static_cast<double>(samples.size() - 1);
  }
  for (const NvmlSample& sample : samples) {
    NvmlFieldValue field{};
    field.value_type = value_type_;
    field.value = sample.value;
    if (const auto number = FieldNumber(field)) values->push_back(*number);
  }
  return kNvmlSuccess;
}

WindowStats Summarise(std::vector<double>* values) {
  std::sort(values->begin(), values->end());
  const size_t n = values->size();
  const double sum = std::accumulate(values->begin(), values->end(), 0.0);
  // Nearest rank: the least value that 95 % of them don't exceed.
  const size_t rank = (n * 95 + 99) / 100;
  return {.mean = std::clamp(sum / static_cast<double>(n), values->front(), values->back()),
          .min = values->front(),
          .max = values->back(),
          .p95 = (*values)[rank - 1]};
}

}  // namespace epochmeter::collect::nvml
