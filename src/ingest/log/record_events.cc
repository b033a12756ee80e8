// SPDX-License-Identifier: Apache-2.0
#include "ingest/log/record_events.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>

#include "base/strings.h"
#include "ingest/log/log_point.h"
#include "ingest/log/step_timer.h"
#include "model/limits.h"

namespace epochmeter::ingest::log {
namespace {

using model::EventKind;

constexpr size_t kMostScalars = 64;

bool SaysEvaluation(std::string_view key) {
  const std::string lower = base::ToLowerAscii(key);
  return lower.find("val") != std::string::npos || lower.find("test") != std::string::npos;
}

// What a step has beside its epoch and number: `known(column, number)`, `scalar(key, number)`.
template <typename Known, typename Scalar>
void EachNumber(const IndexedRecord& record, bool all, const Known& known, const Scalar& scalar) {
  known(StepColumn::kLine, static_cast<int64_t>(record->place.line));
  if (record->place.file > 0) known(StepColumn::kFile, int64_t{record->place.file});
  if (const auto inner = WholeOf(record.Number(Role::kStepInEpoch))) {
    known(StepColumn::kStepInEpoch, *inner);
  }
  if (const auto batch = WholeOf(record.Number(Role::kBatchSize))) {
    known(StepColumn::kBatchSize, *batch);
  }
  for (const LogValue& value :
       record->values.first(std::min(record->values.size(), kMostScalars))) {
    switch (value.role) {
      case Role::kLoss:
        known(StepColumn::kLoss, value.number);
        break;
      case Role::kLearningRate:
        known(StepColumn::kLearningRate, value.number);
        break;
      case Role::kThroughput:
        known(StepColumn::kThroughput, value.value);
        break;
      case Role::kLossPart:
      case Role::kMetric:
      case Role::kGradNorm:
      case Role::kLossScale:
        if (all && !value.key.empty()) scalar(value.key, value.number);
        break;
      default:
        break;
    }
  }
}

}  // namespace

model::Event StepEvent(const IndexedRecord& record, int64_t t_ns, bool all) {
  model::Event event{.t_ns = t_ns,
                     .kind = EventKind::kStep,
                     .rank = record->place.rank,
                     .epoch = WholeOf(EpochOf(record)),
                     .step = WholeOf(ExactStep(record)),
                     .name = {},
                     .fields = {}};
  EachNumber(
      record, all,
      [&event](StepColumn column, model::FieldValue value) {
        event.fields.push_back({.key = std::string(StepColumnName(column)), .value = value});
      },
      [&event](std::string_view key, double number) {
        event.fields.push_back({.key = "scalar." + std::string(key), .value = number});
      });
  return event;
}

void AppendStep(const IndexedRecord& record, int64_t t_ns, bool all, model::StepTable* table,
                StepAppender* appender) {
  appender->Begin(table, t_ns, WholeOf(EpochOf(record)), WholeOf(ExactStep(record)));
  EachNumber(
      record, all,
      [appender](StepColumn column, auto number) {
        appender->Add(column, static_cast<double>(number));
      },
      [appender](std::string_view key, double number) { appender->AddScalar(key, number); });
}

std::optional<model::Event> EvaluationEvent(const LogRecord& record, int64_t t_ns) {
  model::Event event{.t_ns = t_ns,
                     .kind = EventKind::kScalar,
                     .rank = record.place.rank,
                     .epoch = WholeOf(EpochOf(record)),
                     .step = {},
                     .name = {},
                     .fields = {}};
  const bool own = record.kind == RecordKind::kEval;
  for (const LogValue& value : record.values.first(std::min(record.values.size(), kMostScalars))) {
    const bool figure = value.role == Role::kEvalMetric ||
                        (own && (value.role == Role::kMetric || value.role == Role::kLoss ||
                                 value.role == Role::kLossPart));
    if (!figure) continue;
    const std::string prefix = SaysEvaluation(value.key) ? "scalar." : "scalar.eval_";
    event.fields.push_back({.key = prefix + std::string(value.key), .value = value.number});
  }
  if (event.fields.empty()) return {};
  event.fields.push_back({.key = "line", .value = static_cast<int64_t>(record.place.line)});
  return event;
}

model::Event FailureEvent(const LogEvent& event, int64_t t_ns) {
  model::Event failure{
      .t_ns = t_ns,
      .kind = IsBad(event.kind) ? EventKind::kException : EventKind::kMark,
      .rank = event.place.rank,
      .epoch = {},
      .step = {},
      .name = event.kind,
      .fields = {{"message", event.text}, {"line", static_cast<int64_t>(event.place.line)}}};
  if (event.place.file > 0) failure.fields.push_back({"file", int64_t{event.place.file}});
  return failure;
}

std::optional<AllocatorReading> MemoryOf(const IndexedRecord& record) {
  if (record.Find(Role::kMemory) == nullptr) return {};
  AllocatorReading reading;
  for (const LogValue& value : record->values) {
    if (value.role != Role::kMemory || !(value.value >= 0 && value.value < 1e15)) continue;
    const std::string key = base::ToLowerAscii(value.key);
    const bool reserved = key.find("reserv") != std::string::npos;
    // What is printed as memory alone is the highest there was, in every framework that does so.
    const bool now = key.find("alloc") != std::string::npos && key.find("max") == std::string::npos;
    const size_t place = reserved ? (key.find("max") == std::string::npos ? 1 : 3) : (now ? 0 : 2);
    if (!reading.values[place]) reading.values[place] = std::llround(value.value);
  }
  return reading;
}

}  // namespace epochmeter::ingest::log
