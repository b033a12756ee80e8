// SPDX-License-Identifier: Apache-2.0
// What the sources of this program can measure on this machine, as found by reading each of them a
// few times in a process of its own. The process sends records; this reads them. Any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "collect/source.h"
#include "model/record.h"

namespace epochmeter::collect {

// One GPU as NVML shows it; `code` is what GetHandle or the first failing call answered.
struct ProbedGpu {
  int64_t index = 0;
  int64_t code = 0;
  std::string error;  // the library's text for `code`
  std::string name, uuid, bus_id;
  std::optional<int64_t> mig_mode, mig_pending, mig_instances, persistence, virtualization;
  int64_t memory_code = 0;
  std::optional<int64_t> memory_total_bytes;
};

// Cost of one library call on one GPU: the median of `reads`.
struct ProbedCall {
  std::string name;
  int64_t code = 0;
  std::string error;
  double median_us = 0;
  int64_t reads = 0;
};

struct NvmlProbe {
  bool answered = false;  // the attempt to open the library came back
  bool open = false;
  base::Error open_error;  // when not open
  std::string path, driver_version, nvml_version;
  std::vector<ProbedGpu> gpus;
  std::vector<ProbedCall> calls;
};

// One metric of one source. `entities` of those that the source knows gave a value.
struct ProbedMetric {
  model::MetricInfo info;
  int entities = 0;
  int known_entities = 0;
  std::optional<double> value;  // the last one, of the first entity that had one
  std::string reason;           // why there is none, or why some entities have none
  bool measured() const { return value.has_value(); }
};

struct ProbedSource {
  std::string name;
  std::string summary;
  double period_s = 0;  // at the default interval
  int reads = 0;
  std::optional<double> median_us;  // wall time of one reading
  std::string failure;              // why the source as a whole gives nothing
  std::vector<ProbedMetric> metrics;
};

// How a probing process went. `ended_badly` is empty when it came to its end.
struct ProbeOutput {
  std::vector<model::Record> records;
  std::string ended_badly;  // "ended by signal 11 (Segmentation fault)", "did not answer for 10 s"
  std::string last_call;    // the call that it announced last
};

struct MachineProbe {
  bool gpu_asked = true;  // false: the caller wanted no GPU
  NvmlProbe nvml;
  ProbeOutput gpu_output;
  std::string host_ended_badly;  // as ProbeOutput has it
  std::vector<ProbedSource> gpu_sources, host_sources;
};

// Names of the events by which a probing process tells what is no sample.
inline constexpr std::string_view kProbeLibrary = "probe.library";
inline constexpr std::string_view kProbeDevice = "probe.device";
inline constexpr std::string_view kProbeCall = "probe.call";

NvmlProbe ReadNvmlProbe(std::span<const model::Record> records);
// One entry for each of `defs`, in order, whatever the records hold. `reason` stands for what has
// neither a value nor a reason of its own.
std::vector<ProbedSource> ReadSourceProbe(std::span<const model::Record> records,
                                          std::span<const SourceDef> defs,
                                          const std::string& reason);

}  // namespace epochmeter::collect
