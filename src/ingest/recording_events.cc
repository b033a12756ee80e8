// SPDX-License-Identifier: Apache-2.0
#include "ingest/recording_events.h"

#include <algorithm>
#include <limits>

#include "base/strings.h"
#include "model/run.h"

namespace epochmeter::ingest {
namespace {

using model::EventKind;

struct MemoryKey {
  std::string_view key;
  size_t metric;  // place in AllocatorMetrics()
};
constexpr MemoryKey kMemoryKeys[] = {{"alloc", 0},        {"reserved", 1},      {"max_alloc", 2},
                                     {"max_reserved", 3}, {"alloc_retries", 4}, {"ooms", 5}};

// Keys that are members of the event itself, or say nothing of the training.
constexpr std::string_view kOwnKeys[] = {"event", "mono_ns", "wall_ns", "rank",
                                         "epoch", "step",    "type",    "name"};

struct Renamed {
  std::string_view key, field;
};
constexpr Renamed kRenamed[] = {
    {"step_s", "duration_s"}, {"data_s", "data_wait_s"}, {"batch", "batch_size"}};

bool IsMemoryKey(std::string_view key) {
  return std::any_of(std::begin(kMemoryKeys), std::end(kMemoryKeys),
                     [key](const MemoryKey& memory) { return memory.key == key; });
}

std::string FieldName(std::string_view key, EventKind kind, bool number) {
  for (const Renamed& renamed : kRenamed) {
    if (renamed.key == key) return std::string(renamed.field);
  }
  const bool counts = base::EndsWith(key, "_s") || base::EndsWith(key, "_ns") ||
                      base::EndsWith(key, "_bytes") || base::EndsWith(key, "_size") ||
                      key == "steps" || key == "step_in_epoch";
  const bool scalars = kind == EventKind::kStep || kind == EventKind::kEpochEnd ||
                       kind == EventKind::kPhaseEnd || kind == EventKind::kScalar;
  return (number && scalars && !counts ? "scalar." : "") + std::string(key);
}

bool IsDuration(std::string_view field) { return base::EndsWith(field, "_s"); }

}  // namespace

bool EventLines::Classify(std::string_view name, model::Event& event) {
  const auto kind = model::EventKindFromName(name);
  constexpr EventKind kPlain[] = {
      EventKind::kTrainBegin, EventKind::kTrainEnd, EventKind::kEpochBegin, EventKind::kEpochEnd,
      EventKind::kStep,       EventKind::kMemory,   EventKind::kScalar,     EventKind::kException,
      EventKind::kMark,       EventKind::kHello};
  if (kind && std::find(std::begin(kPlain), std::end(kPlain), *kind) != std::end(kPlain)) {
    event.kind = *kind;
    return true;
  }
  for (const auto& [suffix, phase_kind] :
       {std::pair("_begin", EventKind::kPhaseBegin), std::pair("_end", EventKind::kPhaseEnd)}) {
    const std::string_view ending(suffix);
    if (!base::EndsWith(name, ending) || name.size() == ending.size()) continue;
    event.kind = phase_kind;
    event.name = name.substr(0, name.size() - ending.size());
    return true;
  }
  return false;
}

const char* EventLines::Event(JsonObject line, int64_t t_ns, std::optional<int32_t> file_rank) {
  const auto name = TextField(line, "event");
  if (!name) return "no event";
  model::Event event{
      .t_ns = t_ns, .rank = file_rank, .epoch = {}, .step = {}, .name = {}, .fields = {}};
  if (!Classify(*name, event)) return "unknown event";
  const auto rank = IntField(line, "rank");
  if (rank && *rank >= 0 && *rank <= std::numeric_limits<int32_t>::max()) {
    event.rank = static_cast<int32_t>(*rank);
  }
  event.epoch = IntField(line, "epoch");
  event.step = IntField(line, "step");
  if (event.kind == EventKind::kEpochBegin && !event.epoch) return "no epoch";
  if (event.kind == EventKind::kEpochEnd && !event.epoch) return "no epoch";
  if (event.kind == EventKind::kStep && !event.step) return "no step";
  ReadFields(line, event);
  CloseOrOpenPhase(event);
  const int32_t rank_key = event.rank.value_or(model::kNoRank);
  ranks_.insert(rank_key);
  if (event.kind == EventKind::kTrainBegin) ended_.erase(rank_key);
  if (event.kind == EventKind::kTrainEnd) ended_.insert(rank_key);
  ReadMemory(line, event);
  ++written_;
  sink_.Write(std::move(event));
  return nullptr;
}

void EventLines::ReadFields(JsonObject line, model::Event& event) {
  for (const auto& [key, value] : line) {
    const bool own = std::find(std::begin(kOwnKeys), std::end(kOwnKeys), key) != std::end(kOwnKeys);
    if (own || IsMemoryKey(key)) continue;
    const auto integer = IntOf(value);
    const auto real = RealOf(value);
    const std::string field = FieldName(key, event.kind, real.has_value());
    if (real && IsDuration(field) && !(*real >= 0)) continue;
    if (integer && !base::StartsWith(field, "scalar.")) {
      event.fields.push_back({.key = field, .value = *integer});
    } else if (real) {
      event.fields.push_back({.key = field, .value = *real});
    } else if (const auto text = TextOf(value)) {
      event.fields.push_back({.key = field, .value = std::string(*text)});
    }
  }
  const auto title = TextField(line, event.kind == EventKind::kException ? "type" : "name");
  if (title && event.name.empty()) event.name = *title;
  if (event.kind == EventKind::kTrainBegin && event.rank && knows_gpu_(*event.rank)) {
    event.fields.push_back({.key = "gpus", .value = std::to_string(*event.rank)});
  }
}

void EventLines::CloseOrOpenPhase(model::Event& event) {
  const auto key = std::pair(event.rank.value_or(model::kNoRank), event.name);
  if (event.kind == EventKind::kPhaseBegin) open_phases_[key] = event.t_ns;
  if (event.kind != EventKind::kPhaseEnd) return;
  const auto begun = open_phases_.find(key);
  if (begun == open_phases_.end()) return;
  const int64_t lasted = event.t_ns - begun->second;
  open_phases_.erase(begun);
  if (lasted < 0 || event.Number("duration_s")) return;
  event.fields.push_back({.key = "duration_s", .value = base::SecondsFromNs(lasted)});
}

void EventLines::ReadMemory(JsonObject line, const model::Event& event) {
  AllocatorReading reading;
  reading.framework = TextField(line, "framework").value_or("");
  reading.device = TextField(line, "device").value_or("");
  for (const MemoryKey& memory : kMemoryKeys) {
    const auto bytes = IntField(line, memory.key);
    if (bytes && *bytes >= 0) reading.values[memory.metric] = bytes;
  }
  model::Samples samples{.t_ns = event.t_ns, .values = {}};
  allocator_.Append(event.rank, 0, reading, samples);
  if (!samples.values.empty()) sink_.Write(std::move(samples));
}

}  // namespace epochmeter::ingest
