// SPDX-License-Identifier: Apache-2.0
#include "event_sets.h"

#include <algorithm>

namespace nvml_replay {

const EventModel* EventSet::Take(const std::vector<EventModel>& events, int64_t now_ns,
                                 bool any_device) {
  const auto wanted = [&](const EventModel& event) {
    return std::any_of(registrations_.begin(), registrations_.end(), [&](const Registration& r) {
      const bool device = any_device || r.device == event.device;
      return device && (r.types & event.type) != 0 && event.at_ns >= r.from_ns;
    });
  };
  for (const EventModel& event : events) {
    if (event.at_ns > now_ns) return nullptr;
    const bool had = std::find(taken_.begin(), taken_.end(), &event) != taken_.end();
    if (had || !wanted(event)) continue;
    taken_.push_back(&event);
    return &event;
  }
  return nullptr;
}

EventSet* EventSets::Create() { return sets_.emplace_back(std::make_unique<EventSet>()).get(); }

EventSet* EventSets::Find(const void* set) const {
  const auto it = std::find_if(sets_.begin(), sets_.end(),
                               [&](const auto& known) { return known.get() == set; });
  return it == sets_.end() ? nullptr : it->get();
}

bool EventSets::Free(const void* set) {
  const auto it = std::find_if(sets_.begin(), sets_.end(),
                               [&](const auto& known) { return known.get() == set; });
  if (it == sets_.end()) return false;
  sets_.erase(it);
  return true;
}

}  // namespace nvml_replay
