// SPDX-License-Identifier: Apache-2.0
// The lines of a recording's samples file: device, gpu and host objects to samples with the same
// metrics as the live collectors give. A recording has no UUIDs: a GPU is the entity "gpu:<i>".
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "ingest/json_text.h"
#include "ingest/series_cache.h"
#include "model/sink.h"

namespace epochmeter::ingest {

// What the header says of the whole recording; absent members are unknown.
struct RecordingHeader {
  std::optional<int64_t> hz, clk_tck, cpus, gpus, cuda;
  std::string driver;
};
RecordingHeader ReadRecordingHeader(JsonObject header);
// 0 when the header does not say.
int64_t PeriodNs(const RecordingHeader& header);

// One thread.
class GpuLines {
 public:
  GpuLines(const RecordingHeader& header, SeriesCache& cache, model::Sink& sink)
      : driver_(header.driver), period_ns_(PeriodNs(header)), cache_(cache), sink_(sink) {}

  // Each false when the line does not say which GPU it is about.
  bool Device(JsonObject line);
  bool Gpu(JsonObject line, model::Samples& out);

  bool Knows(int64_t gpu) const { return gpus_.contains(gpu); }

 private:
  static constexpr size_t kWrapping = 2;
  // Counters of 32 bits are continued over their wraps.
  struct State {
    model::EntityId entity = 0;
    std::string name;
    std::optional<int64_t> memory_total, memory_reserved;
    int64_t utilization_rc = 0;
    std::array<std::optional<uint64_t>, kWrapping> wrapping_last;
    std::array<uint64_t, kWrapping> wrapping_base{};
  };

  State& Find(int64_t gpu);
  void TellUtilization(JsonObject line, State& gpu, int64_t t_ns);
  void Values(JsonObject line, State& gpu, model::Samples& out);
  void Memory(JsonObject line, State& gpu, model::Samples& out);
  void Wrapping(JsonObject line, State& gpu, model::Samples& out);
  void Gpm(JsonObject gpm, State& gpu, model::Samples& out);
  void Processes(JsonObject line, State& gpu, model::Samples& out);
  void Process(simdjson::dom::array pair, double bytes, State& gpu, model::Samples& out);

  std::string driver_;
  int64_t period_ns_;
  SeriesCache& cache_;
  model::Sink& sink_;
  std::map<int64_t, State> gpus_;
};

// One thread.
class HostLines {
 public:
  HostLines(const RecordingHeader& header, SeriesCache& cache);

  void Host(JsonObject line, model::Samples& out);

 private:
  static constexpr size_t kCounters = 4;  // CPU ticks, bytes read, bytes written, major faults
  using Counters = std::array<std::optional<int64_t>, kCounters>;
  struct Known {
    Counters counters;
    uint64_t seen = 0;  // number of the host line that showed it last
  };
  struct Tree;

  void CpuTimes(std::string_view stat, model::Samples& out);
  void ProcessTree(simdjson::dom::array processes, model::Samples& out);
  void AddProcess(JsonObject process, Tree& tree);
  void ForgetEnded();

  std::optional<int64_t> clk_tck_;
  int64_t period_ns_;
  SeriesCache& cache_;
  model::EntityId host_;
  std::map<int64_t, Known> processes_;
  std::array<double, kCounters> ended_{};  // counts of processes that are gone
  uint64_t lines_ = 0;
};

}  // namespace epochmeter::ingest
