// SPDX-License-Identifier: Apache-2.0
// GPM: how much of the GPU's parts was busy between two samples; Hopper and newer. 38 us for a
// sample and 1.9 ms for the metrics of one device.
#include <algorithm>
#include <memory>
#include <vector>

#include "collect/nvml/gpm_reader.h"
#include "collect/nvml/nvml_sources.h"

namespace epochmeter::collect::nvml {
namespace {

constexpr auto kCalls = [] {
  std::array<CallDef, kGpmCount + 1> calls{};
  FillGpmCalls(calls.data(), 0);
  return calls;
}();

// Readings in a row in which GPM shows nothing and utilisation everything, until that is said.
constexpr int kContradictions = 3;
constexpr uint32_t kBusyPercent = 90;

class GpmSource final : public Source {
 public:
  explicit GpmSource(const SourceContext& context)
      : session_(*context.nvml),
        monotonic_ns_(context.env.monotonic_ns),
        group_(context, {.metrics = kGpmMetrics,
                         .calls = kCalls,
                         .period_ns = std::max(context.tick_ns, kGpmLeastPeriodNs)}),
        request_(std::make_unique<NvmlGpmMetricsGet>()) {}

  ~GpmSource() override {
    for (Kept& kept : kept_) kept.reader.Free(session_.api());
  }

  size_t parts() const override { return session_.devices().size(); }
  base::Result<> Sample(model::Samples& out) override { return SampleTurn(out, {}); }
  base::Result<> SampleTurn(model::Samples& out, const Turn& turn) override {
    session_.Maintain(out.t_ns);
    while (kept_.size() < session_.devices().size()) {
      kept_.push_back({.reader = GpmReader(monotonic_ns_, 0, 0), .contradictions = 0});
    }
    for (size_t i = 0; i < kept_.size(); ++i) {
      if (!turn.Has(i)) continue;
      const Reading reading{session_.api(), session_, group_, session_.devices()[i], out};
      if (kept_[i].reader.Sample(reading, {}, *request_)) CrossCheck(reading, kept_[i]);
    }
    return {};
  }

 private:
  struct Kept {
    GpmReader reader;
    int contradictions;
  };

  // A GPU that is fully utilised and has no active engine can't be: after some XIDs the counters
  // are dead, and after a suspend utilisation may stick at 100 %. Said, not altered.
  static void CrossCheck(const Reading& reading, Kept& kept) {
    NvmlUtilization percent{};
    const bool idle =
        kept.reader.Last(kGpmEngineActive) == 0.0 && kept.reader.Last(kGpmSmActive) == 0.0;
    const auto utilization = reading.api.utilization;
    const bool busy = idle && utilization != nullptr &&
                      utilization(reading.device.handle, &percent) == kNvmlSuccess &&
                      percent.gpu >= kBusyPercent;
    kept.contradictions = busy ? kept.contradictions + 1 : 0;
    if (kept.contradictions < kContradictions) return;
    const bool draws = DrawsPower(reading);
    reading.group.NoteImplausible(
        reading.device, draws ? size_t{kGpmSmActive} : size_t{kGpmEngineActive},
        draws ? "0 while utilisation is full and power is drawn: the performance counters are dead "
                "until the GPU is reset"
              : "0 and power idle while gpu.utilization is full: it is utilisation that is stuck",
        reading.out.t_ns);
  }

  // More than a third of what is allowed; an idle GPU draws a tenth to a fifth.
  static bool DrawsPower(const Reading& reading) {
    uint32_t milliwatts = 0;
    uint32_t limit = 0;
    const Api& api = reading.api;
    const NvmlDevice handle = reading.device.handle;
    return api.power_usage != nullptr && api.enforced_power_limit != nullptr &&
           api.power_usage(handle, &milliwatts) == kNvmlSuccess &&
           api.enforced_power_limit(handle, &limit) == kNvmlSuccess && milliwatts > limit / 3;
  }

  Session& session_;
  int64_t (*monotonic_ns_)();
  SeriesGroup group_;
  std::unique_ptr<NvmlGpmMetricsGet> request_;
  std::vector<Kept> kept_;  // by the device's place in the session
};

base::Result<std::unique_ptr<Source>> Make(const SourceContext& context) {
  EPM_TRY(OpenSession(context));
  return std::unique_ptr<Source>(std::make_unique<GpmSource>(context));
}

}  // namespace

const SourceDef kGpuActivity{.name = "gpu.activity",
                             .summary = "busy shares of SMs, pipes, memory and links (Hopper+)",
                             .metrics = kGpmMetrics,
                             .tier = Tier::kTick,
                             .longest_ns = 30 * base::kNsPerSecond,
                             .worth = 4,
                             .Make = &Make};

}  // namespace epochmeter::collect::nvml
