// SPDX-License-Identifier: Apache-2.0
#include "cli/recorder_sink.h"

#include <utility>
#include <variant>

namespace epochmeter::cli {

bool IsEpochOfFirstRank(const model::Event& event) {
  return event.kind == model::EventKind::kEpochEnd && event.rank.value_or(0) <= 0;
}

void RecorderSink::Write(const model::Record& record) {
  writer_.Write(record);
  if (printer_ != nullptr) printer_->Write(record);
  if (const auto* event = std::get_if<model::Event>(&record)) Note(*event);
}

bool RecorderSink::TakeBoundary() { return std::exchange(boundary_, false); }

std::vector<std::string> RecorderSink::TakeNamedGpus() { return std::exchange(named_gpus_, {}); }

void RecorderSink::Note(const model::Event& event) {
  using model::EventKind;
  const bool boundary = event.kind == EventKind::kTrainBegin ||
                        event.kind == EventKind::kTrainEnd ||
                        event.kind == EventKind::kEpochBegin ||
                        event.kind == EventKind::kEpochEnd || event.kind == EventKind::kException;
  boundary_ = boundary_ || boundary;
  if (const auto gpus = event.Text("gpus"); gpus && event.kind != EventKind::kSource) {
    named_gpus_.emplace_back(*gpus);
  }
  if (IsEpochOfFirstRank(event)) ++epochs_;
}

}  // namespace epochmeter::cli
