// SPDX-License-Identifier: Apache-2.0
// Device memory: about 10 us. Version 2 of the call keeps the driver's reserve apart; version 1
// counts it as used, so the two are never mixed in silence: the series' source and the attribute
// memory_call say which it is. A GPU that shares the host's memory has no "used" of its own.
#include <fcntl.h>

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "collect/nvml/device_source.h"
#include "collect/nvml/nvml_sources.h"
#include "collect/proc_file.h"
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

constexpr std::array kMetrics = {model::gpu::kMemoryTotal,  model::gpu::kMemoryFree,
                                 model::gpu::kMemoryUsed,   model::gpu::kMemoryReserved,
                                 model::gpu::kUnifiedTotal, model::gpu::kUnifiedAvailable};
constexpr std::span<const MetricDef> kMetricsV2(kMetrics.data(), 4);
constexpr std::span<const MetricDef> kMetricsUnified(kMetrics.data() + 4, 2);
constexpr std::array kMetricsV1 = {FromV1(model::gpu::kMemoryTotal),
                                   FromV1(model::gpu::kMemoryFree),
                                   FromV1(model::gpu::kMemoryUsed)};

constexpr std::array<CallDef, 1> kCallsV2 = {{{kSourceV2, kTotal, 4}}};
constexpr std::array<CallDef, 1> kCallsV1 = {{{kSourceV1, kTotal, 3}}};
constexpr std::array<CallDef, 1> kCallsUnified = {{{"/proc/meminfo", 0, 2}}};

enum class Version : uint8_t { kNotChosen, kV2, kV1, kUnified };

// MemTotal and MemAvailable in bytes; nothing where the line is missing.
struct HostMemory {
  std::optional<uint64_t> total, available;
};
HostMemory ReadHostMemory(const std::string& proc_root) {
  std::string text;
  HostMemory memory;
  if (ReadAt(AT_FDCWD, (proc_root + "/meminfo").c_str(), text) != 0) return memory;
  std::string_view rest = text;
  std::string_view line;
  std::string_view key;
  while (NextLine(rest, line)) {
    if (!NextWord(line, key)) continue;
    if (key == "MemTotal:") memory.total = NextUint(line);
    if (key == "MemAvailable:") memory.available = NextUint(line);
  }
  return memory;
}

class MemorySource final : public Source {
 public:
  explicit MemorySource(const SourceContext& context)
      : session_(*context.nvml),
        proc_root_(context.env.proc_root),
        v2_(context, Group(context, kMetricsV2, kCallsV2)),
        v1_(context, Group(context, kMetricsV1, kCallsV1)),
        unified_(context, Group(context, kMetricsUnified, kCallsUnified)) {}

  base::Result<> Sample(model::Samples& out) override {
    session_.Maintain(out.t_ns);
    kept_.resize(session_.devices().size());
    for (size_t i = 0; i < kept_.size(); ++i) {
      Device& device = session_.devices()[i];
      // A new handle may be of another driver: chosen again.
      if (kept_[i].generation != device.generation) {
        kept_[i] = {.generation = device.generation, .version = Version::kNotChosen};
      }
      SampleDevice(device, kept_[i].version, out);
    }
    return {};
  }

 private:
  struct Kept {
    uint32_t generation = 0;
    Version version = Version::kNotChosen;
  };

  static GroupDef Group(const SourceContext& context, std::span<const MetricDef> metrics,
                        std::span<const CallDef> calls) {
    return {.metrics = metrics,
            .calls = calls,
            .period_ns = TierPeriodNs(Tier::kTick, context.tick_ns),
            .lazy = true};
  }

  void SampleDevice(Device& device, Version& version, model::Samples& out) {
    const bool newer = version != Version::kV1;
    SeriesGroup& group = newer ? v2_ : v1_;
    const Reading reading{session_.api(), session_, group, device, out};
    if (version == Version::kUnified) return PutUnified(device, out);
    if (!group.Due(device, 0, out.t_ns)) return;
    NvmlMemoryV2 memory{};
    const NvmlReturn rc = newer ? ReadV2(reading, &memory) : ReadV1(reading, &memory);
    const bool refused = rc == kNvmlFunctionNotFound || rc == kNvmlArgumentVersionMismatch;
    if (newer && refused) {
      version = Version::kV1;
      return SampleDevice(device, version, out);
    }
    const bool shared = rc == kNvmlNotSupported || (rc == kNvmlSuccess && memory.total == 0);
    if (shared && !device.mig) {
      version = Version::kUnified;
      session_.SetAttribute(device, "memory_kind", "unified");
      group.Unsupported(device, 0,
                        rc == kNvmlSuccess
                            ? "the driver reports 0 bytes in total: this GPU shares the host's "
                              "memory, see gpu.memory.unified"
                            : "the driver does not tell: this GPU shares the host's memory, see "
                              "gpu.memory.unified",
                        out.t_ns);
      return PutUnified(device, out);
    }
    if (!group.Took(device, 0, rc, out.t_ns)) return;
    if (version == Version::kNotChosen) version = Version::kV2;
    session_.SetAttribute(device, "memory_call", newer ? kSourceV2 : kSourceV1);
    Put(reading, memory, newer);
  }

  static NvmlReturn ReadV2(const Reading& reading, NvmlMemoryV2* memory) {
    memory->version = kNvmlMemoryV2Version;
    const auto call = reading.api.memory_v2;
    return call != nullptr ? call(reading.device.handle, memory)
                           : NvmlReturn{kNvmlFunctionNotFound};
  }

  static NvmlReturn ReadV1(const Reading& reading, NvmlMemoryV2* out) {
    if (reading.api.memory == nullptr) return kNvmlFunctionNotFound;
    NvmlMemory memory{};
    const NvmlReturn rc = reading.api.memory(reading.device.handle, &memory);
    *out = {.version = 1,
            .total = memory.total,
            .reserved = 0,
            .free = memory.free,
            .used = memory.used};
    return rc;
  }

  static void Put(const Reading& reading, const NvmlMemoryV2& memory, bool has_reserved) {
    // 1 PiB: no device has it, and sentinels such as 2^64-1 lie above.
    constexpr double kMostBytes = 1125899906842624.0;
    const auto total = static_cast<double>(memory.total);
    reading.PutInRange(kTotal, total, 1, kMostBytes);
    reading.PutInRange(kFree, static_cast<double>(memory.free), 0, total);
    reading.PutInRange(kUsed, static_cast<double>(memory.used), 0, total);
    if (has_reserved) reading.PutInRange(kReserved, static_cast<double>(memory.reserved), 0, total);
  }

  // The host's figures: the pool is one, and no part of it is called the GPU's.
  void PutUnified(const Device& device, model::Samples& out) {
    if (device.lost || !unified_.Due(device, 0, out.t_ns)) return;
    constexpr double kBytesPerKib = 1024;
    const HostMemory memory = ReadHostMemory(proc_root_);
    if (!memory.total || !memory.available) {
      unified_.Absent(device, 0, "/proc/meminfo has no MemTotal or no MemAvailable", out.t_ns);
      return;
    }
    unified_.Put(device, 0, static_cast<double>(*memory.total) * kBytesPerKib, out);
    unified_.Put(device, 1, static_cast<double>(*memory.available) * kBytesPerKib, out);
  }

  Session& session_;
  std::string proc_root_;
  SeriesGroup v2_, v1_, unified_;
  std::vector<Kept> kept_;  // by the device's place in the session
};

base::Result<std::unique_ptr<Source>> Make(const SourceContext& context) {
  EPM_TRY(OpenSession(context));
  return std::unique_ptr<Source>(std::make_unique<MemorySource>(context));
}

constexpr std::array kBar1Metrics = {model::gpu::kBar1Total, model::gpu::kBar1Used};
constexpr std::array<CallDef, 1> kBar1Calls = {{{"nvmlDeviceGetBAR1MemoryInfo", 0, 2}}};

void ReadBar1(const Reading& reading) {
  constexpr double kMostBytes = 1125899906842624.0;
  NvmlBar1Memory memory{};
  if (!reading.Try(0, reading.api.bar1_memory, &memory)) return;
  const auto total = static_cast<double>(memory.total);
  reading.PutInRange(0, total, 0, kMostBytes);
  reading.PutInRange(1, static_cast<double>(memory.used), 0, total);
}

base::Result<std::unique_ptr<Source>> MakeBar1(const SourceContext& context) {
  return MakeDeviceSource(context, kBar1Metrics, kBar1Calls, Tier::kRare, &ReadBar1);
}

}  // namespace

const SourceDef kGpuMemory{.name = "gpu.memory",
                           .summary = "device memory in use, free, reserved and in total",
                           .metrics = kMetrics,
                           .tier = Tier::kTick,
                           .vital = true,
                           .Make = &Make};

const SourceDef kGpuBar1{.name = "gpu.bar1",
                         .summary = "window of the bus into device memory",
                         .metrics = kBar1Metrics,
                         .tier = Tier::kRare,
                         .at_epochs = false,
                         .longest_ns = 600 * base::kNsPerSecond,
                         .Make = &MakeBar1};

}  // namespace epochmeter::collect::nvml
