// SPDX-License-Identifier: Apache-2.0
#include "collect/nvml/device_source.h"

#include <optional>

namespace epochmeter::collect::nvml {
namespace {

class DeviceSource final : public Source {
 public:
  DeviceSource(const SourceContext& context, const GroupDef& def, ReadDevice read)
      : session_(*context.nvml), group_(context, def), read_(read) {}

  size_t parts() const override { return session_.devices().size(); }
  base::Result<> Sample(model::Samples& out) override { return SampleTurn(out, {}); }
  base::Result<> SampleTurn(model::Samples& out, const Turn& turn) override {
    session_.Maintain(out.t_ns);
    for (size_t i = 0; i < session_.devices().size(); ++i) {
      if (turn.Has(i)) read_({session_.api(), session_, group_, session_.devices()[i], out});
    }
    return {};
  }

 private:
  Session& session_;
  SeriesGroup group_;
  ReadDevice read_;
};

}  // namespace

base::Result<> OpenSession(const SourceContext& context) {
  EPM_CHECK(context.nvml != nullptr) << "NVML sources need a session";
  return context.nvml->Open(context);
}

base::Result<std::unique_ptr<Source>> MakeDeviceSource(const SourceContext& context,
                                                       std::span<const model::MetricDef> metrics,
                                                       std::span<const CallDef> calls, Tier tier,
                                                       ReadDevice read) {
  EPM_TRY(OpenSession(context));
  const GroupDef def{
      .metrics = metrics, .calls = calls, .period_ns = TierPeriodNs(tier, context.tick_ns)};
  return std::unique_ptr<Source>(std::make_unique<DeviceSource>(context, def, read));
}

std::optional<double> FieldNumber(const NvmlFieldValue& field) {
  switch (field.value_type) {
    case kNvmlValueDouble:
      return field.value.dbl;
    case kNvmlValueUint:
      return field.value.u32;
    case kNvmlValueUlong:
      return static_cast<double>(field.value.ulong_value);
    case kNvmlValueUlonglong:
      return static_cast<double>(field.value.u64);
    case kNvmlValueSignedLonglong:
      return static_cast<double>(field.value.i64);
    case kNvmlValueSignedInt:
      return field.value.i32;
    case kNvmlValueUshort:
      return field.value.u16;
    default:
      return std::nullopt;
  }
}

NvmlReturn ProbeField(const Reading& reading, uint32_t id, uint32_t scope) {
  NvmlFieldValue field{};
  field.field_id = id;
  field.scope_id = scope;
  if (reading.api.field_values == nullptr) return kNvmlFunctionNotFound;
  const NvmlReturn rc = reading.api.field_values(reading.device.handle, 1, &field);
  if (rc != kNvmlSuccess || field.nvml_return != kNvmlSuccess) {
    return rc != kNvmlSuccess ? rc : field.nvml_return;
  }
  return field.timestamp_us == 0 ? NvmlReturn{kNvmlNotSupported} : NvmlReturn{kNvmlSuccess};
}

std::vector<FieldReading> ReadFields(const Reading& reading, std::span<const FieldRow> rows) {
  std::vector<NvmlFieldValue> fields;
  std::vector<size_t> asked;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (!reading.group.Due(reading.device, rows[i].call, reading.out.t_ns)) continue;
    NvmlFieldValue field{};  // drivers leave the value slot of some failing fields untouched
    field.field_id = rows[i].field;
    field.scope_id = rows[i].scope;
    fields.push_back(field);
    asked.push_back(i);
  }
  std::vector<FieldReading> read;
  if (fields.empty()) return read;
  const auto call = reading.api.field_values;
  const NvmlReturn batch =
      call != nullptr
          ? call(reading.device.handle, static_cast<int32_t>(fields.size()), fields.data())
          : NvmlReturn{kNvmlFunctionNotFound};
  for (size_t i = 0; i < fields.size(); ++i) {
    NvmlReturn rc = batch != kNvmlSuccess ? batch : fields[i].nvml_return;
    const bool untouched = rc == kNvmlSuccess && fields[i].timestamp_us == 0;
    if (untouched) rc = kNvmlNotSupported;  // some drivers skip a field and leave its code at 0
    const size_t state = rows[asked[i]].call;
    if (!reading.group.Took(reading.device, state, rc, reading.out.t_ns)) continue;
    if (const auto value = FieldNumber(fields[i])) {
      read.push_back({asked[i], *value});
    } else {
      reading.group.Absent(reading.device, state, "the field's value type is not known",
                           reading.out.t_ns);
    }
  }
  return read;
}

}  // namespace epochmeter::collect::nvml
