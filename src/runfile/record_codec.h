// SPDX-License-Identifier: Apache-2.0
// One record as bytes: a varint length, then a body of one type byte and the fields in the order of
// record_fields.h. Needs nothing but the record itself, so it serves the tail of a run file and the
// pipe of a sampler alike. Lossless: doubles keep every bit. Any thread.
//
// Reading a stream: append what came to a buffer, then
//   base::ByteReader reader(buffer);
//   for (;;) {
//     const DecodeStatus status = DecodeRecord(reader, &record);
//     if (status == DecodeStatus::kIncomplete) break;
//     ...                                     // use the record, or count what was not one
//   }
//   buffer.erase(0, buffer.size() - reader.remaining());
#pragma once

#include "base/bytes.h"
#include "model/record.h"

namespace epochmeter::runfile {

// Longer ones are damage. The writer refuses to write them.
inline constexpr size_t kMaxRecordBytes = size_t{4} << 20;

enum class DecodeStatus {
  kRecord,      // *record is set
  kUnknown,     // a type of a newer version; skipped
  kIncomplete,  // the bytes end before the record does; the reader did not move
  kDamaged      // not a record; skipped, or all that is left when its length makes no sense
};

void EncodeRecord(const model::Record& record, base::ByteWriter& out);
// A body with more fields than we know is fine (a newer writer); one with fewer is damaged.
// Counts inside are never trusted for allocation.
DecodeStatus DecodeRecord(base::ByteReader& in, model::Record* record);

}  // namespace epochmeter::runfile
