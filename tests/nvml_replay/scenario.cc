// SPDX-License-Identifier: Apache-2.0
#include "scenario.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string_view>

namespace nvml_replay {
namespace {

using Json = nlohmann::json;

int64_t SecondsToNs(double s) { return static_cast<int64_t>(s * 1e9); }

uint64_t Hash(std::string_view text) {
  uint64_t h = 14695981039346656037ULL;
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return h;
}

// Identities are functions of the scenario's name and the index, so that two processes, and a
// sampler that was restarted, see the same devices.
void GiveIdentities(const std::string& name, std::vector<DeviceModel>* devices) {
  for (size_t i = 0; i < devices->size(); ++i) {
    const std::string seed = name + "/" + std::to_string(i);
    const uint64_t a = Hash(seed);
    const uint64_t b = Hash(seed + "#");
    std::array<char, 64> text{};
    std::snprintf(text.data(), text.size(), "GPU-%08x-%04x-%04x-%04x-%012llx",
                  static_cast<unsigned>(a >> 32), static_cast<unsigned>(a >> 16) & 0xffffU,
                  static_cast<unsigned>(a) & 0xffffU, static_cast<unsigned>(b >> 48),
                  static_cast<unsigned long long>(b & 0xffffffffffffULL));
    DeviceModel& device = (*devices)[i];
    device.uuid = text.data();
    device.bus = static_cast<uint32_t>(0x10 + Hash(name) % 0x20 + i);
    std::snprintf(text.data(), text.size(), "%08X:%02X:00.0", 0U, device.bus);
    device.bus_id = text.data();
    device.serial = std::to_string(1650000000000ULL + b % 1000000000ULL);
  }
}

// Calls on_line for each line of a gzip (or plain) file; false with `error` when it can't be read.
template <typename OnLine>
bool ForEachLine(const std::string& path, std::string* error, OnLine on_line) {
  gzFile file = gzopen(path.c_str(), "rb");
  if (file == nullptr) {
    *error = "can't open " + path;
    return false;
  }
  std::string line;
  std::array<char, 65536> buffer{};
  while (gzgets(file, buffer.data(), static_cast<int>(buffer.size())) != nullptr) {
    line += buffer.data();
    if (line.back() != '\n') continue;
    on_line(line);
    line.clear();
  }
  if (!line.empty()) on_line(line);
  gzclose(file);
  return true;
}

void AddPoint(DeviceModel* device, const std::string& key, int64_t t_ns, const Json& value) {
  if (value.is_number()) device->tracks[key].points.emplace_back(t_ns, value.get<double>());
}

std::vector<ProcessEntry> ReadProcesses(const Json& list) {
  std::vector<ProcessEntry> out;
  for (const Json& p : list) out.push_back({p.at(0).get<uint32_t>(), p.at(1).get<uint64_t>()});
  return out;
}

// {"kind":"device","gpu":0,"name":"NVIDIA H200","memory_total":...,"max_sm_mhz":1980,...}
void ReadDeviceLine(const Json& line, Scenario* scenario) {
  const auto index = line.at("gpu").get<size_t>();
  if (scenario->devices.size() <= index) scenario->devices.resize(index + 1);
  DeviceModel& device = scenario->devices[index];
  device.name = line.value("name", device.name);
  for (const auto& [key, value] : line.items()) {
    if (key != "gpu") AddPoint(&device, key, 0, value);
  }
}

// {"kind":"gpu","mono_ns":...,"gpu":0,"util_gpu":1,...,"gpm":{...},"procs":[[pid,bytes]],...}
void ReadGpuLine(const Json& line, int64_t t_ns, Scenario* scenario) {
  DeviceModel& device = scenario->devices.at(line.at("gpu").get<size_t>());
  for (const auto& [key, value] : line.items()) {
    if (key != "gpu") AddPoint(&device, key, t_ns, value);
  }
  if (line.contains("gpm")) {
    for (const auto& [key, value] : line["gpm"].items()) {
      AddPoint(&device, "gpm." + key, t_ns, value);
    }
  }
  if (line.contains("procs")) device.processes.emplace_back(t_ns, ReadProcesses(line["procs"]));
}

bool LoadRecording(const std::string& folder, Scenario* scenario, std::string* error) {
  const std::string path = folder + "/samples.jsonl.gz";
  std::optional<int64_t> origin_ns;
  const auto read = [&](const std::string& text) {
    if (text.rfind("{\"kind\":\"host\"", 0) == 0) return;
    const Json line = Json::parse(text);
    const std::string kind = line.at("kind");
    if (kind == "header") scenario->driver_version = line.value("driver", std::string());
    if (kind == "device") ReadDeviceLine(line, scenario);
    if (kind != "gpu") return;
    const auto t_ns = line.at("mono_ns").get<int64_t>();
    if (!origin_ns) origin_ns = t_ns;
    ReadGpuLine(line, t_ns - *origin_ns, scenario);
    scenario->last_ns = t_ns - *origin_ns;
  };
  if (!ForEachLine(path, error, read)) return false;
  if (scenario->devices.empty() || !origin_ns) {
    *error = path + " holds no device or no sample";
    return false;
  }
  scenario->nvml_version = "13." + scenario->driver_version;
  return true;
}

// A number, [[t_s, value], ...] or {"start": v, "per_s": slope}.
Track ReadTrack(const Json& spec) {
  Track track;
  if (spec.is_number()) {
    track.points.emplace_back(0, spec.get<double>());
  } else if (spec.is_object()) {
    track.points.emplace_back(0, spec.at("start").get<double>());
    track.per_s = spec.at("per_s").get<double>();
  } else {
    for (const Json& point : spec) {
      track.points.emplace_back(SecondsToNs(point.at(0).get<double>()), point.at(1).get<double>());
    }
  }
  return track;
}

// {"count":2,"name":"...","values":{...},"processes":[[pid,bytes],...]}
void ReadScriptDevice(const Json& spec, std::vector<DeviceModel>* devices) {
  DeviceModel device;
  device.name = spec.value("name", device.name);
  if (spec.contains("values")) {
    for (const auto& [key, value] : spec["values"].items()) device.tracks[key] = ReadTrack(value);
  }
  if (spec.contains("processes")) {
    device.processes.emplace_back(0, ReadProcesses(spec["processes"]));
  }
  devices->insert(devices->end(), spec.value("count", size_t{1}), device);
}

Fault ReadFault(const Json& spec) {
  Fault fault;
  fault.function = spec.value("function", fault.function);
  fault.device = spec.value("device", fault.device);
  fault.at_ns = SecondsToNs(spec.value("at_s", 0.0));
  if (spec.contains("for_s")) fault.for_ns = SecondsToNs(spec["for_s"].get<double>());
  fault.times = spec.value("times", fault.times);
  fault.return_code = spec.value("return", 0);
  fault.hang_s = spec.value("hang_s", 0.0);
  fault.crash = spec.value("crash", false);
  if (spec.contains("values")) {
    for (const auto& [key, value] : spec["values"].items()) {
      // A string such as "NaN" stands for what JSON can't write.
      fault.values[key] = value.is_string() ? std::strtod(value.get<std::string>().c_str(), nullptr)
                                            : value.get<double>();
    }
  }
  return fault;
}

bool LoadScript(const std::string& path, Scenario* scenario, std::string* name,
                std::string* error) {
  std::ifstream in(path);
  if (!in) {
    *error = "can't open " + path;
    return false;
  }
  const Json script = Json::parse(in);
  if (script.contains("recording")) {
    const std::filesystem::path folder = script["recording"].get<std::string>();
    const auto base = std::filesystem::path(path).parent_path();
    if (!LoadRecording((base / folder).string(), scenario, error)) return false;
    *name = folder.filename().string();
  }
  if (script.contains("devices")) {
    scenario->devices.clear();
    const Json& devices = script["devices"];
    if (devices.is_object()) ReadScriptDevice(devices, &scenario->devices);
    if (devices.is_array()) {
      for (const Json& device : devices) ReadScriptDevice(device, &scenario->devices);
    }
  }
  *name = script.value("name", *name);
  scenario->driver_version = script.value("driver", scenario->driver_version);
  scenario->nvml_version = script.value("nvml", "13." + scenario->driver_version);
  scenario->gpm_nan_under_ns = SecondsToNs(script.value("gpm_nan_under_ms", 0.0) / 1e3);
  if (script.contains("faults")) {
    for (const Json& fault : script["faults"]) scenario->faults.push_back(ReadFault(fault));
  }
  return true;
}

}  // namespace

std::optional<double> Track::At(int64_t play_ns) const {
  if (points.empty()) return std::nullopt;
  auto it = std::upper_bound(points.begin(), points.end(), play_ns,
                             [](int64_t t, const auto& point) { return t < point.first; });
  const auto& point = it == points.begin() ? *it : *(it - 1);
  if (per_s == 0.0 || play_ns < point.first) return point.second;
  return point.second + per_s * static_cast<double>(play_ns - point.first) / 1e9;
}

std::optional<double> Track::MeanBetween(int64_t from_ns, int64_t to_ns) const {
  double sum = 0;
  int count = 0;
  for (const auto& [t_ns, value] : points) {
    if (t_ns > from_ns && t_ns <= to_ns) {
      sum += value;
      ++count;
    }
  }
  return count == 0 ? At(to_ns) : sum / count;
}

std::optional<Scenario> LoadScenario(const std::string& path, std::string* error) {
  Scenario scenario;
  std::filesystem::path given(path);
  if (!given.has_filename()) given = given.parent_path();
  std::string name = given.stem().string();
  try {
    const bool folder = std::filesystem::is_directory(given);
    const bool ok = folder ? LoadRecording(given.string(), &scenario, error)
                           : LoadScript(given.string(), &scenario, &name, error);
    if (!ok) return std::nullopt;
  } catch (const std::exception& e) {
    *error = path + ": " + e.what();
    return std::nullopt;
  }
  GiveIdentities(name, &scenario.devices);
  return scenario;
}

}  // namespace nvml_replay
