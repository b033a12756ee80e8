// SPDX-License-Identifier: Apache-2.0
#include "script_object.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "collect/nvml/abi_codes.h"

namespace nvml_replay {
namespace {

void SetError(std::string* error, const std::string& where, const std::string& why) {
  if (error->empty()) *error = where + ": " + why;
}

}  // namespace

int64_t SecondsToNs(double s) { return static_cast<int64_t>(std::llround(s * 1e9)); }

Object::Object(const Json& json, std::string where, std::string* error)
    : json_(json), where_(std::move(where)), error_(error) {
  if (!json_.is_object()) SetError(error_, where_, "must be an object");
}

const Json* Object::Find(const char* key) {
  known_.emplace_back(key);
  if (!json_.is_object()) return nullptr;
  const auto it = json_.find(key);
  return it == json_.end() ? nullptr : &*it;
}

void Object::Fail(const std::string& key, const std::string& why) {
  SetError(error_, Path(key), why);
}

void Object::Number(const char* key, double* out) {
  const Json* json = Find(key);
  if (json == nullptr) return;
  if (!json->is_number()) return Fail(key, "must be a number");
  *out = json->get<double>();
}

void Object::Integer(const char* key, int64_t* out) {
  const Json* json = Find(key);
  if (json == nullptr) return;
  if (!json->is_number_integer()) return Fail(key, "must be a whole number");
  *out = json->get<int64_t>();
}

void Object::Small(const char* key, int* out) {
  int64_t wide = *out;
  Integer(key, &wide);
  *out = static_cast<int>(wide);
}

void Object::Count(const char* key, uint32_t* out) {
  int64_t wide = *out;
  Integer(key, &wide);
  if (wide < 0 || wide > UINT32_MAX) return Fail(key, "must be a whole number from 0");
  *out = static_cast<uint32_t>(wide);
}

void Object::Bytes(const char* key, uint64_t* out) {
  const Json* json = Find(key);
  if (json == nullptr) return;
  if (!json->is_number_unsigned()) return Fail(key, "must be a whole number from 0");
  *out = json->get<uint64_t>();
}

void Object::Text(const char* key, std::string* out) {
  const Json* json = Find(key);
  if (json == nullptr) return;
  if (!json->is_string()) return Fail(key, "must be a text");
  *out = json->get<std::string>();
}

void Object::Flag(const char* key, bool* out) {
  const Json* json = Find(key);
  if (json == nullptr) return;
  if (!json->is_boolean()) return Fail(key, "must be true or false");
  *out = json->get<bool>();
}

void Object::SecondsToNs(const char* key, int64_t* out) {
  double seconds = 0;
  const Json* json = Find(key);
  if (json == nullptr) return;
  Number(key, &seconds);
  *out = nvml_replay::SecondsToNs(seconds);
}

void Object::Close() {
  if (!json_.is_object()) return;
  for (const auto& [key, value] : json_.items()) {
    if (std::find(known_.begin(), known_.end(), key) != known_.end()) continue;
    std::string known;
    for (const std::string& name : known_) known += (known.empty() ? "" : ", ") + name;
    return Fail(key, "unknown key; known here: " + known);
  }
}

Reading ReadReading(const Json& json, const std::string& where, std::string* error) {
  if (json.is_number()) return {json.get<double>(), 0};
  if (json.is_null()) return {0, kNvmlNotSupported};
  if (json.is_string()) {
    const auto text = json.get<std::string>();
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (text.empty() || *end != '\0') SetError(error, where, "'" + text + "' is not a number");
    return {value, 0};
  }
  Reading reading{0, kNvmlNotSupported};
  if (!json.is_object()) {
    SetError(error, where, "must be a number, \"NaN\", null or {\"return\": code}");
    return reading;
  }
  Object object(json, where, error);
  object.Small("return", &reading.code);
  object.Close();
  return reading;
}

namespace {

void ReadRamp(const Json& json, const std::string& where, std::string* error, Track* track) {
  Object object(json, where, error);
  double start = 0;
  object.Number("start", &start);
  object.Number("per_s", &track->per_s);
  object.Number("wrap", &track->wrap);
  object.Each("resets_at_s", [&](const Json& at, const std::string& path) {
    if (!at.is_number()) return SetError(error, path, "must be a number");
    track->resets_ns.push_back(SecondsToNs(at.get<double>()));
  });
  object.Close();
  track->points.push_back({0, {start, 0}});
}

void ReadWave(const Json& json, const std::string& where, std::string* error, Track* track) {
  Object object(json, where, error);
  double low = 0;
  object.Number("low", &low);
  object.Number("high", &track->wave_high);
  object.Number("duty", &track->wave_duty);
  object.SecondsToNs("period_s", &track->wave_ns);
  object.Close();
  if (track->wave_ns <= 0) SetError(error, where, "needs a period_s above 0");
  track->points.push_back({0, {low, 0}});
}

void ReadPoints(const Json& json, const std::string& where, std::string* error, Track* track) {
  int64_t last_ns = INT64_MIN;
  for (size_t i = 0; i < json.size(); ++i) {
    const std::string path = where + "[" + std::to_string(i) + "]";
    const Json& point = json[i];
    if (!point.is_array() || point.size() != 2 || !point[0].is_number()) {
      return SetError(error, path, "must be [seconds, value]");
    }
    const int64_t t_ns = SecondsToNs(point[0].get<double>());
    if (t_ns < last_ns) return SetError(error, path, "is earlier than the point before it");
    last_ns = t_ns;
    track->points.push_back({t_ns, ReadReading(point[1], path, error)});
  }
  if (json.empty()) SetError(error, where, "needs at least one point");
}

}  // namespace

Track ReadTrack(const Json& json, const std::string& where, std::string* error) {
  Track track;
  if (json.is_array()) {
    ReadPoints(json, where, error, &track);
  } else if (json.is_object() && json.contains("high")) {
    ReadWave(json, where, error, &track);
  } else if (json.is_object() && !json.contains("return")) {
    ReadRamp(json, where, error, &track);
  } else {
    track.points.push_back({0, ReadReading(json, where, error)});
  }
  return track;
}

}  // namespace nvml_replay
