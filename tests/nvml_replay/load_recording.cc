// SPDX-License-Identifier: Apache-2.0
// Reads a recording: a folder with samples.jsonl.gz, one JSON object a line.
#include <zlib.h>

#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "collect/nvml/abi_codes.h"
#include "generation.h"
#include "scenario.h"

namespace nvml_replay {
namespace {

using Json = nlohmann::json;

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
  if (value.is_number()) device->tracks[key].points.push_back({t_ns, {value.get<double>(), 0}});
}

std::vector<ProcessEntry> ReadProcesses(const Json& list) {
  std::vector<ProcessEntry> out;
  for (const Json& p : list) {
    ProcessEntry entry;
    entry.pid = p.at(0).get<uint32_t>();
    entry.used_bytes = p.at(1).get<uint64_t>();
    out.push_back(std::move(entry));
  }
  return out;
}

// [[pid, stamp_us, sm, mem], ...]: a row lives until the next tick says otherwise.
void AddUtilization(DeviceModel* device, int64_t t_ns, const Json& list) {
  device->utilization.supported = true;
  for (UtilizationRow& row : device->utilization.rows) {
    if (row.alive.to_ns == INT64_MAX) row.alive.to_ns = t_ns;
  }
  for (const Json& sample : list) {
    UtilizationRow row;
    row.pid = sample.at(0).get<uint32_t>();
    row.percent["sm"] = Constant(sample.at(2).get<double>());
    row.percent["mem"] = Constant(sample.at(3).get<double>());
    row.alive.from_ns = t_ns;
    device->utilization.rows.push_back(std::move(row));
  }
}

// An older driver keeps its own version: the recording was made with R580.
void ReadHeader(const Json& line, Scenario* scenario) {
  if (kGeneration.branch >= 580) {
    scenario->driver_version = line.value("driver", scenario->driver_version);
  }
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
  if (line.contains("proc_util")) AddUtilization(&device, t_ns, line["proc_util"]);
  if (line.value("proc_util_rc", 0) == kNvmlNotFound) {
    AddUtilization(&device, t_ns, Json::array());
  }
}

}  // namespace

bool LoadRecording(const std::string& folder, Scenario* scenario, std::string* error) {
  const std::string path = folder + "/samples.jsonl.gz";
  std::optional<int64_t> origin_ns;
  const auto read = [&](const std::string& text) {
    if (text.rfind("{\"kind\":\"host\"", 0) == 0) return;
    const Json line = Json::parse(text);
    const std::string kind = line.at("kind");
    if (kind == "header") ReadHeader(line, scenario);
    if (kind == "device") ReadDeviceLine(line, scenario);
    if (kind != "gpu") return;
    const auto t_ns = line.at("mono_ns").get<int64_t>();
    if (!origin_ns) origin_ns = t_ns;
    ReadGpuLine(line, t_ns - *origin_ns, scenario);
    scenario->last_ns = t_ns - *origin_ns;
  };
  try {
    if (!ForEachLine(path, error, read)) return false;
  } catch (const std::exception& e) {
    *error = path + ": " + e.what();
    return false;
  }
  if (scenario->devices.empty() || !origin_ns) {
    *error = path + " holds no device or no sample";
    return false;
  }
  return true;
}

}  // namespace nvml_replay
