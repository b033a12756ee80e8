// SPDX-License-Identifier: Apache-2.0
// How long the event receiver may leave its socket alone. A sender that finds the receiver waiting
// must wake it, which costs the training more than the sending does; one that finds it away leaves
// its event in the queue and goes on.
#pragma once

#include <cstdint>

namespace epochmeter::cli {

class EventPace {
 public:
  // `capacity` is how many datagrams the socket holds, `longest_ns` the most to put one off.
  EventPace(int capacity, int64_t longest_ns);
  // After a look at `now_ns` that took `received` events: how long to rest before the next one,
  // during which regular events fill a third of the queue at most. 0: wait at the socket, as after
  // a look in vain, when a burst was near to filling the queue, and where events are rare or a
  // flood.
  int64_t RestAfter(int received, int64_t now_ns);

 private:
  int capacity_;
  int64_t longest_ns_;
  int64_t last_look_ns_ = 0;
  int64_t gap_ns_ = 0;  // between two events, smoothed; 0: none seen yet
  int64_t crowded_until_ns_ = 0;
};

}  // namespace epochmeter::cli
