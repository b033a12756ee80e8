// SPDX-License-Identifier: Apache-2.0
// Any bytes as another tool's file, one target for each format: the first byte chooses options, the
// rest is the file. An import that fails has written nothing; one that succeeds has written one
// whole run whose ids are all defined and whose samples are in order of time; those of a recording
// are in the order of its lines.
#include <algorithm>
#include <string>
#include <variant>

#include "base/check.h"
#include "fuzz/output.h"
#include "fuzz/scratch.h"
#include "fuzz/target.h"
#include "ingest/importers.h"
#include "model/run_builder.h"

namespace epochmeter::fuzz {
namespace {

void CheckOrder(const std::vector<model::Record>& records) {
  int64_t last_ns = INT64_MIN;
  for (const model::Record& record : records) {
    const auto* samples = std::get_if<model::Samples>(&record);
    if (samples == nullptr) continue;
    EPM_CHECK(samples->t_ns >= last_ns) << "samples go back in time";
    last_ns = samples->t_ns;
  }
}

// `all_output` takes a hundred times as long.
void CheckImport(const ingest::ImporterDef& importer, const std::string& path,
                 const ingest::ImportOptions& options, bool all_output) {
  model::MemorySink sink;
  const auto summary = importer.Import(path, options, sink);
  if (!summary.ok()) {
    EPM_CHECK(sink.records.empty());
    return;
  }
  EPM_CHECK(sink.records.size() >= 2);
  for (size_t i = 0; i < sink.records.size(); ++i) {
    const bool last = i + 1 == sink.records.size();
    EPM_CHECK(std::holds_alternative<model::RunInfo>(sink.records[i]) == (i == 0));
    EPM_CHECK(std::holds_alternative<model::RunEnd>(sink.records[i]) == last);
  }
  if (&importer != &ingest::kRecordingImporter) CheckOrder(sink.records);
  model::RunBuilder builder;
  for (const auto& record : sink.records) builder.Write(record);
  const model::Run run = builder.Finish();
  for (const auto& loss : run.losses) EPM_CHECK(loss.kind != "run.undefined_ids");
  CheckStore(run);
  if (all_output) CheckAllOutput(run);
}

void Import(const ingest::ImporterDef& importer, std::string_view bytes) {
  static const Scratch folder;
  if (bytes.empty()) return;
  const auto how = static_cast<uint8_t>(bytes.front());
  folder.Write("file", bytes.substr(1));
  const std::string path = folder.Path("file");
  const auto head = ingest::ReadSourceHead(path);
  if (head.ok()) ingest::RecogniseSource(*head);
  ingest::ImportOptions options;
  if ((how & 128) != 0) options.columns = "timestamp, index, utilization.gpu, memory.used";
  if ((how & 64) != 0) options.interval_s = 2.5;
  if ((how & 32) != 0) options.start_wall_ns = int64_t{1'700'000'000} * base::kNsPerSecond;
  if (how % 16 == 15) options.gpus = 2;
  CheckImport(importer, path, options, how % 16 == 14);
}

}  // namespace

// What stands before the first NUL are the samples, then the events of rank 0, then the log.
void FeedRecording(std::string_view bytes) {
  static const Scratch folder;
  for (const char* name : {"samples.jsonl", "events.rank0.jsonl", "train.log"}) {
    const size_t end = std::min(bytes.find('\0'), bytes.size());
    folder.Write(name, bytes.substr(0, end));
    bytes.remove_prefix(std::min(end + 1, bytes.size()));
  }
  CheckImport(ingest::kRecordingImporter, folder.path(), {}, false);
}

void FeedNvidiaSmiCsv(std::string_view bytes) { Import(ingest::kNvidiaSmiCsvImporter, bytes); }
void FeedNvidiaSmiApps(std::string_view bytes) { Import(ingest::kNvidiaSmiAppsImporter, bytes); }
void FeedNvidiaSmiMonitor(std::string_view bytes) {
  Import(ingest::kNvidiaSmiMonitorImporter, bytes);
}
void FeedNvidiaSmiTable(std::string_view bytes) { Import(ingest::kNvidiaSmiTableImporter, bytes); }
void FeedDcgmiDmon(std::string_view bytes) { Import(ingest::kDcgmiDmonImporter, bytes); }
void FeedPaddleGpuLog(std::string_view bytes) { Import(ingest::kPaddleGpuLogImporter, bytes); }
void FeedNvitop(std::string_view bytes) { Import(ingest::kNvitopImporter, bytes); }
void FeedWandb(std::string_view bytes) { Import(ingest::kWandbImporter, bytes); }
void FeedTrackio(std::string_view bytes) { Import(ingest::kTrackioImporter, bytes); }

}  // namespace epochmeter::fuzz
