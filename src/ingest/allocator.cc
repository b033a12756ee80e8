// SPDX-License-Identifier: Apache-2.0
#include "ingest/allocator.h"

#include <algorithm>

namespace epochmeter::ingest {
namespace {

consteval model::MetricDef Memory(std::string_view label, std::string_view field,
                                  model::MetricKind kind, std::string_view help) {
  return model::Metric({"framework.memory", label, field, "framework_memory_bytes", "By", kind,
                        model::Scope::kRank, 1, help, "client"});
}
consteval model::MetricDef Failures(std::string_view name, std::string_view field,
                                    std::string_view prometheus, std::string_view help) {
  return model::Metric({name, "", field, prometheus, "{event}", model::MetricKind::kCounter,
                        model::Scope::kRank, 1, help, "client"});
}

constexpr std::array<model::MetricDef, kAllocatorMetricCount> kMetrics = {
    Memory("state=allocated", "allocated_bytes", model::MetricKind::kGauge,
           "Bytes in live tensors, as the framework's allocator counts them."),
    Memory("state=reserved", "reserved_bytes", model::MetricKind::kGauge,
           "Bytes that the framework's allocator has taken from the device, in use or cached."),
    Memory("state=max_allocated", "max_allocated_bytes", model::MetricKind::kPeak,
           "Most bytes in live tensors since the start or since the user reset the peak."),
    Memory("state=max_reserved", "max_reserved_bytes", model::MetricKind::kPeak,
           "Most bytes taken from the device since the start or since the user reset the peak."),
    Failures("framework.alloc_retries", "alloc_retries", "framework_alloc_retries_total",
             "Allocations that had to free caches first."),
    Failures("framework.ooms", "ooms", "framework_ooms_total",
             "Allocations that failed for lack of device memory."),
};

// A client that makes up device names may not grow the run without end.
constexpr size_t kMaxDevicesOfOwner = 64;

std::string OwnerName(std::optional<int32_t> rank, int64_t pid) {
  return rank ? "rank:" + std::to_string(*rank) : "pid:" + std::to_string(pid);
}

}  // namespace

std::span<const model::MetricDef, kAllocatorMetricCount> AllocatorMetrics() { return kMetrics; }

void AllocatorSeries::Describe(const std::string& owner, bool first, Device& device) {
  const size_t colon = owner.find(':');
  model::EntityDef entity{.scope = model::Scope::kRank,
                          .name = first ? owner : owner + "/" + device.name,
                          .labels = {{owner.substr(0, colon), owner.substr(colon + 1)}},
                          .attributes = {}};
  if (!first) entity.labels.emplace_back("device", device.name);
  if (!device.framework.empty()) entity.attributes.emplace_back("framework", device.framework);
  if (!device.name.empty()) entity.attributes.emplace_back("device", device.name);
  device.entity = registry_.AddEntity(std::move(entity));
}

AllocatorSeries::Device* AllocatorSeries::FindDevice(const std::string& owner,
                                                     const AllocatorReading& reading) {
  auto& devices = owners_[owner];
  auto found = std::find_if(devices.begin(), devices.end(), [&reading](const Device& device) {
    return reading.device.empty() || device.name.empty() || device.name == reading.device;
  });
  const bool fresh = found == devices.end();
  if (fresh && devices.size() == kMaxDevicesOfOwner) return nullptr;
  if (fresh) found = devices.insert(devices.end(), Device{});
  Device& device = *found;
  const bool names_device = device.name.empty() && !reading.device.empty();
  const bool names_framework = device.framework.empty() && !reading.framework.empty();
  if (names_device) device.name = reading.device;
  if (names_framework) device.framework = reading.framework;
  if (fresh || names_device || names_framework) {
    Describe(owner, found == devices.begin(), device);
  }
  return &device;
}

bool AllocatorSeries::Append(std::optional<int32_t> rank, int64_t pid,
                             const AllocatorReading& reading, model::Samples& out) {
  const bool any = std::any_of(reading.values.begin(), reading.values.end(),
                               [](const auto& value) { return value.has_value(); });
  if (!any) return true;
  Device* device = FindDevice(OwnerName(rank, pid), reading);
  if (device == nullptr) return false;
  for (size_t i = 0; i < kAllocatorMetricCount; ++i) {
    if (!reading.values[i]) continue;
    auto& series = device->series[i];
    if (!series) series = registry_.AddSeries(device->entity, kMetrics[i], 0);
    out.values.push_back({.series = *series, .value = static_cast<double>(*reading.values[i])});
  }
  return true;
}

}  // namespace epochmeter::ingest
