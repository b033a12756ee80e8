// SPDX-License-Identifier: Apache-2.0
// The common part of NVML sources: one function that reads one device, called for each of them.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "collect/nvml/series_group.h"

namespace epochmeter::collect::nvml {

// Everything a reader needs; lives for one call.
struct Reading {
  const Api& api;
  Session& session;
  SeriesGroup& group;
  Device& device;
  model::Samples& out;

  // Makes the call if it is due and gives its code to the group; true when it succeeded.
  template <typename Function, typename... Args>
  bool Try(size_t call, Function function, Args... args) const {
    if (!group.Due(device, call, out.t_ns)) return false;
    const NvmlReturn rc =
        function != nullptr ? function(device.handle, args...) : NvmlReturn{kNvmlFunctionNotFound};
    return group.Took(device, call, rc, out.t_ns);
  }
  void PutInRange(size_t metric, double value, double low, double high) const {
    group.PutInRange(device, metric, value, low, high, out);
  }
};

using ReadDevice = void (*)(const Reading& reading);

// A source without state of its own. Fails when NVML can't be opened.
base::Result<std::unique_ptr<Source>> MakeDeviceSource(const SourceContext& context,
                                                       std::span<const model::MetricDef> metrics,
                                                       std::span<const CallDef> calls, Tier tier,
                                                       ReadDevice read);

// Opens the context's session; every Make begins so.
base::Result<> OpenSession(const SourceContext& context);

// A source that keeps a State for each device. With a new handle State::NewHandle is called where
// there is one, else the state begins anew. Its series begin with their first value or reason.
template <typename State>
class StatefulSource final : public Source {
 public:
  using ReadState = void (*)(const Reading& reading, State& state);
  StatefulSource(const SourceContext& context, const GroupDef& def, ReadState read)
      : session_(*context.nvml), group_(context, def), read_(read) {}

  size_t parts() const override { return session_.devices().size(); }
  base::Result<> Sample(model::Samples& out) override { return SampleTurn(out, {}); }
  base::Result<> SampleTurn(model::Samples& out, const Turn& turn) override {
    session_.Maintain(out.t_ns);
    states_.resize(session_.devices().size());
    for (size_t i = 0; i < states_.size(); ++i) {
      Device& device = session_.devices()[i];
      if (device.excluded || !turn.Has(i)) continue;
      if (device.lost) {
        group_.TellLost(device, out.t_ns);
        continue;
      }
      if (states_[i].generation != device.generation) {
        states_[i].generation = device.generation;
        if constexpr (requires(State state) { state.NewHandle(); }) {
          states_[i].state.NewHandle();
        } else {
          states_[i].state = State{};
        }
      }
      read_({session_.api(), session_, group_, device, out}, states_[i].state);
    }
    return {};
  }

 private:
  struct Kept {
    uint32_t generation = 0;
    State state{};
  };
  Session& session_;
  SeriesGroup group_;
  ReadState read_;
  std::vector<Kept> states_;  // by the device's place in the session
};

// `least_period_ns` is the distance of samples where the tier's is shorter; the reader holds it.
template <typename State>
base::Result<std::unique_ptr<Source>> MakeStatefulSource(const SourceContext& context,
                                                         std::span<const model::MetricDef> metrics,
                                                         std::span<const CallDef> calls, Tier tier,
                                                         void (*read)(const Reading&, State&),
                                                         int64_t least_period_ns = 0) {
  EPM_TRY(OpenSession(context));
  const GroupDef def{.metrics = metrics,
                     .calls = calls,
                     .period_ns = std::max(TierPeriodNs(tier, context.tick_ns), least_period_ns),
                     .lazy = true};
  return std::unique_ptr<Source>(std::make_unique<StatefulSource<State>>(context, def, read));
}

// A field of nvmlDeviceGetFieldValues and the call entry that holds its state.
struct FieldRow {
  uint32_t field;
  size_t call;
  uint32_t scope = 0;
};
struct FieldReading {
  size_t row;
  double value;
};
// Reads the fields that are due in one batch; gives those that succeeded, in order. Values are
// converted by their own value type. A field that has no time stamp was not filled: absent.
std::vector<FieldReading> ReadFields(const Reading& reading, std::span<const FieldRow> rows);

// One field, to find out whether the driver has it: nothing is told or kept.
NvmlReturn ProbeField(const Reading& reading, uint32_t field, uint32_t scope = 0);

// The number in a successful field value; nothing for a value type that is not known.
std::optional<double> FieldNumber(const NvmlFieldValue& field);

}  // namespace epochmeter::collect::nvml
