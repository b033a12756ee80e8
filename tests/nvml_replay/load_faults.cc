// SPDX-License-Identifier: Apache-2.0
#include "load_faults.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <string_view>

#include "keys.h"
#include "misbehave.h"
#include "symbols.h"

namespace nvml_replay {
namespace {

// "*", a name, the beginning of names with a trailing *, field:ID or samples:TYPE.
bool KnownFunction(const std::string& name) {
  for (const std::string_view part : {"field:", "samples:"}) {
    if (name.rfind(part, 0) == 0) return name.size() > part.size();
  }
  const bool open = !name.empty() && name.back() == '*';
  const std::string_view begin = std::string_view(name).substr(0, name.size() - (open ? 1 : 0));
  return std::any_of(kSymbols.begin(), kSymbols.end(), [&](const Symbol& symbol) {
    return open ? symbol.name.substr(0, begin.size()) == begin : symbol.name == begin;
  });
}

void CheckFunction(Object* object, const std::string& key, const std::string& name) {
  if (KnownFunction(name)) return;
  object->Fail(key,
               "'" + name + "' is no call of the replay library (tests/nvml_replay/symbols.txt)");
}

// "hang": true lasts as long as the fault does, whenever the call came.
void ReadHang(Object* object, Fault* fault) {
  object->Number("hang_s", &fault->hang_s);
  bool until_end = false;
  object->Flag("hang", &until_end);
  if (until_end) fault->hang_s = std::numeric_limits<double>::infinity();
}

// true is a SIGSEGV.
void ReadCrash(Object* object, Fault* fault) {
  const Json* json = object->Find("crash");
  if (json == nullptr) return;
  if (json->is_boolean()) {
    fault->crash = json->get<bool>() ? "segv" : "";
  } else if (json->is_string()) {
    fault->crash = json->get<std::string>();
  }
  const bool known = json->is_boolean() || IsDeath(fault->crash);
  if (!known) object->Fail("crash", "must be true, segv, abort, exit or double_free");
}

Fault ReadFault(const Json& json, const std::string& where, std::string* error) {
  Fault fault;
  Object object(json, where, error);
  object.Text("function", &fault.function);
  CheckFunction(&object, "function", fault.function);
  object.Small("device", &fault.device);
  object.SecondsToNs("at_s", &fault.at_ns);
  object.SecondsToNs("for_s", &fault.for_ns);
  object.Integer("after", &fault.after);
  object.Integer("times", &fault.times);
  object.Small("return", &fault.return_code);
  ReadHang(&object, &fault);
  ReadCrash(&object, &fault);
  object.Small("garbage", &fault.garbage);
  object.Flag("corrupt", &fault.corrupt);
  object.Find("comment");
  if (const Json* values = object.Find("values")) {
    if (!values->is_object()) object.Fail("values", "must be an object");
    for (const auto& [name, value] : values->items()) {
      if (!KnownKey(name)) object.Fail("values." + name, UnknownKeyHelp());
      fault.values[name] = ReadReading(value, object.Path("values." + name), error);
    }
  }
  object.Close();
  if (!fault.Acts() && fault.values.empty()) {
    object.Fail("", "does nothing: give crash, hang_s, hang, garbage, corrupt, return or values");
  }
  return fault;
}

struct EventName {
  std::string_view name;
  uint64_t type;
};

constexpr std::array<EventName, 13> kEventNames = {{
    {"ecc_single", 0x1},
    {"ecc_double", 0x2},
    {"pstate", 0x4},
    {"xid", 0x8},
    {"clock", 0x10},
    {"power_source", 0x80},
    {"ecc_storm", 0x200},
    {"dram_retirement", 0x400},
    {"dram_retirement_failure", 0x800},
    {"poison", 0x1000},
    {"poison_fatal", 0x2000},
    {"unavailable", 0x4000},
    {"recovery_action", 0x8000},
}};
constexpr std::array<EventName, 2> kSystemEventNames = {{{"unbind", 0x1}, {"bind", 0x2}}};

template <typename Names>
void ReadType(Object* object, const Names& names, uint64_t* type) {
  const Json* json = object->Find("type");
  if (json == nullptr) return;
  if (json->is_number_unsigned()) {
    *type = json->get<uint64_t>();
    return;
  }
  std::string text;
  object->Text("type", &text);
  std::string known;
  for (const EventName& row : names) {
    if (row.name == text) *type = row.type;
    if (row.name == text) return;
    known += (known.empty() ? "" : ", ") + std::string(row.name);
  }
  object->Fail("type", "must be a number or one of " + known);
}

template <typename Names>
EventModel ReadEvent(const Json& json, const std::string& where, std::string* error,
                     const Names& names, uint64_t type) {
  EventModel event;
  event.type = type;
  Object object(json, where, error);
  uint32_t device = 0;
  object.SecondsToNs("at_s", &event.at_ns);
  object.Count("device", &device);
  event.device = device;
  ReadType(&object, names, &event.type);
  object.Bytes("data", &event.data);
  object.Small("gi", &event.gpu_instance);
  object.Small("ci", &event.compute_instance);
  object.Close();
  return event;
}

template <typename Names>
void ReadEvents(Object* script, const char* key, const Names& names, uint64_t type,
                std::vector<EventModel>* out) {
  script->Each(key, [&](const Json& json, const std::string& where) {
    out->push_back(ReadEvent(json, where, script->error(), names, type));
  });
  std::stable_sort(out->begin(), out->end(),
                   [](const EventModel& a, const EventModel& b) { return a.at_ns < b.at_ns; });
}

void ReadLatency(Object* script, Scenario* scenario) {
  const Json* json = script->Find("latency_us");
  if (json == nullptr) return;
  if (!json->is_object()) return script->Fail("latency_us", "must be an object");
  for (const auto& [name, value] : json->items()) {
    CheckFunction(script, "latency_us." + name, name);
    if (!value.is_number()) return script->Fail("latency_us." + name, "must be microseconds");
    scenario->latency_us[name] = static_cast<int64_t>(value.get<double>());
  }
}

}  // namespace

void ReadFaults(Object* script, Scenario* scenario) {
  script->Each("faults", [&](const Json& json, const std::string& where) {
    scenario->faults.push_back(ReadFault(json, where, script->error()));
  });
  ReadEvents(script, "events", kEventNames, kEventNames[3].type, &scenario->events);
  ReadEvents(script, "system_events", kSystemEventNames, kSystemEventNames[0].type,
             &scenario->system_events);
  ReadLatency(script, scenario);
}

}  // namespace nvml_replay
