// SPDX-License-Identifier: Apache-2.0
#include "collect/nvml/series_group.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"

namespace epochmeter::collect::nvml {
namespace {

using model::SeriesCondition;

// Between two tries of a call that fails.
constexpr int64_t kWaitMaxNs = 60 * base::kNsPerSecond;
// Between two losses that count the dropped values of one metric.
constexpr int64_t kTellAgainNs = 60 * base::kNsPerSecond;

// The answer will not change while the handle is the same.
bool Latches(NvmlReturn rc) {
  return rc == kNvmlNotSupported || rc == kNvmlFunctionNotFound ||
         rc == kNvmlArgumentVersionMismatch;
}

SeriesCondition ConditionOf(NvmlReturn rc) {
  if (Latches(rc)) return SeriesCondition::kNotSupported;
  if (rc == kNvmlNoPermission) return SeriesCondition::kNoPermission;
  if (rc == kNvmlNotFound) return SeriesCondition::kNotFound;
  if (rc == kNvmlGpuIsLost) return SeriesCondition::kDeviceLost;
  return SeriesCondition::kError;
}

}  // namespace

SeriesGroup::SeriesGroup(const SourceContext& context, const GroupDef& def)
    : session_(*context.nvml), registry_(context.registry), sink_(context.sink), def_(def) {
  for (const Device& device : devices()) {
    if (!device.excluded) StateOf(device);
  }
}

const std::vector<Device>& SeriesGroup::devices() const {
  return def_.devices != nullptr ? *def_.devices : session_.devices();
}

// What was dropped and not told yet; the devices must still be there.
SeriesGroup::~SeriesGroup() {
  for (size_t i = 0; i < states_.size(); ++i) {
    if (states_[i] == nullptr) continue;
    for (size_t metric = 0; metric < def_.metrics.size(); ++metric) {
      Dropped& dropped = states_[i]->dropped[metric];
      if (dropped.untold > 0) {
        TellDropped(devices()[i], metric, dropped, base::MonotonicNs());
      }
    }
  }
}

SeriesGroup::PerDevice& SeriesGroup::StateOf(const Device& device) {
  const auto place = static_cast<size_t>(&device - devices().data());
  if (states_.size() <= place) states_.resize(place + 1);
  if (states_[place] == nullptr) {
    auto fresh = std::make_unique<PerDevice>();
    fresh->generation = device.generation;
    fresh->calls.resize(def_.calls.size());
    fresh->dropped.resize(def_.metrics.size());
    fresh->entity = device.entity;
    fresh->series.resize(def_.metrics.size());
    for (size_t i = 0; !def_.lazy && i < def_.metrics.size(); ++i) SeriesOf(*fresh, i);
    states_[place] = std::move(fresh);
  }
  PerDevice& state = *states_[place];
  if (state.generation != device.generation) {
    state.generation = device.generation;
    for (CallState& call : state.calls) {
      call.latched = false;
      call.retry_at_ns = 0;
      call.wait_ns = 0;
    }
  }
  return state;
}

model::SeriesId SeriesGroup::SeriesOf(PerDevice& state, size_t metric) {
  std::optional<model::SeriesId>& series = state.series[metric];
  if (!series) {
    series = registry_.AddSeries(state.entity, def_.metrics[metric], def_.period_ns);
  }
  return *series;
}

// Writes the change of a call's condition to each of its series; nothing when there is none.
void SeriesGroup::SetCondition(PerDevice& state, size_t call, SeriesCondition condition,
                               const std::string& detail, int64_t t_ns) {
  CallState& known = state.calls[call];
  if (known.condition == condition && known.detail == detail) return;
  known.condition = condition;
  known.detail = detail;
  const CallDef& def = def_.calls[call];
  for (size_t metric = def.first_metric; metric < def.first_metric + def.metric_count; ++metric) {
    if (condition == SeriesCondition::kOk && IsHeldBack(state, metric)) continue;
    sink_.Write(model::SeriesState{
        .t_ns = t_ns, .series = SeriesOf(state, metric), .condition = condition, .detail = detail});
  }
}

bool SeriesGroup::Feeds(size_t call, size_t metric) const {
  const CallDef& def = def_.calls[call];
  return metric >= def.first_metric && metric - def.first_metric < def.metric_count;
}

// Another call that feeds the metric fails: its series is not well because this call is.
bool SeriesGroup::IsHeldBack(const PerDevice& state, size_t metric) const {
  for (size_t call = 0; call < def_.calls.size(); ++call) {
    const bool fine = state.calls[call].condition == SeriesCondition::kOk;
    if (Feeds(call, metric) && !fine) return true;
  }
  return false;
}

bool SeriesGroup::Due(const Device& device, size_t call, int64_t t_ns) {
  if (device.excluded) return false;
  PerDevice& state = StateOf(device);
  if (device.lost) {
    SetCondition(state, call, device.lost_condition, device.lost_detail, t_ns);
    return false;
  }
  return !state.calls[call].latched && t_ns >= state.calls[call].retry_at_ns;
}

bool SeriesGroup::Took(Device& device, size_t call, NvmlReturn rc, int64_t t_ns) {
  session_.Note(device, rc, t_ns);
  PerDevice& state = StateOf(device);
  CallState& known = state.calls[call];
  if (rc == kNvmlSuccess) {
    known.wait_ns = 0;
    return true;
  }
  Failed(device, call, rc, t_ns);
  return false;
}

void SeriesGroup::Failed(const Device& device, size_t call, NvmlReturn rc, int64_t t_ns) {
  CallState& known = StateOf(device).calls[call];
  known.latched = Latches(rc);
  const bool slow = rc == kNvmlNoPermission || rc == kNvmlLibRmVersionMismatch;
  known.wait_ns = slow ? kWaitMaxNs : std::clamp(2 * known.wait_ns, base::kNsPerSecond, kWaitMaxNs);
  known.retry_at_ns = t_ns + known.wait_ns;
  if (device.lost) {
    SetCondition(StateOf(device), call, device.lost_condition, device.lost_detail, t_ns);
    return;
  }
  const char* mig = known.latched && device.mig ? "; MIG is on, see its instances" : "";
  SetCondition(
      StateOf(device), call, ConditionOf(rc),
      fmt::format("{}: {}{}", def_.calls[call].name, session_.library().ErrorText(rc), mig), t_ns);
}

// Only of series that began: what a device never had, its loss doesn't take.
void SeriesGroup::TellLost(const Device& device, int64_t t_ns) {
  PerDevice& state = StateOf(device);
  for (size_t call = 0; call < def_.calls.size(); ++call) {
    if (!state.series[def_.calls[call].first_metric]) continue;
    SetCondition(state, call, device.lost_condition, device.lost_detail, t_ns);
  }
}

void SeriesGroup::Unsupported(const Device& device, size_t call, const std::string& reason,
                              int64_t t_ns) {
  PerDevice& state = StateOf(device);
  state.calls[call].latched = true;
  SetCondition(state, call, SeriesCondition::kNotSupported, reason, t_ns);
}

void SeriesGroup::Absent(const Device& device, size_t call, const std::string& reason,
                         int64_t t_ns) {
  SetCondition(StateOf(device), call, SeriesCondition::kNotFound, reason, t_ns);
}

void SeriesGroup::Put(const Device& device, size_t metric, double value, model::Samples& out) {
  PerDevice& state = StateOf(device);
  for (size_t call = 0; call < def_.calls.size(); ++call) {
    if (Feeds(call, metric)) SetCondition(state, call, SeriesCondition::kOk, "", out.t_ns);
  }
  out.values.push_back({.series = SeriesOf(state, metric), .value = value});
}

void SeriesGroup::PutInRange(const Device& device, size_t metric, double value, double low,
                             double high, model::Samples& out) {
  if (value >= low && value <= high) {
    Put(device, metric, value, out);
  } else {
    Drop(device, metric, fmt::format("{:.6g}", value), out.t_ns);
  }
}

void SeriesGroup::Drop(const Device& device, size_t metric, const std::string& shown,
                       int64_t t_ns) {
  Dropped& dropped = StateOf(device).dropped[metric];
  const bool first = dropped.told_at_ns == 0;
  ++dropped.untold;
  dropped.shown = shown;
  if (first || t_ns - dropped.told_at_ns >= kTellAgainNs) {
    TellDropped(device, metric, dropped, t_ns);
  }
}

void SeriesGroup::NoteImplausible(const Device& device, size_t metric, const std::string& why,
                                  int64_t t_ns) {
  // A contradiction lasts: told each ten minutes, not with each reading.
  constexpr int64_t kImplausibleAgainNs = 600 * base::kNsPerSecond;
  int64_t& told_ns = StateOf(device).dropped[metric].implausible_told_ns;
  if (told_ns != 0 && t_ns - told_ns < kImplausibleAgainNs) return;
  told_ns = t_ns;
  sink_.Write(model::Loss{
      .t_ns = t_ns,
      .severity = model::LossSeverity::kInfo,
      .kind = "value.implausible",
      .count = 1,
      .detail = fmt::format("{} on {}: {}", def_.metrics[metric].name, device.uuid, why),
      .help = "The values are recorded as the driver gave them; do not trust them."});
}

void SeriesGroup::TellDropped(const Device& device, size_t metric, Dropped& dropped, int64_t t_ns) {
  sink_.Write(model::Loss{
      .t_ns = t_ns,
      .severity = model::LossSeverity::kDataLoss,
      .kind = "value.out_of_range",
      .count = dropped.untold,
      .detail =
          fmt::format("values of {}{}{} on {}; last {} {}", def_.metrics[metric].name,
                      def_.metrics[metric].label.empty() ? "" : " ", def_.metrics[metric].label,
                      device.uuid, dropped.shown, def_.metrics[metric].unit),
      .help = "The driver gave an impossible number; a newer driver may not."});
  dropped.untold = 0;
  dropped.told_at_ns = t_ns;
}

}  // namespace epochmeter::collect::nvml
