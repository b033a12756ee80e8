// SPDX-License-Identifier: Apache-2.0
// Any bytes as the files of a recording: what stands before the first NUL are the samples, then
// the events of rank 0, then the log.
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <variant>

#include "base/check.h"
#include "base/file.h"
#include "ingest/importers.h"
#include "model/run_builder.h"

namespace {

// Removed when the program ends in order.
struct Folder {
  Folder() { EPM_CHECK(epochmeter::base::MakeDirectories(path).ok()); }
  ~Folder() { std::filesystem::remove_all(path); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const std::string path =
      std::filesystem::temp_directory_path() / ("recording_fuzz_" + std::to_string(getpid()));
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace epochmeter;
  static const Folder folder;
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  for (const char* name : {"samples.jsonl", "events.rank0.jsonl", "train.log"}) {
    const size_t end = std::min(rest.find('\0'), rest.size());
    const std::string path = folder.path + "/" + name;
    EPM_CHECK(base::WriteFileAtomically(path, rest.substr(0, end)).ok());
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  model::MemorySink sink;
  const auto summary = ingest::FindImporter("recording")->Import(folder.path, {}, sink);
  if (!summary.ok()) {
    EPM_CHECK(sink.records.empty());
    return 0;
  }
  EPM_CHECK(std::holds_alternative<model::RunInfo>(sink.records.front()));
  EPM_CHECK(std::holds_alternative<model::RunEnd>(sink.records.back()));
  model::RunBuilder builder;
  for (const auto& record : sink.records) builder.Write(record);
  builder.Finish();
  return 0;
}
