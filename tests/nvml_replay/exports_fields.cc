// SPDX-License-Identifier: Apache-2.0
// Exported call: batches of fields.
#include <algorithm>
#include <cmath>

#include "call.h"
#include "clock.h"
#include "fields.h"
#include "generation.h"

namespace nvml_replay {
namespace {

// Sums over links are shared out evenly when the script gives no value of the link's own. With
// NVLink 5 the counters answer only for all links together.
Reading ReadLink(const Call& call, const Field& field, uint32_t scope) {
  const std::string own = Part(field.key, scope);
  if (scope == UINT32_MAX) return call.Read(field.key);
  if (call.player().HasKey(call.unit(), own)) return call.Read(own);
  const auto links = static_cast<double>(call.U64Or("nvlink_links", 0));
  const bool version5 = call.U64Or("nvlink_version", 0) >= 5;
  Reading all = call.Read(field.key);
  if (all.code != 0 || scope >= links) return {0, kNvmlNotSupported};
  if (field.scope == FieldScope::kLink) return all;
  if (version5) return {0, kNvmlNotSupported};
  all.value = std::floor(all.value / links);
  return all;
}

// What the id meant in 12.9 and 13.0 drivers moved away later, so the number alone says nothing:
// a script gives ids from 251 on by "field:ID" and means the driver it plays.
Reading ReadId(const Call& call, const NvmlFieldValue& value, const Field* field) {
  const std::string raw = "field:" + std::to_string(value.field_id);
  const std::string scoped = Part(raw, value.scope_id);
  if (call.player().HasKey(call.unit(), scoped)) return call.Read(scoped);
  if (field == nullptr || call.player().HasKey(call.unit(), raw)) return call.Read(raw);
  if (field->since > kGeneration.branch) return {0, kNvmlNotSupported};
  const bool old_link_errors = field->id >= 161 && field->id <= 163;
  if (old_link_errors && call.U64Or("nvlink_version", 0) >= 5) return {0, kNvmlNotSupported};
  const bool remapped = field->id >= 142 && field->id <= 145;
  if (remapped && call.player().MigEnabled(call.unit().device)) return {0, kNvmlNotSupported};
  switch (field->scope) {
    case FieldScope::kLink:
    case FieldScope::kLinkSum:
      return ReadLink(call, *field, value.scope_id);
    case FieldScope::kPower:
      return call.Read(value.scope_id == 0 ? field->key : Part(field->key, value.scope_id));
    default:
      return call.Read(field->key);
  }
}

void Store(double value, uint32_t type, NvmlFieldValue* field) {
  field->value_type = type;
  switch (type) {
    case kNvmlValueDouble:
      field->value.dbl = value;
      break;
    case kNvmlValueSignedInt:
      field->value.i32 = static_cast<int32_t>(std::clamp<double>(value, INT32_MIN, INT32_MAX));
      break;
    case kNvmlValueUint:
      field->value.u64 = std::min<uint64_t>(ToU64(value), UINT32_MAX);
      break;
    default:
      field->value.u64 = ToU64(value);
  }
}

// As drivers do: the value slot stays untouched unless the field succeeds. With ECC off the error
// counts succeed and leave the slot, its type and the time stamp untouched all the same.
void ReadField(const Call& call, NvmlFieldValue* out) {
  const std::string name = "field:" + std::to_string(out->field_id);
  const int64_t begin_us = WallMicros();
  out->nvml_return = call.player().Enter(name, static_cast<int>(call.unit().device));
  if (out->nvml_return != kNvmlSuccess) return;
  const bool ecc_count = out->field_id >= 3 && out->field_id <= 28;
  if (ecc_count && call.U64Or("ecc_mode", 1) == 0) return;
  const Field* field = FindField(out->field_id);
  const Reading reading = ReadId(call, *out, field);
  out->nvml_return = reading.code;
  if (reading.code != 0) return;
  const bool whole = std::floor(reading.value) == reading.value;
  const uint32_t unknown_type = whole ? kNvmlValueUlonglong : kNvmlValueDouble;
  Store(reading.value, field != nullptr ? field->type : unknown_type, out);
  out->timestamp_us = WallMicros();
  out->latency_us = out->timestamp_us - begin_us;
}

}  // namespace
}  // namespace nvml_replay

using nvml_replay::Call;

EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetFieldValues(NvmlDevice device, int32_t count,
                                                      NvmlFieldValue* fields) {
  const Call call("nvmlDeviceGetFieldValues", device);
  if (call.rc() != kNvmlSuccess) return call.rc();
  if (count <= 0 || fields == nullptr) return kNvmlInvalidArgument;
  for (int32_t i = 0; i < count; ++i) nvml_replay::ReadField(call, &fields[i]);
  return kNvmlSuccess;
}
