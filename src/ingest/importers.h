// SPDX-License-Identifier: Apache-2.0
// The one list of importers: foreign bytes in, records of a run out.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/metric.h"
#include "model/sink.h"

namespace epochmeter::ingest {

struct ImportSummary {
  uint64_t samples = 0;  // instants with values
  uint64_t events = 0;
  uint64_t log_lines = 0;
  uint64_t bad_lines = 0;  // each also told as a Loss
};

// An importer is one .cc with its ImporterDef, plus a line in importers.cc. It writes a whole run:
// RunInfo first, records in order of time, RunEnd last. Bad input is a Loss and costs only itself;
// an error means that nothing usable was there.
struct ImporterDef {
  std::string_view name;     // "recording"
  std::string_view summary;  // one line for `epochmeter import --help`
  base::Result<ImportSummary> (*Import)(const std::string& path, model::Sink& sink);
};

std::span<const ImporterDef> Importers();
// Null when there is none of this name.
const ImporterDef* FindImporter(std::string_view name);

// Defined in recording.cc.
extern const ImporterDef kRecordingImporter;

// Metrics that clients and importers define themselves, for `epochmeter list metrics`.
std::span<const model::MetricDef> ClientMetrics();

}  // namespace epochmeter::ingest
