// SPDX-License-Identifier: Apache-2.0
// Everything that a run holds as one object a line in the order of time: metrics in the long form,
// events with steps, and log lines. "type" tells them apart. Only a last log line
// without a line end stands out of order, at the end.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/json_writer.h"
#include "export/exporters.h"
#include "export/log_lines.h"
#include "export/series_list.h"
#include "export/text_fields.h"
#include "export/time_chunks.h"
#include "export/value_order.h"

namespace epochmeter::exporting {
namespace {

using base::JsonWriter;
using model::Event;
using model::Run;

constexpr int64_t kTicksPerChunk = 100;

struct Line {
  int64_t t_ns;
  std::string text;
};

// Opens an object with what each line begins with.
void Begin(const Run& run, const ExportOptions& options, int64_t t_ns, std::string_view type,
           JsonWriter& json) {
  json.BeginObject();
  const std::string time = TimeText(run, t_ns, options.time);
  if (options.time == TimeFormat::kEpochNs && !time.empty()) {
    json.Key("@timestamp").Raw(time);
  } else if (!time.empty()) {
    json.Field("@timestamp", time);
  }
  json.Field("type", type);
  if (run.info) json.Field("run_id", run.info->run_id);
}

void FieldIfKnown(std::string_view key, const std::string& text, JsonWriter& json) {
  if (!text.empty()) json.Field(key, text);
}

void NumberText(std::string_view key, const std::string& digits, JsonWriter& json) {
  const bool number = !digits.empty() && digits.size() < 10 &&
                      digits.find_first_not_of("0123456789") == std::string::npos &&
                      (digits == "0" || digits[0] != '0');
  if (number) {
    json.Key(key).Raw(digits);
  } else {
    FieldIfKnown(key, digits, json);
  }
}

void WriteReal(double value, JsonWriter& json) {
  if (std::isfinite(value)) {
    json.Double(value);
  } else {
    json.String(std::isnan(value) ? "NaN" : value < 0 ? "-Infinity" : "Infinity");
  }
}

class Lines {
 public:
  Lines(const Run& run, const ExportOptions& options)
      : run_(run), options_(options), host_(HostName(run)), series_(ListSeries(run)), log_(run) {
    for (const Event& event : run.events) events_.push_back(&event);
    std::stable_sort(events_.begin(), events_.end(),
                     [](const Event* a, const Event* b) { return a->t_ns < b->t_ns; });
    for (const auto& [process, steps] : run.steps) next_step_[process] = 0;
  }

  base::Result<> WriteAll(std::ostream& out) {
    TimeChunks chunks(run_, series_, run_.span.begin_ns,
                      kTicksPerChunk * SamplingIntervalNs(series_));
    while (true) {
      EPM_ASSIGN(const std::optional<TimeChunk> chunk, chunks.Next());
      if (!chunk) break;
      AddOthers(chunk->interval.end_ns);
      for (const ValueRef& value : ValuesInOrder(*chunk)) AddValue(value);
      Flush(out);
      EPM_TRY(StreamState(out));
    }
    AddOthers(std::numeric_limits<int64_t>::max());
    for (const LogLine& line : log_.TakeRest()) AddLog(line);
    Flush(out);
    return StreamState(out);
  }

 private:
  void Flush(std::ostream& out) {
    std::stable_sort(lines_.begin(), lines_.end(),
                     [](const Line& a, const Line& b) { return a.t_ns < b.t_ns; });
    for (const Line& line : lines_) out << line.text << '\n';
    lines_.clear();
  }

  // Events, steps and log lines up to `end_ns`.
  void AddOthers(int64_t end_ns) {
    for (; next_event_ < events_.size() && events_[next_event_]->t_ns <= end_ns; ++next_event_) {
      AddEvent(*events_[next_event_]);
    }
    for (auto& [process, next] : next_step_) {
      const model::StepTable& steps = run_.steps.at(process);
      for (; next < steps.size() && steps.t_ns[next] <= end_ns; ++next) {
        AddStep(process.rank, steps, next);
      }
    }
    for (const LogLine& line : log_.TakeUntil(end_ns)) AddLog(line);
  }

  void AddValue(const ValueRef& value) {
    const ExportedSeries& series = series_[value.series];
    JsonWriter json;
    Begin(run_, options_, value.t_ns, "metric", json);
    json.Field("metric", series.def->metric.prometheus).Field("unit", series.def->metric.unit);
    FieldIfKnown("host", host_, json);
    NumberText("rank", series.rank, json);
    NumberText("gpu", series.gpu, json);
    FieldIfKnown("uuid", series.uuid, json);
    if (!series.labels.empty()) {
      json.Key("labels").BeginObject();
      for (const auto& [key, text] : series.labels) json.Field(key, text);
      json.EndObject();
    }
    json.Key("value");
    WriteReal(value.value, json);
    Keep(value.t_ns, json);
  }

  void AddEvent(const Event& event) {
    JsonWriter json;
    Begin(run_, options_, event.t_ns, "event", json);
    json.Field("event", model::EventKindName(event.kind));
    FieldIfKnown("name", event.name, json);
    FieldIfKnown("host", host_, json);
    if (event.rank) json.Field("rank", *event.rank);
    if (event.epoch) json.Field("epoch", *event.epoch);
    if (event.step) json.Field("step", *event.step);
    json.Key("fields").BeginObject();
    for (const model::EventField& field : event.fields) {
      json.Key(field.key);
      if (const auto* whole = std::get_if<int64_t>(&field.value)) json.Int(*whole);
      if (const auto* real = std::get_if<double>(&field.value)) WriteReal(*real, json);
      if (const auto* text = std::get_if<std::string>(&field.value)) json.String(*text);
    }
    json.EndObject();
    Keep(event.t_ns, json);
  }

  void AddStep(int32_t rank, const model::StepTable& steps, size_t index) {
    JsonWriter json;
    Begin(run_, options_, steps.t_ns[index], "event", json);
    json.Field("event", model::EventKindName(model::EventKind::kStep));
    FieldIfKnown("host", host_, json);
    if (rank != model::kNoRank) json.Field("rank", rank);
    if (steps.epoch[index] != model::kNotKnown) json.Field("epoch", steps.epoch[index]);
    if (steps.step[index] != model::kNotKnown) json.Field("step", steps.step[index]);
    json.Key("fields").BeginObject();
    for (const auto& [name, column] : steps.columns) {
      if (model::IsAbsent(column[index])) continue;
      json.Key(name);
      WriteReal(column[index], json);
    }
    json.EndObject();
    Keep(steps.t_ns[index], json);
  }

  void AddLog(const LogLine& line) {
    JsonWriter json;
    Begin(run_, options_, line.t_ns, "log", json);
    FieldIfKnown("host", host_, json);
    json.Field("stream", line.stream == 2   ? "stderr"
                         : line.stream == 1 ? "stdout"
                                            : "output")
        .Field("message", line.text);
    Keep(line.t_ns, json);
  }

  void Keep(int64_t t_ns, JsonWriter& json) {
    json.EndObject();
    lines_.push_back({.t_ns = t_ns, .text = json.Take()});
  }

  const Run& run_;
  const ExportOptions& options_;
  std::string host_;
  std::vector<ExportedSeries> series_;
  LogLines log_;
  std::vector<const Event*> events_;
  size_t next_event_ = 0;
  std::map<model::ProcessKey, size_t> next_step_;
  std::vector<Line> lines_;
};

base::Result<> Write(const Run& run, const model::Report&, const ExportOptions& options,
                     std::ostream& out) {
  return Lines(run, options).WriteAll(out);
}

}  // namespace

extern const ExporterDef kSeriesJsonl{.subject = Subject::kSeries,
                                      .name = "jsonl",
                                      .extension = "jsonl",
                                      .summary = "metrics, events and log lines, one object a line",
                                      .Write = Write};

}  // namespace epochmeter::exporting
