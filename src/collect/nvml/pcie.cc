// SPDX-License-Identifier: Apache-2.0
// The PCIe link: generation and width, replays and errors (slow tier: a counter costs 0.37 ms), and
// the bytes that went over it. nvmlDeviceGetPcieThroughput is never called: it blocks for 20 ms.
#include <fmt/format.h>

#include <array>
#include <optional>

#include "base/clock.h"
#include "collect/nvml/device_source.h"
#include "collect/nvml/nvml_sources.h"
#include "model/gpu_activity_metrics.h"
#include "model/gpu_link_metrics.h"

namespace epochmeter::collect::nvml {
namespace {

namespace gpu = model::gpu;

constexpr std::array kMetrics = {gpu::kPcieGeneration, gpu::kPcieWidth,   gpu::kPcieMaxGeneration,
                                 gpu::kPcieMaxWidth,   gpu::kPcieReplays, gpu::kPcieCorrectable,
                                 gpu::kPcieNaks,       gpu::kPcieBadTlp,  gpu::kPcieBadDllp,
                                 gpu::kPcieNonFatal,   gpu::kPcieFatal};
enum Call : size_t { kGeneration, kWidth, kMaxGeneration, kMaxWidth, kReplays };
constexpr std::array<CallDef, 12> kCalls = {{
    {"nvmlDeviceGetCurrPcieLinkGeneration", kGeneration, 1},
    {"nvmlDeviceGetCurrPcieLinkWidth", kWidth, 1},
    {"nvmlDeviceGetMaxPcieLinkGeneration", kMaxGeneration, 1},
    {"nvmlDeviceGetMaxPcieLinkWidth", kMaxWidth, 1},
    {"NVML field 94 (PCIE_REPLAY_COUNTER)", kReplays, 1},
    {"NVML field 173 (PCIE_COUNT_CORRECTABLE_ERRORS)", 5, 1},
    {"NVML field 174 (PCIE_COUNT_NAKS_RECEIVED)", 6, 1},
    {"NVML field 176 (PCIE_COUNT_BAD_TLP)", 7, 1},
    {"NVML field 178 (PCIE_COUNT_BAD_DLLP)", 8, 1},
    {"NVML field 179 (PCIE_COUNT_NON_FATAL_ERROR)", 9, 1},
    {"NVML field 180 (PCIE_COUNT_FATAL_ERROR)", 10, 1},
    {"nvmlDeviceGetPcieReplayCounter", kReplays, 1},
}};
constexpr size_t kReplayCall = 11;
constexpr std::array<FieldRow, 7> kFields = {{
    {kNvmlFieldPcieReplayCounter, kReplays},
    {kNvmlFieldPcieCorrectableErrors, 5},
    {kNvmlFieldPcieNaksReceived, 6},
    {kNvmlFieldPcieBadTlp, 7},
    {kNvmlFieldPcieBadDllp, 8},
    {kNvmlFieldPcieNonFatalErrors, 9},
    {kNvmlFieldPcieFatalErrors, 10},
}};

struct LinkState {
  std::optional<bool> replays_by_field;
};

void ReadLink(const Reading& reading, LinkState& state) {
  const Api& api = reading.api;
  const std::array calls = {api.pcie_generation, api.pcie_width, api.max_pcie_generation,
                            api.max_pcie_width};
  constexpr std::array<double, 4> kMost = {16, 64, 16, 64};
  for (size_t i = 0; i < calls.size(); ++i) {
    uint32_t value = 0;
    if (reading.Try(i, calls[i], &value)) reading.PutInRange(i, value, 1, kMost[i]);
  }
  if (!state.replays_by_field) {
    state.replays_by_field = api.pcie_replays == nullptr ||
                             ProbeField(reading, kNvmlFieldPcieReplayCounter) == kNvmlSuccess;
  }
  // Counters of 32 bits that start with the driver; 2^32-1 is a sentinel.
  constexpr double kMostErrors = 4294967294.0;
  uint32_t replays = 0;
  if (!*state.replays_by_field && reading.Try(kReplayCall, api.pcie_replays, &replays)) {
    reading.PutInRange(kReplays, replays, 0, kMostErrors);
  }
  const std::span<const FieldRow> rows(kFields);
  const size_t skip = *state.replays_by_field ? 0 : 1;
  for (const FieldReading& field : ReadFields(reading, rows.subspan(skip))) {
    reading.PutInRange(kReplays + skip + field.row, field.value, 0, kMostErrors);
  }
}

base::Result<std::unique_ptr<Source>> MakeLink(const SourceContext& context) {
  return MakeStatefulSource<LinkState>(context, kMetrics, kCalls, Tier::kRare, &ReadLink);
}

constexpr std::array kByteMetrics = {gpu::kPcieTransmit, gpu::kPcieReceive};
enum ByteCall : size_t { kTransmit, kReceive, kBoth };
constexpr std::array<CallDef, 3> kByteCalls = {{
    {"NVML field 197 (PCIE_COUNT_TX_BYTES)", kTransmit, 1},
    {"NVML field 198 (PCIE_COUNT_RX_BYTES)", kReceive, 1},
    {"PCIe byte counters", kTransmit, 2},
}};
constexpr std::array<FieldRow, 2> kByteFields = {{
    {kNvmlFieldPcieTxBytes, kTransmit},
    {kNvmlFieldPcieRxBytes, kReceive},
}};
constexpr double kWrapBytes = 4294967296.0;
constexpr double kShortestTickS = 0.1;  // that a run can be recorded with

struct Direction {
  bool started = false;
  int64_t t_ns = 0;
  double raw = 0;
  double total = 0;
};
struct ByteState {
  int64_t wrap_ns = 0;  // the shortest time in which the link can carry 2^32 bytes; 0 not known yet
  std::array<Direction, 2> directions;
};

// Bytes a second of one lane, in one direction, after coding.
double LaneRate(uint32_t generation) {
  constexpr std::array<double, 7> kRates = {0, 0.25e9, 0.5e9, 0.985e9, 1.969e9, 3.938e9, 7.563e9};
  return kRates[std::min<size_t>(generation, kRates.size() - 1)];
}

// Finds out whether readings come often enough to see every wrap of the 32-bit counters.
bool CanUnwrap(const Reading& reading, ByteState& state) {
  if (state.wrap_ns > 0) return true;
  if (!reading.group.Due(reading.device, kBoth, reading.out.t_ns)) return false;
  const Api& api = reading.api;
  uint32_t generation = 0;
  uint32_t width = 0;
  const bool known = api.max_pcie_generation != nullptr && api.max_pcie_width != nullptr &&
                     api.max_pcie_generation(reading.device.handle, &generation) == kNvmlSuccess &&
                     api.max_pcie_width(reading.device.handle, &width) == kNvmlSuccess &&
                     generation > 0 && width > 0;
  if (!known) {
    reading.group.Unsupported(reading.device, kBoth,
                              "the driver does not tell the link's speed, so wraps of its 32-bit "
                              "byte counters can't be counted",
                              reading.out.t_ns);
    return false;
  }
  const double wrap_s = kWrapBytes / (LaneRate(generation) * width);
  if (base::SecondsFromNs(reading.group.period_ns()) > wrap_s) {
    reading.group.Unsupported(
        reading.device, kBoth,
        fmt::format("the driver's 32-bit byte counters can wrap in {:.2f} s at the speed of this "
                    "link (generation {}, {} lanes){}",
                    wrap_s, generation, width,
                    wrap_s >= kShortestTickS ? ": record at a shorter interval"
                                             : "; pcie_transmit and pcie_receive rates are of GPM"),
        reading.out.t_ns);
    return false;
  }
  state.wrap_ns = static_cast<int64_t>(wrap_s * 1e9);
  return true;
}

// A rising total of the raw counter; begins at 0, and again after a time too long to be sure.
void PutBytes(const Reading& reading, size_t metric, double raw, int64_t wrap_ns,
              Direction& direction) {
  const int64_t t_ns = reading.out.t_ns;
  if (!(raw >= 0 && raw < kWrapBytes)) {
    direction.started = false;
    return reading.group.Drop(reading.device, metric, fmt::format("{:.6g}", raw), t_ns);
  }
  const bool late = direction.started && t_ns - direction.t_ns > wrap_ns;
  if (late) {
    reading.session.TellLoss(
        {.t_ns = t_ns,
         .severity = model::LossSeverity::kDataLoss,
         .kind = "counter.gap",
         .count = 1,
         .detail = fmt::format("{} of {}: {:.2f} s between two readings, in which it can wrap",
                               kByteMetrics[metric].name, reading.device.uuid,
                               base::SecondsFromNs(t_ns - direction.t_ns)),
         .help = "The total begins at 0 again; a busy node delays the recorder."});
  }
  if (!direction.started || late) {
    direction.total = 0;
  } else {
    const double risen = raw - direction.raw;
    direction.total += risen < 0 ? risen + kWrapBytes : risen;
  }
  direction.started = true;
  direction.raw = raw;
  direction.t_ns = t_ns;
  reading.group.Put(reading.device, metric, direction.total, reading.out);
}

void ReadBytes(const Reading& reading, ByteState& state) {
  if (!CanUnwrap(reading, state)) return;
  for (const FieldReading& field : ReadFields(reading, kByteFields)) {
    PutBytes(reading, field.row, field.value, state.wrap_ns, state.directions[field.row]);
  }
}

base::Result<std::unique_ptr<Source>> MakeBytes(const SourceContext& context) {
  return MakeStatefulSource<ByteState>(context, kByteMetrics, kByteCalls, Tier::kTick, &ReadBytes);
}

}  // namespace

const SourceDef kGpuPcie{.name = "gpu.pcie",
                         .summary = "PCIe link, replays and errors",
                         .metrics = kMetrics,
                         .tier = Tier::kRare,
                         .at_epochs = false,
                         .longest_ns = 600 * base::kNsPerSecond,
                         .Make = &MakeLink};

const SourceDef kGpuPcieBytes{
    .name = "gpu.pcie_bytes",
    .summary = "bytes over PCIe, where readings are close enough for 32-bit counters",
    .metrics = kByteMetrics,
    .tier = Tier::kTick,
    .longest_ns = 0,
    .Make = &MakeBytes};

}  // namespace epochmeter::collect::nvml
