// SPDX-License-Identifier: Apache-2.0
// The list of event families, and what each kind of event means for a training.
#pragma once

#include <span>
#include <string_view>

#include "ingest/log/events/event_family.h"
#include "model/message.h"

namespace epochmeter::ingest::log {

// In the order in which they are asked for a line.
std::span<const EventFamily* const> EventFamilies();

// What an event tells about the end of a training.
enum class EventRole : uint8_t {
  kRoot,     // may be the cause
  kCascade,  // follows when another process or rank has failed
  kConfirm,  // says that it ended, not why
  kNote      // did not end it
};

struct EventKind {
  std::string_view name;
  EventRole role = EventRole::kNote;
  std::string_view en, zh;  // what it means, a few words
};

std::span<const EventKind> EventKinds();
// Null for a kind that is not in the list.
const EventKind* FindEventKind(std::string_view name);

}  // namespace epochmeter::ingest::log
