// SPDX-License-Identifier: Apache-2.0
// Columns, event columns and directories without the checksums before them. What decodes encodes
// to something that decodes to the same; every list of integers survives its encoding.
#include <bit>
#include <string>
#include <vector>

#include "base/check.h"
#include "fuzz/input.h"
#include "fuzz/target.h"
#include "runfile/chunk_set.h"
#include "runfile/column_codec.h"
#include "runfile/event_columns.h"
#include "runfile/record_codec.h"

namespace epochmeter::fuzz {
namespace {

using runfile::ColumnEncoding;
using runfile::Packing;

void RoundTrip(const std::vector<int64_t>& values, bool plain, Packing packing) {
  if (values.empty()) return;
  const auto column = runfile::EncodeColumn(values, plain, packing);
  std::vector<int64_t> back;
  EPM_CHECK(runfile::DecodeColumn(column.encoding, column.bytes, packing, values.front(),
                                  values.size(), &back));
  EPM_CHECK(back == values);
}

void Columns(Input& in) {
  const auto encoding = static_cast<ColumnEncoding>(in.Below(4));
  const Packing packing = in.Bit() ? Packing::kZstd : Packing::kPlanes;
  const bool compress = in.Bit();
  const size_t count = in.Number(3);
  const std::string_view bytes = in.Rest();
  const std::string stored = compress ? runfile::Compress(bytes) : std::string(bytes);
  std::vector<int64_t> values;
  if (!runfile::DecodeColumn(encoding, stored, packing, 3, count, &values)) return;
  EPM_CHECK(values.size() == count);
  if (count > 0) RoundTrip(values, encoding == ColumnEncoding::kPlain, packing);
}

void Values(Input& in) {
  const bool plain = in.Bit();
  const Packing packing = in.Bit() ? Packing::kZstd : Packing::kPlanes;
  const size_t size = 1 + in.Below(8);
  std::vector<int64_t> values;
  while (!in.done()) values.push_back(static_cast<int64_t>(in.Number(size)));
  RoundTrip(values, plain, packing);
}

// By their encoding, because a NaN is not equal to itself.
std::string Encoded(const std::vector<model::Event>& events) {
  base::ByteWriter out;
  for (const model::Event& event : events) runfile::EncodeRecord(event, out);
  return out.Take();
}

void Events(Input& in) {
  std::vector<model::Event> events, back;
  if (!runfile::DecodeEvents(in.Rest(), &events)) return;
  EPM_CHECK(runfile::DecodeEvents(runfile::EncodeEvents(events), &back));
  EPM_CHECK(Encoded(events) == Encoded(back));
}

void Directories(Input& in) {
  const uint64_t data_bytes = in.Number(4);
  runfile::Directory directory;
  if (!runfile::DecodeDirectory(in.Rest(), data_bytes, &directory)) return;
  uint64_t stored = 0;
  for (const auto& times : directory.times) stored += times.part.bytes;
  for (const auto& chunk : directory.chunks) {
    stored += chunk.part.bytes;
    EPM_CHECK(chunk.time_column < directory.times.size());
    EPM_CHECK(chunk.part.offset + chunk.part.bytes <= data_bytes);
  }
  EPM_CHECK(stored == data_bytes);
}

}  // namespace

void FeedColumns(std::string_view bytes) {
  Input in(bytes);
  switch (in.Below(4)) {
    case 0:
      return Columns(in);
    case 1:
      return Values(in);
    case 2:
      return Events(in);
    default:
      return Directories(in);
  }
}

}  // namespace epochmeter::fuzz
