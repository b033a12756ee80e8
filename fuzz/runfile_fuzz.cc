// SPDX-License-Identifier: Apache-2.0
// Hostile bytes as records, event columns, text, and as a whole run file. The first byte says as
// which. Checksums are not repaired: frames inside are reached by the decoders' own inputs.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "runfile/chunk_set.h"
#include "runfile/dump.h"
#include "runfile/event_columns.h"
#include "runfile/record_codec.h"
#include "runfile/record_text.h"
#include "runfile/run_files.h"
#include "runfile/series_store.h"

namespace {

using namespace epochmeter;

void Records(std::string_view bytes) {
  runfile::ForEachRecord(bytes, [](model::Record&& record) {
    // What was read must survive a round trip through bytes and text.
    base::ByteWriter out;
    runfile::EncodeRecord(record, out);
    base::ByteReader in(out.bytes());
    model::Record back;
    EPM_CHECK(runfile::DecodeRecord(in, &back) == runfile::DecodeStatus::kRecord);
    EPM_CHECK(runfile::RecordFromText(runfile::RecordToText(record), &back));
  });
}

void Parts(std::string_view bytes) {
  runfile::Directory directory;
  (void)runfile::DecodeDirectory(bytes, bytes.size(), &directory);
  std::vector<int64_t> values;
  for (const auto encoding : {runfile::ColumnEncoding::kDelta, runfile::ColumnEncoding::kPlain}) {
    for (const auto packing : {runfile::Packing::kPlanes, runfile::Packing::kZstd}) {
      for (const size_t count : {1, 2, 7, 600}) {
        (void)runfile::DecodeColumn(encoding, bytes, packing, 0, count, &values);
      }
    }
  }
}

// A chunk set with right checksums around hostile content, as the prologue and its sections.
void Payload(std::string_view bytes) {
  const runfile::FileId id{};
  base::ByteWriter payload;
  const size_t size = bytes.empty() ? 0 : static_cast<uint8_t>(bytes[0]) % bytes.size();
  payload.U32(static_cast<uint32_t>(size));
  payload.U32(runfile::SeededCrc(id, bytes.substr(0, size)));
  payload.Raw(bytes);
  std::string file = runfile::EncodeFileHeader({.id = id});
  file += runfile::EncodeFrame({.type = runfile::FrameType::kChunkSet, .id = id}, file.size(),
                               payload.bytes());
  EPM_CHECK(*runfile::Assemble(runfile::Dump(file)) == file);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  std::vector<model::Event> events;
  switch (data[0] % 6) {
    case 0:
      Records(bytes);
      break;
    case 1:
      (void)runfile::DecodeEvents(bytes, &events);
      break;
    case 2:
      Parts(bytes);
      break;
    case 3:
      Payload(bytes);
      break;
    case 4:
      (void)runfile::Assemble(bytes);
      break;
    default:
      EPM_CHECK(*runfile::Assemble(runfile::Dump(bytes)) == bytes);
  }
  return 0;
}
