// SPDX-License-Identifier: Apache-2.0
// Any bytes as another tool's file: the first byte chooses the importer, the rest is the file. With
// EPOCHMETER_FUZZ_FORMAT in the environment that one is taken always.
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <variant>

#include "base/check.h"
#include "ingest/importers.h"
#include "model/run_builder.h"

namespace {

using namespace epochmeter;

// In memory where the system has such a folder; removed when the program ends in order.
struct File {
  File() = default;
  ~File() { std::filesystem::remove(path); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  const std::string path =
      (std::filesystem::exists("/dev/shm") ? std::string("/dev/shm") : std::string("/tmp")) +
      "/import_fuzz_" + std::to_string(getpid());
};

const ingest::ImporterDef& Choose(std::uint8_t byte) {
  const auto all = ingest::Importers();
  // The first one, of recordings, reads a folder and has a target of its own.
  const char* fixed = std::getenv("EPOCHMETER_FUZZ_FORMAT");
  const auto* named = fixed == nullptr ? nullptr : ingest::FindImporter(fixed);
  return named != nullptr ? *named : all[1 + byte % (all.size() - 1)];
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const File file;
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  std::ofstream(file.path, std::ios::binary) << bytes;
  const ingest::ImporterDef& importer = Choose(data[0]);
  const auto head = ingest::ReadSourceHead(file.path);
  if (head.ok()) ingest::RecogniseSource(*head);
  ingest::ImportOptions options;
  if (data[0] >= 128) options.columns = "timestamp, index, utilization.gpu, memory.used";
  if (data[0] % 16 == 15) options.gpus = 2;
  model::MemorySink sink;
  const auto summary = importer.Import(file.path, options, sink);
  if (!summary.ok()) {
    EPM_CHECK(sink.records.empty());
    return 0;
  }
  EPM_CHECK(std::holds_alternative<model::RunInfo>(sink.records.front()));
  EPM_CHECK(std::holds_alternative<model::RunEnd>(sink.records.back()));
  model::RunBuilder builder;
  for (const auto& record : sink.records) builder.Write(record);
  const model::Run run = builder.Finish();
  for (const auto& loss : run.losses) EPM_CHECK(loss.kind != "run.undefined_ids");
  return 0;
}
