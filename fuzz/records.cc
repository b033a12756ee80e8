// SPDX-License-Identifier: Apache-2.0
// records: a record that was read survives a round trip through bytes and through text.
// dump_text: Dump and Assemble undo each other for any bytes; text that is assembled gives bytes
// whose dump gives them again.
#include <algorithm>

#include "base/check.h"
#include "fuzz/make_record.h"
#include "fuzz/target.h"
#include "runfile/chunk_set.h"
#include "runfile/dump.h"
#include "runfile/record_codec.h"
#include "runfile/record_text.h"

namespace epochmeter::fuzz {
namespace {

void RoundTrip(const model::Record& record) {
  const std::string bytes = Encoded(record);
  base::ByteReader in(bytes);
  model::Record back;
  EPM_CHECK(runfile::DecodeRecord(in, &back) == runfile::DecodeStatus::kRecord);
  EPM_CHECK(Encoded(back) == bytes);
  model::Record read;
  EPM_CHECK(runfile::RecordFromText(runfile::RecordToText(record), &read));
  EPM_CHECK(Encoded(read) == bytes);
}

}  // namespace

void FeedRecords(std::string_view bytes) {
  size_t told = 0;
  const auto skipped = runfile::ForEachRecord(bytes, [&told](model::Record&& record) {
    ++told;
    RoundTrip(record);
  });
  // Each takes a byte at least.
  EPM_CHECK(told + skipped.damaged + skipped.unknown <= bytes.size());
}

void FeedDumpText(std::string_view bytes) {
  if (bytes.empty()) return;
  const std::string_view rest = bytes.substr(1);
  if ((bytes.front() & 1) != 0) {
    const auto again = runfile::Assemble(runfile::Dump(rest));
    EPM_CHECK(again.ok() && *again == rest);
    return;
  }
  const auto file = runfile::Assemble(rest);
  if (!file.ok()) return;
  const auto again = runfile::Assemble(runfile::Dump(*file));
  EPM_CHECK(again.ok() && *again == *file);
}

}  // namespace epochmeter::fuzz
