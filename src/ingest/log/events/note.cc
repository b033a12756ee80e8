// SPDX-License-Identifier: Apache-2.0
// Remarks that help to read a log: where a training starts, how long it is to be, warnings.
#include <array>

#include "base/strings.h"
#include "ingest/log/events/event_text.h"
#include "ingest/log/events/families.h"
#include "ingest/log/line_prefix.h"

namespace epochmeter::ingest::log {
namespace {

using std::string_view;

bool ReadStart(const EventLine& line, EventContext& context) {
  const string_view message = MessageOf(line.text);
  const auto paddle = After(message, "train with paddle ");
  const bool mxnet = base::StartsWith(message, "Start training with ") ||
                     base::StartsWith(message, "Resume training with ") ||
                     Contains(message, "start training from scratch");
  const bool hugging_face = base::StartsWith(message, "***** Running training *****");
  if (!paddle && !mxnet && !hugging_face) return false;
  if (paddle && !Contains(message, " and device ")) return false;
  LogEvent event = MakeEvent("run_start", line);
  if (paddle) AddText(&event, "paddle_version", paddle->substr(0, paddle->find(' ')));
  if (base::StartsWith(message, "Resume ")) {
    AddNumber(&event, "resumed_epoch", IntAfter(message, "from epoch "));
  }
  context.Emit(std::move(event));
  return true;
}

bool ReadTotal(const EventLine& line, EventContext& context) {
  const auto steps = IntAfter(line.text, "Total optimization steps = ");
  if (!steps) return false;
  LogEvent event = MakeEvent("total_steps", line);
  AddNumber(&event, "total_steps", steps);
  context.Emit(std::move(event));
  return true;
}

bool ReadWarning(const EventLine& line, EventContext& context) {
  if (IsGlogWarning(line.text)) {
    context.Emit(MakeEvent("glog_warning", line));
    return true;
  }
  const bool python =
      Contains(line.text.substr(0, 400), "Warning: ") && Contains(line.text.substr(0, 400), ".py:");
  const bool level = ReadLinePrefix(line.text.substr(0, 400)).level == LogLevel::kWarning;
  const bool bracket = Contains(line.text.substr(0, 100), "[Warning] ");
  if (!python && !level && !bracket) return false;
  context.Emit(MakeEvent("warning", line));
  return true;
}

bool Read(const EventLine& line, EventContext& context) {
  return ReadStart(line, context) || ReadTotal(line, context) || ReadWarning(line, context);
}

constexpr auto kAnchors = std::to_array<string_view>(
    {"trainwithpaddle", "Starttrainingwith", "Resumetrainingwith", "starttrainingfromscratch",
     "Runningtraining", "Totaloptimizationsteps", "WARNING", "Warning", "batchsize", "BatchSize",
     "batchSize", "BATCHSIZE"});

}  // namespace

const EventFamily kNoteFamily = {"note", kAnchors, Read};

}  // namespace epochmeter::ingest::log
