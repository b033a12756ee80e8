// SPDX-License-Identifier: Apache-2.0
// The values of a line by its plan, and a held record as the sink sees it.
#pragma once

#include <optional>
#include <vector>

#include "ingest/log/progress.h"

namespace epochmeter::ingest::log {

// Fills `record` with the line's text and values; kind, tier and header stay to be set.
void ReadValues(const ProgressLine& line, HeldRecord* record);

// The epoch, the step and of how many only, for lines of which it is not yet sure that they count.
void ReadCounters(const ProgressLine& line, HeldRecord* record);

// `in_epoch`: what the record's steps count, where it is known; `values` is reused.
void GiveRecord(const HeldRecord& record, uint32_t start, std::optional<bool> in_epoch,
                std::vector<LogValue>* values, LogSink* sink);

}  // namespace epochmeter::ingest::log
