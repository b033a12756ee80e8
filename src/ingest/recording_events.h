// SPDX-License-Identifier: Apache-2.0
// The lines of a recording's event files. `alloc`, `reserved` and the like of any event are samples
// of its instant; X_begin and X_end become a phase X.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "ingest/allocator.h"
#include "ingest/json_text.h"
#include "model/sink.h"

namespace epochmeter::ingest {

// One thread. Borrows everything.
class EventLines {
 public:
  // `knows_gpu` tells whether the recording has a GPU: in a recording rank r used GPU r.
  EventLines(model::Registry& registry, model::Sink& sink, std::function<bool(int64_t)> knows_gpu)
      : allocator_(registry), sink_(sink), knows_gpu_(std::move(knows_gpu)) {}

  // Null, or why the line can't be used. `file_rank` is the rank that the file's name says.
  const char* Event(JsonObject line, int64_t t_ns, std::optional<int32_t> file_rank);

  uint64_t written() const { return written_; }
  // Whether each rank that was seen said that its training ended, and any was seen.
  bool all_ended() const { return !ranks_.empty() && ended_ == ranks_; }

 private:
  bool Classify(std::string_view name, model::Event& event);
  void ReadFields(JsonObject line, model::Event& event);
  void ReadMemory(JsonObject line, const model::Event& event);
  void CloseOrOpenPhase(model::Event& event);

  AllocatorSeries allocator_;
  model::Sink& sink_;
  std::function<bool(int64_t)> knows_gpu_;
  std::map<std::pair<int32_t, std::string>, int64_t> open_phases_;  // when each began
  std::set<int32_t> ranks_, ended_;
  uint64_t written_ = 0;
};

}  // namespace epochmeter::ingest
