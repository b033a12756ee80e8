// SPDX-License-Identifier: Apache-2.0
// The framework's own GPU allocator as series of a rank: what its tensors hold and what it took
// from the device. Its numbers are not the device's.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/metric.h"
#include "model/registry.h"

namespace epochmeter::ingest {

// allocated, reserved, max_allocated, max_reserved, alloc_retries, ooms, in this order.
inline constexpr size_t kAllocatorMetricCount = 6;
std::span<const model::MetricDef, kAllocatorMetricCount> AllocatorMetrics();

struct AllocatorReading {
  std::string framework;
  std::string device;  // the framework's own name, "gpu:0"; may be empty
  std::array<std::optional<int64_t>, kAllocatorMetricCount> values;
};

// Turns readings into samples. The first device of a rank is the entity "rank:<r>"; readings of
// another device of the same rank get an entity of their own, never the same series.
class AllocatorSeries {
 public:
  explicit AllocatorSeries(model::Registry& registry) : registry_(registry) {}

  // Without a rank the sender's `pid` names the entity. Appends nothing for absent values. False
  // when the rank already has so many devices that this one can't be real.
  bool Append(std::optional<int32_t> rank, int64_t pid, const AllocatorReading& reading,
              model::Samples& out);

 private:
  struct Device {
    std::string name;
    std::string framework;
    model::EntityId entity = 0;
    std::array<std::optional<model::SeriesId>, kAllocatorMetricCount> series;
  };
  Device* FindDevice(const std::string& owner, const AllocatorReading& reading);
  void Describe(const std::string& owner, bool first, Device& device);

  model::Registry& registry_;
  std::map<std::string, std::vector<Device>, std::less<>> owners_;  // by "rank:<r>" or "pid:<p>"
};

}  // namespace epochmeter::ingest
