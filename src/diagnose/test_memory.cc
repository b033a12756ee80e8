// SPDX-License-Identifier: Apache-2.0
#include "diagnose/test_memory.h"

#include <cmath>

#include "model/gpu_metrics.h"

namespace epochmeter::diagnose {
namespace {

consteval model::MetricDef Memory(std::string_view label, std::string_view field,
                                  model::MetricKind kind) {
  return model::Metric({"framework.memory", label, field, "framework_memory_bytes", "By", kind,
                        model::Scope::kRank, 1, "A figure of an allocator.", "client"});
}
constexpr model::MetricDef kHeld =
    Memory("state=allocated", "allocated_bytes", model::MetricKind::kGauge);
constexpr model::MetricDef kReserved =
    Memory("state=reserved", "reserved_bytes", model::MetricKind::kGauge);
constexpr model::MetricDef kPeak =
    Memory("state=max_allocated", "max_allocated_bytes", model::MetricKind::kPeak);
constexpr model::MetricDef kRetries = model::Metric(
    {"framework.alloc_retries", "", "alloc_retries", "framework_alloc_retries_total", "{event}",
     model::MetricKind::kCounter, model::Scope::kRank, 1, "Retries.", "client"});

}  // namespace

void AddAllocator(TestRun& run, int32_t rank, const TestAllocator& allocator) {
  const model::EntityId entity = run.Rank(rank);
  if (allocator.held) run.Series(entity, kHeld, allocator.period_s, allocator.held);
  if (allocator.reserved) run.Series(entity, kReserved, allocator.period_s, allocator.reserved);
  if (allocator.peak) run.Series(entity, kPeak, allocator.period_s, allocator.peak);
  if (allocator.retries) run.Series(entity, kRetries, allocator.period_s, allocator.retries);
}

void AddDevice(TestRun& run, int32_t gpu, double total_bytes,
               const std::function<double(double t_s)>& used) {
  run.Constant(run.Gpu(gpu), model::gpu::kMemoryTotal, 1, total_bytes);
  run.Constant(run.Gpu(gpu), model::gpu::kMemoryReserved, 1, 0.005 * total_bytes);
  run.Series(run.Gpu(gpu), model::gpu::kMemoryUsed, 1, used);
}

double ValueOf(const model::Finding& finding, std::string_view name, size_t evidence) {
  if (evidence >= finding.evidence.size()) return NAN;
  for (const auto& [key, value] : finding.evidence[evidence].values) {
    if (key == name) return value;
  }
  return NAN;
}

}  // namespace epochmeter::diagnose
