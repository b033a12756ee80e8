// SPDX-License-Identifier: Apache-2.0
// What the records and events of a training's log say, as events of a run. Pure; the times and
// processes that they are given are the caller's.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>

#include "ingest/allocator.h"
#include "ingest/log/indexed_record.h"
#include "ingest/log/step_tables.h"
#include "model/event.h"
#include "model/limits.h"

namespace epochmeter::ingest::log {

// The nearest whole number below; nothing for one that has none.
inline std::optional<int64_t> WholeOf(std::optional<double> number) {
  if (!number) return {};
  return model::WholeOf(std::floor(*number));
}

// A step with its numbers and scalars; its place is the field "line". How many steps it stands for
// and how long they took is the caller's to add. Without `all` of the scalars only those that have
// the same name in every log.
model::Event StepEvent(const IndexedRecord& record, int64_t t_ns, bool all = true);
// The same as a row of a table.
void AppendStep(const IndexedRecord& record, int64_t t_ns, bool all, model::StepTable* table,
                StepAppender* appender);
// The figures of an evaluation, by names that say so; nothing when there are none. Of a training
// record those that it prints beside its own.
std::optional<model::Event> EvaluationEvent(const LogRecord& record, int64_t t_ns);
// What went wrong as an exception, the rest as a mark.
model::Event FailureEvent(const LogEvent& event, int64_t t_ns);
// The allocator's memory, as printed; nothing when none is.
std::optional<AllocatorReading> MemoryOf(const IndexedRecord& record);

}  // namespace epochmeter::ingest::log
