// SPDX-License-Identifier: Apache-2.0
#include "scenario.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <string_view>

#include "collect/nvml/abi_events.h"
#include "generation.h"

namespace nvml_replay {
namespace {

uint64_t Hash(std::string_view text) {
  uint64_t h = 14695981039346656037ULL;
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return h;
}

std::string MakeUuid(const char* prefix, const std::string& seed) {
  const uint64_t a = Hash(seed);
  const uint64_t b = Hash(seed + "#");
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%s-%08x-%04x-%04x-%04x-%012llx", prefix,
                static_cast<unsigned>(a >> 32), static_cast<unsigned>(a >> 16) & 0xffffU,
                static_cast<unsigned>(a) & 0xffffU, static_cast<unsigned>(b >> 48),
                static_cast<unsigned long long>(b & 0xffffffffffffULL));
  return text.data();
}

void NameInstances(DeviceModel* device) {
  for (DeviceModel& instance : device->instances) {
    const std::string place =
        std::to_string(instance.gpu_instance) + "/" + std::to_string(instance.compute_instance);
    if (instance.uuid.empty()) instance.uuid = MakeUuid("MIG", device->uuid + "/" + place);
    if (instance.name.empty()) instance.name = device->name + " MIG " + instance.profile;
  }
}

// Identities are functions of the scenario's name and the index, so that two processes, and a
// sampler that was restarted, see the same devices. What a script names itself stays.
void GiveIdentities(const std::string& name, std::vector<DeviceModel>* devices) {
  for (size_t i = 0; i < devices->size(); ++i) {
    DeviceModel& device = (*devices)[i];
    const std::string seed = name + "/" + std::to_string(i);
    if (device.uuid.empty()) device.uuid = MakeUuid("GPU", seed);
    device.bus = static_cast<uint32_t>(0x10 + Hash(name) % 0x20 + i);
    std::array<char, 64> text{};
    std::snprintf(text.data(), text.size(), "%08X:%02X:00.0", 0U, device.bus);
    if (device.bus_id.empty()) device.bus_id = text.data();
    if (device.serial.empty()) {
      device.serial = std::to_string(1650000000000ULL + Hash(seed + "#") % 1000000000ULL);
    }
    NameInstances(&device);
  }
}

// A device that goes away or appears was unbound or bound; a script may tell its own story.
void AddSystemEvents(Scenario* scenario) {
  if (!scenario->system_events.empty()) return;
  auto& events = scenario->system_events;
  for (size_t i = 0; i < scenario->devices.size(); ++i) {
    for (const Span& span : scenario->devices[i].absent) {
      if (span.from_ns > 0) events.push_back({span.from_ns, i, kNvmlSystemEventUnbind});
      if (span.to_ns != INT64_MAX) events.push_back({span.to_ns, i, kNvmlSystemEventBind});
    }
  }
  std::stable_sort(events.begin(), events.end(),
                   [](const EventModel& a, const EventModel& b) { return a.at_ns < b.at_ns; });
}

}  // namespace

std::optional<Scenario> LoadScenario(const std::string& path, std::string* error) {
  Scenario scenario;
  scenario.driver_version = kGeneration.driver;
  std::filesystem::path given(path);
  if (!given.has_filename()) given = given.parent_path();
  std::string name = given.stem().string();
  std::error_code ignored;
  const bool folder = std::filesystem::is_directory(given, ignored);
  const bool ok = folder ? LoadRecording(given.string(), &scenario, error)
                         : LoadScript(given.string(), &scenario, &name, error);
  if (!ok) return std::nullopt;
  if (folder) {
    scenario.nvml_version =
        std::to_string(kGeneration.cuda_version / 1000) + "." + scenario.driver_version;
  }
  GiveIdentities(name, &scenario.devices);
  AddSystemEvents(&scenario);
  return scenario;
}

}  // namespace nvml_replay
