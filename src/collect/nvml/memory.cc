// SPDX-License-Identifier: Apache-2.0
// Device memory: about 10 us. Version 2 of the call keeps the driver's reserve apart; version 1
// counts it as used, so the two are never mixed in one series: the source text says which it was.
#include <array>
#include <vector>

#include "collect/nvml/device_source.h"
#include "collect/nvml/nvml_sources.h"
#include "model/gpu_metrics.h"

namespace epochmeter::collect::nvml {
namespace {

using model::MetricDef;

constexpr const char* kSourceV2 = "nvmlDeviceGetMemoryInfo_v2";
constexpr const char* kSourceV1 = "nvmlDeviceGetMemoryInfo";

consteval MetricDef FromV1(MetricDef def) {
  def.source = kSourceV1;
  return model::Metric(def);
}

enum MetricIndex : size_t { kTotal, kFree, kUsed, kReserved };

constexpr std::array kMetricsV2 = {model::gpu::kMemoryTotal, model::gpu::kMemoryFree,
                                   model::gpu::kMemoryUsed, model::gpu::kMemoryReserved};
constexpr std::array kMetricsV1 = {FromV1(model::gpu::kMemoryTotal),
                                   FromV1(model::gpu::kMemoryFree),
                                   FromV1(model::gpu::kMemoryUsed)};

constexpr std::array<CallDef, 1> kCallsV2 = {{{kSourceV2, kTotal, 4}}};
constexpr std::array<CallDef, 1> kCallsV1 = {{{kSourceV1, kTotal, 3}}};

void Put(const Reading& reading, const NvmlMemoryV2& memory, bool has_reserved) {
  if (memory.total == 0) {
    reading.group.Unsupported(reading.device, 0,
                              "the driver reports 0 bytes in total: this GPU shares the host's "
                              "memory, see host.memory",
                              reading.out.t_ns);
    return;
  }
  // 1 PiB: no device has it, and sentinels such as 2^64-1 lie above.
  constexpr double kMostBytes = 1125899906842624.0;
  const auto total = static_cast<double>(memory.total);
  reading.PutInRange(kTotal, total, 1, kMostBytes);
  reading.PutInRange(kFree, static_cast<double>(memory.free), 0, total);
  reading.PutInRange(kUsed, static_cast<double>(memory.used), 0, total);
  if (has_reserved) reading.PutInRange(kReserved, static_cast<double>(memory.reserved), 0, total);
}

void ReadV2(const Reading& reading) {
  NvmlMemoryV2 memory{};
  memory.version = kNvmlMemoryV2Version;
  if (reading.Try(0, reading.api.memory_v2, &memory)) Put(reading, memory, true);
}

void ReadV1(const Reading& reading) {
  NvmlMemory memory{};
  if (!reading.Try(0, reading.api.memory, &memory)) return;
  Put(reading,
      {.version = 1,
       .total = memory.total,
       .reserved = 0,
       .free = memory.free,
       .used = memory.used},
      false);
}

// A driver may export the newer name and still refuse it, so one call decides.
bool HasV2(Session& session) {
  if (session.api().memory_v2 == nullptr) return false;
  NvmlMemoryV2 memory{};
  memory.version = kNvmlMemoryV2Version;
  const NvmlReturn rc = session.api().memory_v2(session.devices().front().handle, &memory);
  return rc != kNvmlFunctionNotFound && rc != kNvmlArgumentVersionMismatch;
}

base::Result<std::unique_ptr<Source>> Make(const SourceContext& context) {
  EPM_TRY(context.nvml->Open(context));
  if (HasV2(*context.nvml)) {
    return MakeDeviceSource(context, kMetricsV2, kCallsV2, Tier::kTick, &ReadV2);
  }
  return MakeDeviceSource(context, kMetricsV1, kCallsV1, Tier::kTick, &ReadV1);
}

}  // namespace

const SourceDef kGpuMemory{.name = "gpu.memory",
                           .summary = "device memory in use, free, reserved and in total",
                           .metrics = kMetricsV2,
                           .tier = Tier::kTick,
                           .Make = &Make};

}  // namespace epochmeter::collect::nvml
