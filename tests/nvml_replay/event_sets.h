// SPDX-License-Identifier: Apache-2.0
// What waits for events: a set, and what is registered in it. Not thread-safe; the caller holds
// the player's mutex.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "player.h"

namespace nvml_replay {

class EventSet {
 public:
  struct Registration {
    size_t device;
    uint64_t types;
    int64_t from_ns;  // events before it are lost
  };

  void Register(const Registration& registration) { registrations_.push_back(registration); }
  // The next event due at `now_ns` that this set has not had; null when there is none. For
  // system events the device does not matter.
  const EventModel* Take(const std::vector<EventModel>& events, int64_t now_ns, bool any_device);
  const std::vector<Registration>& registrations() const { return registrations_; }

 private:
  std::vector<Registration> registrations_;
  std::vector<const EventModel*> taken_;
};

// The live sets of one kind, so that a freed one is told from a valid one.
class EventSets {
 public:
  EventSet* Create();
  EventSet* Find(const void* set) const;
  bool Free(const void* set);

 private:
  std::vector<std::unique_ptr<EventSet>> sets_;
};

}  // namespace nvml_replay
