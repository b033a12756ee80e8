// SPDX-License-Identifier: Apache-2.0
// What a recorder writes down of a helper that was replaced, the recorder before it included.
#pragma once

#include "cli/messages.h"
#include "model/sink.h"

namespace epochmeter::cli {

// An event of kind source, named after the helper, with fields state, detail and away_s.
void TellReplaced(const ControlMessage& replaced, int64_t now_ns, model::Sink& sink);

// How many client events the recorder before had taken off the socket and not brought to disk, at
// most; the count goes on from there. Before anything is received.
uint64_t TakeLostEvents(RecorderWords& words);
void TellLostEvents(uint64_t count, int64_t now_ns, model::Sink& sink);

}  // namespace epochmeter::cli
