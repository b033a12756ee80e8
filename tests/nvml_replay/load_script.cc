// SPDX-License-Identifier: Apache-2.0
// Reads a script: the devices of README.md's format. load_faults.cc reads what goes wrong.
#include <filesystem>
#include <fstream>
#include <string>

#include "generation.h"
#include "keys.h"
#include "load_faults.h"
#include "scenario.h"
#include "script_object.h"

namespace nvml_replay {
namespace {

// [from_s, to_s], or [from_s] for ever.
Span ReadSpan(const Json& json, const std::string& where, std::string* error) {
  Span span;
  const bool good = json.is_array() && !json.empty() && json.size() <= 2 && json[0].is_number() &&
                    (json.size() == 1 || json[1].is_number());
  if (!good) {
    if (error->empty()) *error = where + ": must be [from_s, to_s] or [from_s]";
    return span;
  }
  span.from_ns = SecondsToNs(json[0].get<double>());
  if (json.size() == 2) span.to_ns = SecondsToNs(json[1].get<double>());
  return span;
}

void ReadAlive(Object* object, Span* alive) {
  object->SecondsToNs("from_s", &alive->from_ns);
  object->SecondsToNs("to_s", &alive->to_ns);
}

// [pid, bytes] or {"pid", "memory", "protected_memory", "kind", "gi", "ci", "from_s", "to_s"}.
ProcessEntry ReadProcess(const Json& json, const std::string& where, std::string* error) {
  ProcessEntry entry;
  if (json.is_array()) {
    if (json.size() != 2 || !json[0].is_number_unsigned() || !json[1].is_number_unsigned()) {
      if (error->empty()) *error = where + ": must be [pid, bytes] or an object";
      return entry;
    }
    entry.pid = json[0].get<uint32_t>();
    entry.used_bytes = json[1].get<uint64_t>();
    return entry;
  }
  Object object(json, where, error);
  object.Count("pid", &entry.pid);
  if (const Json* memory = object.Find("memory")) {
    entry.used = ReadTrack(*memory, object.Path("memory"), error);
  }
  object.Bytes("protected_memory", &entry.protected_bytes);
  std::string kind = "compute";
  object.Text("kind", &kind);
  if (kind == "graphics") entry.kind = ProcessKind::kGraphics;
  if (kind == "mps") entry.kind = ProcessKind::kMps;
  if (kind != "compute" && entry.kind == ProcessKind::kCompute) {
    object.Fail("kind", "must be compute, graphics or mps");
  }
  object.Small("gi", &entry.gpu_instance);
  object.Small("ci", &entry.compute_instance);
  ReadAlive(&object, &entry.alive);
  object.Close();
  return entry;
}

UtilizationRow ReadRow(const Json& json, const std::string& where, std::string* error) {
  UtilizationRow row;
  Object object(json, where, error);
  object.Count("pid", &row.pid);
  for (const char* key : {"sm", "mem", "enc", "dec", "jpg", "ofa"}) {
    if (const Json* track = object.Find(key)) {
      row.percent[key] = ReadTrack(*track, object.Path(key), error);
    }
  }
  int64_t stamp_ns = INT64_MIN;
  object.SecondsToNs("stamp_s", &stamp_ns);
  if (stamp_ns != INT64_MIN) row.stamp_ns = stamp_ns;
  ReadAlive(&object, &row.alive);
  object.Close();
  return row;
}

// The rows alone, or an object with the driver's habits.
void ReadUtilization(const Json& json, const std::string& where, std::string* error,
                     UtilizationModel* out) {
  *out = {};
  out->supported = true;
  const auto add = [&](const Json& row, const std::string& path) {
    out->rows.push_back(ReadRow(row, path, error));
  };
  if (json.is_array()) {
    for (size_t i = 0; i < json.size(); ++i) add(json[i], where + "[" + std::to_string(i) + "]");
    return;
  }
  Object object(json, where, error);
  object.Each("rows", add);
  object.SecondsToNs("period_s", &out->period_ns);
  object.Count("capacity", &out->capacity);
  object.Count("zero_rows", &out->zero_rows);
  object.Flag("ignores_last_seen", &out->ignores_last_seen);
  object.Close();
  if (out->period_ns <= 0) object.Fail("period_s", "must be above 0");
}

void ReadValues(Object* object, const char* key, DeviceModel* device) {
  const Json* values = object->Find(key);
  if (values == nullptr) return;
  if (!values->is_object()) return object->Fail(key, "must be an object");
  for (const auto& [name, value] : values->items()) {
    const std::string path = object->Path(key) + "." + name;
    if (!KnownKey(name)) return object->Fail(std::string(key) + "." + name, UnknownKeyHelp());
    device->tracks[name] = ReadTrack(value, path, object->error());
  }
}

void ReadProcesses(Object* object, DeviceModel* device) {
  if (object->Find("processes") == nullptr) return;
  std::vector<ProcessEntry> list;
  object->Each("processes", [&](const Json& json, const std::string& where) {
    list.push_back(ReadProcess(json, where, object->error()));
  });
  device->processes = {{0, std::move(list)}};
}

// One span or several: [5, 8] or [[5, 8], [12]].
void ReadAbsent(Object* object, DeviceModel* device) {
  const Json* json = object->Find("absent");
  if (json == nullptr) return;
  const bool one = json->is_array() && !json->empty() && !json->front().is_array();
  if (one) {
    device->absent.push_back(ReadSpan(*json, object->Path("absent"), object->error()));
    return;
  }
  object->Each("absent", [&](const Json& span, const std::string& path) {
    device->absent.push_back(ReadSpan(span, path, object->error()));
  });
}

// null is a hole: an index without a device.
DeviceModel ReadInstance(const Json& json, const std::string& where, std::string* error) {
  DeviceModel instance;
  if (json.is_null()) {
    instance.hole = true;
    return instance;
  }
  Object object(json, where, error);
  object.Small("gi", &instance.gpu_instance);
  object.Small("ci", &instance.compute_instance);
  object.Text("profile", &instance.profile);
  object.Text("uuid", &instance.uuid);
  instance.name.clear();
  object.Text("name", &instance.name);
  ReadValues(&object, "values", &instance);
  ReadProcesses(&object, &instance);
  ReadAbsent(&object, &instance);
  object.Close();
  if (instance.gpu_instance < 0) object.Fail("gi", "is needed");
  return instance;
}

void ReadMig(const Json& json, const std::string& where, std::string* error, DeviceModel* device) {
  Object object(json, where, error);
  device->max_instances = 7;
  object.Count("max", &device->max_instances);
  device->instances.clear();
  object.Each("instances", [&](const Json& instance, const std::string& path) {
    device->instances.push_back(ReadInstance(instance, path, error));
  });
  object.Close();
  if (device->tracks.count("mig_mode") == 0) device->tracks["mig_mode"] = Constant(1);
}

LostSpan ReadLost(const Json& json, const std::string& where, std::string* error) {
  LostSpan lost;
  Object object(json, where, error);
  int64_t for_ns = INT64_MAX;
  object.SecondsToNs("at_s", &lost.when.from_ns);
  object.SecondsToNs("for_s", &for_ns);
  if (for_ns != INT64_MAX) lost.when.to_ns = lost.when.from_ns + for_ns;
  object.Small("return", &lost.code);
  object.Flag("new_handle", &lost.new_handle);
  object.Close();
  return lost;
}

void ReadIdentity(Object* object, DeviceModel* device) {
  object->Text("name", &device->name);
  object->Text("uuid", &device->uuid);
  object->Text("bus_id", &device->bus_id);
  object->Text("serial", &device->serial);
  object->Count("pci_device_id", &device->pci_device_id);
  object->Flag("permitted", &device->permitted);
}

// What may be said about a device, in "devices" and in "extend".
void ReadDevice(Object* object, DeviceModel* device) {
  ReadIdentity(object, device);
  ReadValues(object, "values", device);
  ReadProcesses(object, device);
  if (const Json* json = object->Find("process_utilization")) {
    ReadUtilization(*json, object->Path("process_utilization"), object->error(),
                    &device->utilization);
  }
  if (const Json* json = object->Find("mig")) {
    ReadMig(*json, object->Path("mig"), object->error(), device);
  }
  ReadAbsent(object, device);
  object->Each("lost", [&](const Json& lost, const std::string& path) {
    device->lost.push_back(ReadLost(lost, path, object->error()));
  });
  object->Find("comment");
}

void ReadDevices(Object* script, Scenario* scenario) {
  if (script->Find("devices") != nullptr) scenario->devices.clear();
  script->Each("devices", [&](const Json& json, const std::string& where) {
    Object object(json, where, script->error());
    DeviceModel device;
    uint32_t count = 1;
    object.Count("count", &count);
    ReadDevice(&object, &device);
    object.Close();
    scenario->devices.insert(scenario->devices.end(), count, device);
  });
}

// Adds to the devices there are: {"device": 0, ...}, or all of them without "device".
void ReadExtensions(Object* script, Scenario* scenario) {
  script->Each("extend", [&](const Json& json, const std::string& where) {
    for (size_t i = 0; i < scenario->devices.size(); ++i) {
      Object object(json, where, script->error());
      int64_t only = -1;
      object.Integer("device", &only);
      if (only >= static_cast<int64_t>(scenario->devices.size())) {
        return object.Fail("device", "there are not so many devices");
      }
      DeviceModel unused;
      const bool hit = only < 0 || static_cast<size_t>(only) == i;
      ReadDevice(&object, hit ? &scenario->devices[i] : &unused);
      object.Close();
    }
  });
}

void ReadStaleHandle(Object* script, Scenario* scenario) {
  std::string stale = "lost";
  script->Text("stale_handle", &stale);
  if (stale == "invalid") scenario->stale_handle = StaleHandle::kInvalid;
  if (stale == "crash") scenario->stale_handle = StaleHandle::kCrash;
  if (stale != "lost" && scenario->stale_handle == StaleHandle::kLost) {
    script->Fail("stale_handle", "must be lost, invalid or crash");
  }
}

void ReadSampleClock(Object* script, Scenario* scenario) {
  std::string clock = "wall";
  script->Text("sample_clock", &clock);
  if (clock == "monotonic") scenario->sample_clock = SampleClock::kMonotonic;
  if (clock == "boottime") scenario->sample_clock = SampleClock::kBoottime;
  if (clock != "wall" && scenario->sample_clock == SampleClock::kWall) {
    script->Fail("sample_clock", "must be wall, monotonic or boottime");
  }
}

void ReadSettings(Object* script, Scenario* scenario) {
  script->Text("driver", &scenario->driver_version);
  scenario->nvml_version =
      std::to_string(kGeneration.cuda_version / 1000) + "." + scenario->driver_version;
  script->Text("nvml", &scenario->nvml_version);
  double nan_ms = 0;
  script->Number("gpm_nan_under_ms", &nan_ms);
  scenario->gpm_nan_under_ns = SecondsToNs(nan_ms / 1e3);
  script->Flag("new_handles_on_init", &scenario->new_handles_on_init);
  script->Flag("enumerate_at_init", &scenario->enumerate_at_init);
  script->Integer("sample_clock_offset_us", &scenario->sample_clock_offset_us);
  ReadSampleClock(script, scenario);
  script->Find("comment");
  ReadStaleHandle(script, scenario);
}

bool ReadRecording(Object* script, const std::string& path, Scenario* scenario, std::string* name) {
  std::string recording;
  script->Text("recording", &recording);
  if (recording.empty()) return true;
  const std::filesystem::path folder = recording;
  const auto base = std::filesystem::path(path).parent_path();
  if (!LoadRecording((base / folder).string(), scenario, script->error())) return false;
  *name = folder.filename().string();
  return true;
}

}  // namespace

bool LoadScript(const std::string& path, Scenario* scenario, std::string* name,
                std::string* error) {
  std::ifstream in(path);
  if (!in) {
    *error = "can't open " + path;
    return false;
  }
  const Json json = Json::parse(in, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) {
    *error = path + ": not JSON";
    return false;
  }
  std::string problem;
  Object script(json, "", &problem);
  if (!ReadRecording(&script, path, scenario, name)) {
    *error = problem;
    return false;
  }
  script.Text("name", name);
  ReadDevices(&script, scenario);
  ReadExtensions(&script, scenario);
  ReadSettings(&script, scenario);
  ReadFaults(&script, scenario);
  script.Close();
  if (problem.empty() && scenario->devices.empty() && script.Find("devices") == nullptr) {
    problem = "needs \"devices\" or \"recording\"";
  }
  if (!problem.empty()) *error = path + ": " + problem;
  return problem.empty();
}

}  // namespace nvml_replay
