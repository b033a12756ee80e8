// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <span>

#include "ingest/recording_lines.h"
#include "model/gpu_activity_metrics.h"

namespace epochmeter::ingest {
namespace {

using model::MetricDef;
namespace metrics = model::gpu;

constexpr int64_t kMostGpus = 1024;
// Compute memory that an empty process list can't go with: the list was not readable.
constexpr double kUnexplainedBytes = 64 << 20;
constexpr int64_t kLeastGpmPeriodNs = 200 * base::kNsPerMs;
constexpr uint64_t kWrap = uint64_t{1} << 32;

// value = number * factor / divisor, so that decimal steps stay exact.
struct GpuField {
  std::string_view key;
  const MetricDef* metric;
  double factor, divisor;
  double least, most;  // of the value
};

constexpr GpuField kGpuFields[] = {
    {"temp_c", &metrics::kTemperature, 1, 1, -50, 150},
    {"power_mw", &metrics::kPower, 1, 1e3, 0, 20000},
    {"power_instant_mw", &metrics::kPowerInstant, 1, 1e3, 0, 20000},
    {"power_average_mw", &metrics::kPowerAverage, 1, 1e3, 0, 20000},
    {"power_limit_mw", &metrics::kPowerLimit, 1, 1e3, 0.001, 20000},
    {"sm_mhz", &metrics::kSmClock, 1e6, 1, 0, 1e11},
    {"mem_mhz", &metrics::kMemoryClock, 1e6, 1, 0, 1e11},
    {"clocks_event_reasons", &metrics::kThrottleReasons, 1, 1, 0, kMostCount},
    {"energy_mj", &metrics::kEnergy, 1, 1e3, 0, 1e13},
    {"pcie_replay", &metrics::kPcieReplays, 1, 1, 0, kMostCount},
    {"nvlink_tx_kib", &metrics::kNvlinkTransmit, 1024, 1, 0, kMostCount},
    {"nvlink_rx_kib", &metrics::kNvlinkReceive, 1024, 1, 0, kMostCount},
    {"perf_policy_power_ns", &metrics::kThrottlePower, 1, 1e9, 0, 1e9},
    {"perf_policy_thermal_ns", &metrics::kThrottleThermal, 1, 1e9, 0, 1e9},
    {"perf_policy_lowutil_ns", &metrics::kThrottleLowUtilization, 1, 1e9, 0, 1e9},
    {"perf_policy_board_ns", &metrics::kThrottleBoard, 1, 1e9, 0, 1e9},
    {"perf_policy_reliability_ns", &metrics::kThrottleReliability, 1, 1e9, 0, 1e9},
};

constexpr GpuField kUtilizationFields[] = {
    {"util_gpu", &metrics::kUtilization, 1, 100, 0, 1},
    {"util_mem", &metrics::kMemoryActivity, 1, 100, 0, 1},
};

// Rounding may lift a full pipe slightly over 1.
constexpr double kMostActive = 1.05;
constexpr double kMostRate = 1e14;
constexpr GpuField kGpmFields[] = {
    {"graphics_util", &metrics::kEngineActive, 1, 100, 0, kMostActive},
    {"sm_util", &metrics::kSmActive, 1, 100, 0, kMostActive},
    {"sm_occupancy", &metrics::kSmOccupancy, 1, 100, 0, kMostActive},
    {"integer_util", &metrics::kIntegerActive, 1, 100, 0, kMostActive},
    {"any_tensor_util", &metrics::kTensorActive, 1, 100, 0, kMostActive},
    {"hmma_util", &metrics::kTensorHalfActive, 1, 100, 0, kMostActive},
    {"dram_bw_util", &metrics::kDramActive, 1, 100, 0, kMostActive},
    {"fp64_util", &metrics::kFp64Active, 1, 100, 0, kMostActive},
    {"fp32_util", &metrics::kFp32Active, 1, 100, 0, kMostActive},
    {"fp16_util", &metrics::kFp16Active, 1, 100, 0, kMostActive},
    {"pcie_tx_mib_s", &metrics::kPcieTransmitRate, 1048576, 1, 0, kMostRate},
    {"pcie_rx_mib_s", &metrics::kPcieReceiveRate, 1048576, 1, 0, kMostRate},
    {"nvlink_tx_mib_s", &metrics::kNvlinkTransmitRate, 1048576, 1, 0, kMostRate},
    {"nvlink_rx_mib_s", &metrics::kNvlinkReceiveRate, 1048576, 1, 0, kMostRate},
};

struct WrappingField {
  std::string_view key;
  const MetricDef* metric;
};
constexpr std::array<WrappingField, 2> kWrappingFields = {
    {{"pcie_tx_bytes", &metrics::kPcieTransmit}, {"pcie_rx_bytes", &metrics::kPcieReceive}}};

struct DeviceFact {
  std::string_view key, attribute;
  int64_t factor;
};
constexpr DeviceFact kDeviceFacts[] = {
    {"memory_total", "memory_total_bytes", 1},
    {"memory_reserved", "memory_reserved_bytes", 1},
    {"power_limit_mw", "power_limit_mw", 1},
    {"max_sm_mhz", "max_sm_clock_hz", 1'000'000},
    {"max_mem_mhz", "max_memory_clock_hz", 1'000'000},
    {"temp_slowdown_c", "temperature_slowdown_c", 1},
    {"temp_shutdown_c", "temperature_shutdown_c", 1},
    {"temp_mem_max_c", "memory_temperature_max_c", 1},
};

}  // namespace

RecordingHeader ReadRecordingHeader(JsonObject header) {
  RecordingHeader known;
  const auto positive = [header](std::string_view key) {
    const auto number = IntField(header, key);
    return number && *number > 0 ? number : std::nullopt;
  };
  known.hz = positive("hz");
  known.clk_tck = positive("clk_tck");
  known.cpus = positive("cpus");
  known.gpus = IntField(header, "gpus");
  known.cuda = positive("cuda");
  known.driver = TextField(header, "driver").value_or("");
  return known;
}

int64_t PeriodNs(const RecordingHeader& header) {
  return header.hz ? base::kNsPerSecond / *header.hz : 0;
}

GpuLines::State& GpuLines::Find(int64_t index) {
  const auto [place, fresh] = gpus_.try_emplace(index);
  if (fresh) {
    const std::string number = std::to_string(index);
    place->second.name = "gpu:" + number;
    place->second.entity = cache_.registry().AddEntity({.scope = model::Scope::kGpu,
                                                        .name = place->second.name,
                                                        .labels = {{"gpu", number}},
                                                        .attributes = {}});
  }
  return place->second;
}

bool GpuLines::Device(JsonObject line) {
  const auto index = IntField(line, "gpu");
  if (!index || *index < 0 || *index >= kMostGpus) return false;
  State& state = Find(*index);
  state.memory_total = IntField(line, "memory_total");
  state.memory_reserved = IntField(line, "memory_reserved");
  model::EntityDef entity = cache_.registry().entity(state.entity);
  entity.attributes.clear();
  if (const auto name = TextField(line, "name")) entity.attributes.emplace_back("name", *name);
  if (!driver_.empty()) entity.attributes.emplace_back("driver_version", driver_);
  for (const DeviceFact& fact : kDeviceFacts) {
    const auto number = IntField(line, fact.key);
    int64_t scaled = 0;
    if (!number || __builtin_mul_overflow(*number, fact.factor, &scaled)) continue;
    entity.attributes.emplace_back(fact.attribute, std::to_string(scaled));
  }
  cache_.registry().AddEntity(std::move(entity));
  return true;
}

bool GpuLines::Gpu(JsonObject line, model::Samples& out) {
  const auto index = IntField(line, "gpu");
  if (!index || *index < 0 || *index >= kMostGpus) return false;
  State& state = Find(*index);
  TellUtilization(line, state, out.t_ns);
  Values(line, state, out);
  Memory(line, state, out);
  Wrapping(line, state, out);
  Processes(line, state, out);
  if (const auto gpm = ObjectField(line, "gpm")) Gpm(*gpm, state, out);
  return true;
}

void GpuLines::TellUtilization(JsonObject line, State& state, int64_t t_ns) {
  const int64_t rc = IntField(line, "util_rc").value_or(0);
  if (rc == state.utilization_rc) return;
  state.utilization_rc = rc;
  const auto condition = rc == 0   ? model::SeriesCondition::kOk
                         : rc == 3 ? model::SeriesCondition::kNotSupported
                         : rc == 4 ? model::SeriesCondition::kNoPermission
                                   : model::SeriesCondition::kError;
  for (const GpuField& field : kUtilizationFields) {
    sink_.Write(model::SeriesState{
        .t_ns = t_ns,
        .series = cache_.Series(state.entity, *field.metric, period_ns_),
        .condition = condition,
        .detail =
            rc == 0 ? "" : "nvmlDeviceGetUtilizationRates: return code " + std::to_string(rc)});
  }
}

void GpuLines::Values(JsonObject line, State& state, model::Samples& out) {
  const auto put = [&](const GpuField& field) {
    const auto number = RealField(line, field.key);
    if (!number) return;
    cache_.Put(state.entity, *field.metric, period_ns_, *number * field.factor / field.divisor,
               field.least, field.most, out);
  };
  if (state.utilization_rc == 0) {
    for (const GpuField& field : kUtilizationFields) put(field);
  }
  for (const GpuField& field : kGpuFields) put(field);
  // Boards without the sensor answer 0.
  const auto memory_temp = RealField(line, "memory_temp_c");
  if (memory_temp && *memory_temp != 0) {
    cache_.Put(state.entity, metrics::kMemoryTemperature, period_ns_, *memory_temp, -50, 150, out);
  }
}

void GpuLines::Memory(JsonObject line, State& state, model::Samples& out) {
  const auto used = RealField(line, "mem_used");
  const auto free = RealField(line, "mem_free");
  const double most = state.memory_total ? static_cast<double>(*state.memory_total) : kMostBytes;
  const auto put = [&](const MetricDef& metric, std::optional<double> bytes, double limit) {
    if (bytes) cache_.Put(state.entity, metric, period_ns_, *bytes, 0, limit, out);
  };
  put(metrics::kMemoryUsed, used, most);
  put(metrics::kMemoryFree, free, most);
  // Constant, but the live collector gives both with each reading.
  if (!used) return;
  put(metrics::kMemoryTotal, state.memory_total, kMostBytes);
  put(metrics::kMemoryReserved, state.memory_reserved, kMostBytes);
}

void GpuLines::Wrapping(JsonObject line, State& state, model::Samples& out) {
  for (size_t i = 0; i < kWrapping; ++i) {
    const auto number = IntField(line, kWrappingFields[i].key);
    if (!number || *number < 0) continue;
    const auto raw = static_cast<uint64_t>(*number);
    auto& last = state.wrapping_last[i];
    const bool wrapped = last && *last < kWrap && raw<*last&& * last - raw> kWrap / 2;
    if (wrapped) state.wrapping_base[i] += kWrap;
    last = raw;
    cache_.Put(state.entity, *kWrappingFields[i].metric, period_ns_,
               static_cast<double>(raw + state.wrapping_base[i]), 0, kMostCount, out);
  }
}

void GpuLines::Gpm(JsonObject gpm, State& state, model::Samples& out) {
  const int64_t period = period_ns_ > 0 ? std::max(period_ns_, kLeastGpmPeriodNs) : 0;
  for (const GpuField& field : kGpmFields) {
    const auto number = RealField(gpm, field.key);
    if (!number) continue;
    cache_.Put(state.entity, *field.metric, period, *number * field.factor / field.divisor,
               field.least, field.most, out);
  }
}

void GpuLines::Processes(JsonObject line, State& state, model::Samples& out) {
  const auto list = ArrayField(line, "procs");
  if (!list) return;
  if (list->size() == 0 && RealField(line, "mem_used").value_or(0) > kUnexplainedBytes) return;
  double sum = 0;
  double count = 0;
  bool sum_known = true;
  for (const JsonElement item : *list) {
    simdjson::dom::array pair;
    if (item.get(pair) != simdjson::SUCCESS || pair.size() == 0) continue;
    ++count;
    const auto bytes = pair.size() > 1 ? NumberOf(pair.at(1).value_unsafe()) : std::nullopt;
    if (!bytes || *bytes < 0 || *bytes > kMostBytes) {
      sum_known = false;
      continue;
    }
    sum += *bytes;
    Process(pair, *bytes, state, out);
  }
  cache_.Put(state.entity, metrics::kProcessCount, period_ns_, count, 0, kMostCount, out);
  if (sum_known) {
    cache_.Put(state.entity, metrics::kProcessMemory, period_ns_, sum, 0, kMostBytes, out);
  }
}

void GpuLines::Process(simdjson::dom::array pair, double bytes, State& state, model::Samples& out) {
  const auto pid = IntOf(pair.at(0).value_unsafe());
  if (!pid) return;
  const std::string text = std::to_string(*pid);
  const model::EntityId entity =
      cache_.registry().AddEntity({.scope = model::Scope::kProcess,
                                   .name = state.name + "/" + text,
                                   .labels = {{"pid", text}, {"gpu", state.name.substr(4)}},
                                   .attributes = {}});
  cache_.Put(entity, metrics::kOfProcessMemory, period_ns_, bytes, 0, kMostBytes, out);
}

}  // namespace epochmeter::ingest
