// SPDX-License-Identifier: Apache-2.0
// The series that one source feeds, for every device, and what is known of the calls behind them:
// which are not supported (latched until the device gets a new handle), which back off, and which
// values were impossible. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collect/nvml/session.h"
#include "collect/source.h"

namespace epochmeter::collect::nvml {

// One NVML call, or one field of a batch, and the metrics [first, first + count) it gives.
struct CallDef {
  const char* name;
  uint8_t first_metric;
  uint8_t metric_count;
};

// `devices` is the list that the group's devices are in: the session's where it is null, or one of
// the source's own (MIG instances) that only grows and outlives the group.
struct GroupDef {
  std::span<const model::MetricDef> metrics;
  std::span<const CallDef> calls;
  int64_t period_ns;
  const std::vector<Device>* devices = nullptr;
  // A series begins with its first value or reason, for metrics that not every device has.
  bool lazy = false;
};

class SeriesGroup {
 public:
  SeriesGroup(const SourceContext& context, const GroupDef& def);
  ~SeriesGroup();  // tells the losses not told yet
  SeriesGroup(const SeriesGroup&) = delete;
  SeriesGroup& operator=(const SeriesGroup&) = delete;

  // Whether the call should be made now. Tells once that a lost device's series have no values.
  bool Due(const Device& device, size_t call, int64_t t_ns);
  // Takes a call's result; true when its values may be used. A code that isn't success is told as
  // the SeriesState of the call's series when it is news: NOT_SUPPORTED and FUNCTION_NOT_FOUND
  // latch, NO_PERMISSION waits 60 s, anything else 1, 2, 4 ... 60 s.
  bool Took(Device& device, size_t call, NvmlReturn rc, int64_t t_ns);
  // The driver answered, but the answer means "not on this device": latches with this reason.
  void Unsupported(const Device& device, size_t call, const std::string& reason, int64_t t_ns);
  // Like Took for a call that failed, without telling the session: for codes that say nothing about
  // the device as a whole.
  void Failed(const Device& device, size_t call, NvmlReturn rc, int64_t t_ns);
  // Tells of each series of a lost device that it has no values.
  void TellLost(const Device& device, int64_t t_ns);
  // No value now, for a reason that may pass at the next reading.
  void Absent(const Device& device, size_t call, const std::string& reason, int64_t t_ns);

  // Appends the value; a series that had a reason to be absent is told to be fine again.
  void Put(const Device& device, size_t metric, double value, model::Samples& out);
  // Put if low <= value <= high; else the value is dropped and counted. NaN is never in range.
  void PutInRange(const Device& device, size_t metric, double value, double low, double high,
                  model::Samples& out);
  // Says that recorded values can't be right, with why; again at most each 10 minutes.
  void NoteImplausible(const Device& device, size_t metric, const std::string& why, int64_t t_ns);
  int64_t period_ns() const { return def_.period_ns; }
  bool of_instances() const { return def_.devices != nullptr; }
  void Drop(const Device& device, size_t metric, const std::string& shown, int64_t t_ns);

 private:
  struct CallState {
    bool latched = false;
    int64_t retry_at_ns = 0;
    int64_t wait_ns = 0;
    model::SeriesCondition condition = model::SeriesCondition::kOk;
    std::string detail;
  };
  struct Dropped {
    uint64_t untold = 0;
    int64_t told_at_ns = 0;
    std::string shown;
    int64_t implausible_told_ns = 0;
  };
  struct PerDevice {
    uint32_t generation = 0;
    std::vector<CallState> calls;
    model::EntityId entity = 0;
    std::vector<std::optional<model::SeriesId>> series;
    std::vector<Dropped> dropped;
  };

  PerDevice& StateOf(const Device& device);
  const std::vector<Device>& devices() const;
  model::SeriesId SeriesOf(PerDevice& state, size_t metric);
  void SetCondition(PerDevice& state, size_t call, model::SeriesCondition condition,
                    const std::string& detail, int64_t t_ns);
  bool Feeds(size_t call, size_t metric) const;
  // Whether some call that feeds the metric still has a reason for it to be absent.
  bool IsHeldBack(const PerDevice& state, size_t metric) const;
  void TellDropped(const Device& device, size_t metric, Dropped& dropped, int64_t t_ns);

  Session& session_;
  model::Registry& registry_;
  model::Sink& sink_;
  GroupDef def_;
  std::vector<std::unique_ptr<PerDevice>> states_;  // by the device's place; null unless used
};

}  // namespace epochmeter::collect::nvml
