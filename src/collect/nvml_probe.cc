// SPDX-License-Identifier: Apache-2.0
#include "collect/nvml_probe.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "base/clock.h"
#include "collect/machine_probe.h"

namespace epochmeter::collect::nvml {
namespace {

constexpr int64_t kCallBudgetNs = 60 * base::kNsPerMs;  // of one call, all its readings together
constexpr size_t kMostReads = 15;

using Fields = std::vector<model::EventField>;

void Tell(model::Sink& sink, std::string_view name, Fields fields) {
  sink.Write(model::Event{.t_ns = base::MonotonicNs(),
                          .kind = model::EventKind::kMark,
                          .rank = {},
                          .epoch = {},
                          .step = {},
                          .name = std::string(name),
                          .fields = std::move(fields)});
}

void Announce(model::Sink& sink, const char* call) { Tell(sink, kProbeCall, {{"call", call}}); }

// One call that costs the same whoever makes it. Null where the driver lacks it.
struct TimedCall {
  const char* name;
  bool (*There)(const Api& api);
  NvmlReturn (*Call)(const Api& api, NvmlDevice device);
};

template <auto kMember>
constexpr TimedCall NumberCall(const char* name) {
  return {name, [](const Api& api) { return api.*kMember != nullptr; },
          [](const Api& api, NvmlDevice device) {
            uint32_t value = 0;
            return (api.*kMember)(device, &value);
          }};
}

template <auto kMember, typename Out>
constexpr TimedCall StructCall(const char* name) {
  return {name, [](const Api& api) { return api.*kMember != nullptr; },
          [](const Api& api, NvmlDevice device) {
            Out value{};
            return (api.*kMember)(device, &value);
          }};
}

template <uint32_t kField>
constexpr TimedCall FieldCall(const char* name) {
  return {name, [](const Api& api) { return api.field_values != nullptr; },
          [](const Api& api, NvmlDevice device) {
            NvmlFieldValue value{};
            value.field_id = kField;
            const NvmlReturn rc = api.field_values(device, 1, &value);
            return rc == kNvmlSuccess ? static_cast<NvmlReturn>(value.nvml_return) : rc;
          }};
}

constexpr std::array kCalls = {
    StructCall<&Api::utilization, NvmlUtilization>("nvmlDeviceGetUtilizationRates"),
    StructCall<&Api::memory, NvmlMemory>("nvmlDeviceGetMemoryInfo"),
    NumberCall<&Api::power_usage>("nvmlDeviceGetPowerUsage"),
    NumberCall<&Api::enforced_power_limit>("nvmlDeviceGetEnforcedPowerLimit"),
    NumberCall<&Api::performance_state>("nvmlDeviceGetPerformanceState"),
    NumberCall<&Api::fan_speed>("nvmlDeviceGetFanSpeed"),
    StructCall<&Api::total_energy, uint64_t>("nvmlDeviceGetTotalEnergyConsumption"),
    StructCall<&Api::clock_event_reasons, uint64_t>("nvmlDeviceGetCurrentClocksEventReasons"),
    FieldCall<kNvmlFieldMemoryTemp>("field 82 memory temperature"),
    FieldCall<kNvmlFieldPerfPolicyThermal>("field 75 thermal throttle time"),
    FieldCall<kNvmlFieldPcieReplayCounter>("field 94 PCIe replays"),
    FieldCall<kNvmlFieldPowerInstant>("field 186 instantaneous power"),
    FieldCall<kNvmlFieldPcieTxBytes>("field 197 PCIe bytes sent"),
};

void TimeCall(const Library& library, NvmlDevice device, const TimedCall& call, model::Sink& sink) {
  if (!call.There(library.api())) {
    Tell(sink, kProbeCall, {{"call", call.name}, {"error", "not in this driver's library"}});
    return;
  }
  Announce(sink, call.name);
  std::vector<int64_t> costs_ns;
  NvmlReturn rc = kNvmlSuccess;
  const int64_t begin_ns = base::MonotonicNs();
  while (costs_ns.size() < kMostReads && base::MonotonicNs() - begin_ns < kCallBudgetNs) {
    const int64_t before_ns = base::MonotonicNs();
    rc = call.Call(library.api(), device);
    costs_ns.push_back(base::MonotonicNs() - before_ns);
  }
  std::sort(costs_ns.begin(), costs_ns.end());
  const double median_us = static_cast<double>(costs_ns[costs_ns.size() / 2]) * 1e-3;
  Tell(sink, kProbeCall,
       {{"call", call.name},
        {"code", static_cast<int64_t>(rc)},
        {"error", rc == kNvmlSuccess ? "" : library.ErrorText(rc)},
        {"median_us", median_us},
        {"reads", static_cast<int64_t>(costs_ns.size())}});
}

template <typename Call>
void AddText(Fields& fields, const char* key, Call call, NvmlDevice device) {
  std::array<char, kNvmlUuidBufferSize> text{};
  if (call == nullptr || call(device, text.data(), text.size()) != kNvmlSuccess) return;
  fields.push_back({key, TextInBuffer(text.data(), text.size())});
}

void AddNumber(Fields& fields, const char* key, NvmlReturn (*call)(NvmlDevice, uint32_t*),
               NvmlDevice device) {
  uint32_t value = 0;
  if (call == nullptr || call(device, &value) != kNvmlSuccess) return;
  fields.push_back({key, static_cast<int64_t>(value)});
}

void AddMig(Fields& fields, const Api& api, NvmlDevice device) {
  uint32_t current = 0, pending = 0, most = 0;
  if (api.mig_mode == nullptr || api.mig_mode(device, &current, &pending) != kNvmlSuccess) return;
  fields.push_back({"mig_mode", static_cast<int64_t>(current)});
  fields.push_back({"mig_pending", static_cast<int64_t>(pending)});
  if (current == 0 || api.max_mig_devices == nullptr || api.mig_handle == nullptr) return;
  if (api.max_mig_devices(device, &most) != kNvmlSuccess) return;
  int64_t instances = 0;
  for (uint32_t i = 0; i < most; ++i) {  // with holes
    NvmlDevice instance = nullptr;
    instances += api.mig_handle(device, i, &instance) == kNvmlSuccess ? 1 : 0;
  }
  fields.push_back({"mig_instances", instances});
}

void AddMemory(Fields& fields, const Api& api, NvmlDevice device) {
  NvmlMemory memory{};
  const NvmlReturn rc = api.memory != nullptr ? api.memory(device, &memory) : kNvmlFunctionNotFound;
  fields.push_back({"memory_code", static_cast<int64_t>(rc)});
  if (rc != kNvmlSuccess) return;
  fields.push_back({"memory_total_bytes", static_cast<int64_t>(memory.total)});
}

// Gives the handle, null when there is none.
NvmlDevice ProbeDevice(const Library& library, uint32_t index, model::Sink& sink) {
  const Api& api = library.api();
  NvmlDevice device = nullptr;
  Announce(sink, "nvmlDeviceGetHandleByIndex");
  const NvmlReturn rc = api.handle_by_index(index, &device);
  Fields fields = {{"index", static_cast<int64_t>(index)}, {"code", static_cast<int64_t>(rc)}};
  if (rc != kNvmlSuccess) {
    fields.push_back({"error", library.ErrorText(rc)});
    Tell(sink, kProbeDevice, std::move(fields));
    return nullptr;
  }
  Announce(sink, "the calls that describe a GPU");
  AddText(fields, "name", api.name, device);
  AddText(fields, "uuid", api.uuid, device);
  AddNumber(fields, "persistence", api.persistence_mode, device);
  AddNumber(fields, "virtualization", api.virtualization_mode, device);
  AddMig(fields, api, device);
  AddMemory(fields, api, device);
  Tell(sink, kProbeDevice, std::move(fields));
  return device;
}

}  // namespace

void ProbeNvml(const LibraryOptions& options, model::Sink& sink) {
  Announce(sink, "nvmlInit");
  const auto opened = Library::Open(options);
  if (!opened.ok()) {
    const base::Error& error = opened.error();
    Tell(sink, kProbeLibrary,
         {{"open", int64_t{0}},
          {"code", static_cast<int64_t>(error.code)},
          {"what", error.what},
          {"where", error.where},
          {"why", error.why},
          {"what_to_do", error.what_to_do}});
    return;
  }
  const Library& library = **opened;
  Tell(sink, kProbeLibrary,
       {{"open", int64_t{1}},
        {"path", library.path()},
        {"driver_version", library.driver_version()},
        {"nvml_version", library.nvml_version()}});
  Announce(sink, "nvmlDeviceGetCount");
  uint32_t count = 0;
  if (library.api().device_count(&count) != kNvmlSuccess) return;
  NvmlDevice first = nullptr;
  for (uint32_t index = 0; index < count; ++index) {
    NvmlDevice device = ProbeDevice(library, index, sink);
    if (first == nullptr) first = device;
  }
  if (first == nullptr) return;
  for (const TimedCall& call : kCalls) TimeCall(library, first, call, sink);
}

}  // namespace epochmeter::collect::nvml
