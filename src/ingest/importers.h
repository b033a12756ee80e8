// SPDX-License-Identifier: Apache-2.0
// The one list of importers: foreign bytes in, records of a run out.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/metric.h"
#include "model/sink.h"

namespace epochmeter::ingest {

// What a source does not say itself and its user may know. Local times are in the process's zone.
struct ImportOptions {
  std::optional<double> interval_s;      // between samples, where lines have no time
  std::optional<int64_t> start_wall_ns;  // of the first sample, where lines have no time or date
  std::string columns;                   // names, with commas, where the file has no header
  int gpus = 0;                          // per sample, where lines name none; 0 is not known
};

struct ImportSummary {
  uint64_t samples = 0;  // instants with values
  uint64_t events = 0;
  uint64_t log_lines = 0;
  uint64_t bad_lines = 0;          // each also told as a Loss
  std::vector<std::string> notes;  // what was assumed; a sentence each
};

// The begin of a source, by which its format is recognised.
struct SourceHead {
  std::string path;
  bool folder = false;
  std::string bytes;  // of a file, unpacked; at most 64 KiB
  std::vector<std::string_view> Lines() const;
};
base::Result<SourceHead> ReadSourceHead(const std::string& path);

// An importer is one .cc with its ImporterDef, plus a line in importers.cc. It writes a whole run:
// RunInfo first, records in order of time, RunEnd last. Bad input is a Loss and costs only itself;
// an error means that nothing usable was there, and nothing was written.
struct ImporterDef {
  std::string_view name;     // "recording"
  std::string_view summary;  // one line for `epochmeter import --help`
  // How surely the source is of this format: 0 is no, 100 beyond doubt.
  int (*Recognise)(const SourceHead& head);
  base::Result<ImportSummary> (*Import)(const std::string& path, const ImportOptions& options,
                                        model::Sink& sink);
};

std::span<const ImporterDef> Importers();
// Null when there is none of this name.
const ImporterDef* FindImporter(std::string_view name);
// Those that recognise the source best; several when they are equally sure, none when nobody is.
std::vector<const ImporterDef*> RecogniseSource(const SourceHead& head);

// Each is defined in the file of its name.
extern const ImporterDef kRecordingImporter;
extern const ImporterDef kNvidiaSmiCsvImporter;
extern const ImporterDef kNvidiaSmiAppsImporter;
extern const ImporterDef kNvidiaSmiMonitorImporter;
extern const ImporterDef kNvidiaSmiTableImporter;
extern const ImporterDef kDcgmiDmonImporter;
extern const ImporterDef kPaddleGpuLogImporter;
extern const ImporterDef kNvitopImporter;
extern const ImporterDef kWandbImporter;
extern const ImporterDef kTrackioImporter;

// Metrics that clients and importers define themselves, for `epochmeter list metrics`.
std::span<const model::MetricDef> ClientMetrics();

}  // namespace epochmeter::ingest
