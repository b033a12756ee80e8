// SPDX-License-Identifier: Apache-2.0
// A strict view of one JSON object of a script. Each key that is asked for is known; Close() makes
// every other key an error that names it, so that a typing mistake can't pass silently. The first
// error of a whole script wins; reading goes on after it and is then without meaning.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "track.h"

namespace nvml_replay {

using Json = nlohmann::json;

class Object {
 public:
  // `where` names the object in errors, as devices[0].mig does.
  Object(const Json& json, std::string where, std::string* error);

  // Null when the key is absent.
  const Json* Find(const char* key);
  // Each leaves *out alone when the key is absent.
  void Number(const char* key, double* out);
  void Integer(const char* key, int64_t* out);
  void Small(const char* key, int* out);
  void Count(const char* key, uint32_t* out);
  void Bytes(const char* key, uint64_t* out);
  void Text(const char* key, std::string* out);
  void Flag(const char* key, bool* out);
  void SecondsToNs(const char* key, int64_t* out);
  // Calls on_item(item, where) for each element of an array, or once for a single object.
  template <typename OnItem>
  void Each(const char* key, OnItem on_item) {
    const Json* list = Find(key);
    if (list == nullptr) return;
    if (!list->is_array()) return on_item(*list, Path(key));
    for (size_t i = 0; i < list->size(); ++i) {
      on_item((*list)[i], Path(key) + "[" + std::to_string(i) + "]");
    }
  }

  void Close();
  std::string Path(const std::string& key) const {
    return where_.empty() ? key : where_ + "." + key;
  }
  void Fail(const std::string& key, const std::string& why);
  std::string* error() const { return error_; }
  const Json& json() const { return json_; }

 private:
  const Json& json_;
  std::string where_;
  std::string* error_;
  std::vector<std::string> known_;
};

// What a value may be: a number, "NaN" or another word strtod reads, null (NOT_SUPPORTED) or
// {"return": code}.
Reading ReadReading(const Json& json, const std::string& where, std::string* error);
// A reading, [[t_s, reading], ...], a counter {"start", "per_s", "resets_at_s", "wrap"} or a square
// wave {"low", "high", "period_s", "duty"}.
Track ReadTrack(const Json& json, const std::string& where, std::string* error);

int64_t SecondsToNs(double s);

}  // namespace nvml_replay
