// SPDX-License-Identifier: Apache-2.0
// The records of a run: the one language that collectors, clients, importers, the run file and the
// run builder speak. Plain values. Times are CLOCK_MONOTONIC ns of the recording host.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "model/event.h"
#include "model/metric.h"

namespace epochmeter::model {

using EntityId = uint32_t;
using SeriesId = uint32_t;
using Labels = std::vector<std::pair<std::string, std::string>>;  // in order, keys unique

// First record of a run. `attributes` hold what is known of the run and its machine: command
// (redacted), host, labels, launcher, versions. `boot_id` says which boot `anchor.mono_ns` counts.
struct RunInfo {
  std::string run_id;
  std::string boot_id;
  base::ClockAnchor anchor;
  Labels attributes;
  bool operator==(const RunInfo&) const = default;
};

// The clocks read again, each few minutes, so that wall time stays right over NTP steps.
struct Anchor {
  base::ClockAnchor clocks;
  bool operator==(const Anchor&) const = default;
};

// A thing that has series: a GPU, the host, a disk, a process tree, a rank. (scope, name) is its
// identity for the whole run and across restarts of the sampler: GPUs by UUID, never by index.
// `labels` tell it apart in exports (gpu=0, uuid=...), `attributes` describe it.
struct EntityDef {
  EntityId id = 0;
  Scope scope = Scope::kRun;
  std::string name;
  Labels labels;
  Labels attributes;
  bool operator==(const EntityDef&) const = default;
};

// One metric of one entity. `period_ns` is the intended distance of samples, 0 when samples come
// with events; it decides what counts as a gap.
struct SeriesDef {
  SeriesId id = 0;
  EntityId entity = 0;
  int64_t period_ns = 0;
  MetricInfo metric;
  bool operator==(const SeriesDef&) const = default;
};

struct SampleValue {
  SeriesId series = 0;
  double value = 0;
  bool operator==(const SampleValue&) const = default;
};

// Values of one instant. A series that is not named was not read then: absent, never 0.
struct Samples {
  int64_t t_ns = 0;
  std::vector<SampleValue> values;
  bool operator==(const Samples&) const = default;
};

// Why a series has no values from here on, or that it has them again.
enum class SeriesCondition : uint8_t {
  kOk,
  kNotSupported,
  kNoPermission,
  kNotFound,
  kError,
  kDeviceLost,
  kSourceGone
};
inline constexpr int kSeriesConditionCount = 7;
std::string_view SeriesConditionName(SeriesCondition condition);  // "not_supported"

struct SeriesState {
  int64_t t_ns = 0;
  SeriesId series = 0;
  SeriesCondition condition = SeriesCondition::kOk;
  std::string detail;  // the call and its word: "nvmlDeviceGetFanSpeed: Not Supported"
  bool operator==(const SeriesState&) const = default;
};

// Output of the training as it came, in pieces. `stream` 1 is stdout, 2 stderr, 3 both in one.
struct LogText {
  int64_t t_ns = 0;
  uint8_t stream = 1;
  std::string text;
  bool operator==(const LogText&) const = default;
};

// What was not seen or not kept: a Loss is never an absence. `kind` is a dotted id.
enum class LossSeverity : uint8_t { kInfo, kDataLoss, kError };
struct Loss {
  int64_t t_ns = 0;
  LossSeverity severity = LossSeverity::kDataLoss;
  std::string kind;    // "client.dropped", "value.out_of_range", "file.damaged_frame"
  uint64_t count = 0;  // in units of what `detail` says: events, values, bytes
  std::string detail;
  std::string help;  // one sentence: what the reader can change
  bool operator==(const Loss&) const = default;
};

// Last record of a run that ended in order. Exactly one of exit_code and signal is there when the
// training's end was seen.
struct RunEnd {
  int64_t t_ns = 0;
  std::string reason;  // "exited", "signalled", "detached", "lost"
  std::optional<int32_t> exit_code;
  std::optional<int32_t> signal;
  bool operator==(const RunEnd&) const = default;
};

using Record = std::variant<RunInfo, Anchor, EntityDef, SeriesDef, Samples, SeriesState, Event,
                            LogText, Loss, RunEnd>;

}  // namespace epochmeter::model
