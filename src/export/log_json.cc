// SPDX-License-Identifier: Apache-2.0
#include "export/log_json.h"

#include <algorithm>
#include <set>
#include <string>

#include "base/clock.h"
#include "export/log_rows.h"
#include "export/report_json.h"

namespace epochmeter::exporting {
namespace {

using base::JsonWriter;
using model::LogField;
using model::LogPoint;
using model::LogReport;
using model::LogSpread;

void WriteTime(std::string_view key, const std::optional<int64_t>& wall_ns, JsonWriter& json) {
  json.Key(key);
  if (wall_ns) {
    json.String(base::FormatUtc(*wall_ns));
  } else {
    json.Null();
  }
}

void WritePoint(std::string_view key, const std::optional<LogPoint>& point, JsonWriter& json) {
  json.Key(key);
  if (point) {
    json.BeginObject();
    WritePointMembers(*point, json);
    json.EndObject();
  } else {
    json.Null();
  }
}

void WriteSpread(std::string_view key, const std::optional<LogSpread>& spread, JsonWriter& json) {
  json.Key(key);
  if (!spread) {
    json.Null();
    return;
  }
  json.BeginObject().Field("count", spread->count).Field("mean", spread->mean);
  json.Field("median", spread->median).Field("min", spread->min).Field("max", spread->max);
  json.Key("max_at_file").Uint(spread->max_file).Key("max_at_line").Uint(spread->max_line);
  json.Key("sampled").Bool(spread->sampled).EndObject();
}

void WriteMessage(const model::Message& message, JsonWriter& json) {
  json.BeginObject().Field("en", message.en).Field("zh", message.zh).EndObject();
}

void WriteShare(const model::LogShare& share, JsonWriter& json) {
  json.Field("records", share.records).Field("events", share.events);
  json.Field("bad_events", share.bad_events).Field("last_epoch", share.last_epoch);
  json.Field("last_step", share.last_step).Key("last_line");
  share.last_line == 0 ? json.Null() : json.Uint(share.last_line);
  WriteTime("last_timestamp", share.last_wall_ns, json);
  json.Field("mean_step_time_s", share.mean_step_s);
}

void WriteFiles(const LogReport& report, JsonWriter& json) {
  json.Key("files").BeginArray();
  for (const model::LogFileRow& file : report.files) {
    json.BeginObject().Field("name", file.name).Field("rank", file.rank);
    WriteShare(file, json);
    json.Field("eval_records", file.eval_records).EndObject();
  }
  json.EndArray().Key("ranks").BeginArray();
  for (const model::LogRankRow& rank : report.ranks) {
    json.BeginObject().Field("rank", rank.rank).Key("file").Uint(rank.file);
    WriteShare(rank, json);
    json.Key("first_bad");
    rank.first_bad.empty() ? json.Null() : json.String(rank.first_bad);
    json.EndObject();
  }
  json.EndArray().Field("slowest_rank", report.slowest_rank);
}

void WriteCounts(const LogReport& report, JsonWriter& json) {
  json.Field("bytes", report.bytes).Field("lines", report.lines);
  json.Field("cut_lines", report.cut_lines).Field("bad_bytes", report.bad_bytes);
  json.Field("records", report.records).Field("eval_records", report.eval_records);
  json.Field("summary_records", report.summary_records);
  json.Field("inference_records", report.inference_records);
  json.Field("starts", report.starts).Field("step_goes_back", report.step_goes_back);
}

void WriteProgress(const LogReport& report, JsonWriter& json) {
  json.Key("progress").BeginObject();
  json.Field("first_epoch", report.first_epoch).Field("last_epoch", report.last_epoch);
  json.Field("epochs", report.epochs).Field("epochs_seen", report.epochs_seen);
  json.Field("steps_per_epoch", report.steps_per_epoch).Field("total_steps", report.total_steps);
  json.Field("highest_step", report.highest_step).Field("eta_s", report.eta_s);
  WriteTime("begin", report.begin_wall_ns, json);
  WriteTime("end", report.end_wall_ns, json);
  json.EndObject();
}

void WriteDerived(const LogReport& report, JsonWriter& json) {
  const auto figure = [&report](double LogSpread::*member) {
    return report.step_time ? std::optional((*report.step_time).*member) : std::nullopt;
  };
  json.Key("derived").BeginObject().Field("data_share", report.data_share);
  json.Field("median_step_time_s", figure(&LogSpread::median));
  json.Field("mean_step_time_s", figure(&LogSpread::mean));
  json.Field("max_step_time_s", figure(&LogSpread::max));
  json.Key("max_at_line");
  report.step_time ? json.Uint(report.step_time->max_line) : json.Null();
  json.Field("step_time_from", report.step_time_from);
  WriteSpread("estimated_step_time_s", report.estimated_step_time, json);
  WriteSpread("data_time_s", report.data_time, json);
  json.Key("data_time_place");
  report.data_time ? json.String(report.data_time_place) : json.Null();
  json.Key("data_time_why");
  report.data_time ? WriteMessage(report.data_time_why, json) : void(json.Null());
  WriteSpread("throughput", report.throughput, json);
  json.Field("throughput_key", report.throughput_key);
  json.Field("throughput_unit", report.throughput_unit);
  WriteSpread("memory_bytes", report.memory, json);
  WriteSpread("loss", report.loss, json);
  json.Field("loss_key", report.loss_key);
  for (const auto& [key, number] :
       {std::pair("loss_first", report.loss_first), std::pair("loss_last", report.loss_last)}) {
    json.Key(key);
    number ? WritePrinted(*number, json) : void(json.Null());
  }
  json.Field("non_finite_losses", report.non_finite_losses);
  json.EndObject();
}

void WriteNumbers(const model::LogNumbers& numbers, JsonWriter& json) {
  std::set<std::string_view> keys;
  for (const auto& [key, number] : numbers) {
    if (keys.insert(key).second) WriteLogNumber(number, json.Key(key));
  }
}

void WriteEvents(const LogReport& report, JsonWriter& json) {
  json.Key("events").BeginArray();
  for (const model::LogEventRow& event : report.events) {
    json.BeginObject().Field("kind", event.kind).Field("count", event.count);
    json.Key("file").Uint(event.file).Key("lines").BeginArray();
    for (const uint64_t line : event.lines) json.Uint(line);
    json.EndArray().Field("rank", event.rank);
    WriteTime("timestamp", event.wall_ns, json);
    json.Field("text", event.text).Field("bad", event.bad).Key("numbers").BeginObject();
    WriteNumbers(event.numbers, json);
    json.EndObject().Field("last_line", event.last_line).Key("messages").BeginArray();
    for (const model::LogMessageRow& message : event.messages) {
      json.BeginObject().Field("text", message.text).Field("count", message.count);
      json.Key("file").Uint(message.file).Field("line", message.line);
      json.Field("last_line", message.last_line).Key("numbers").BeginObject();
      WriteNumbers(message.numbers, json);
      json.EndObject().EndObject();
    }
    json.EndArray().EndObject();
  }
  json.EndArray().Key("root_cause");
  if (!report.cause) {
    json.Null();
    return;
  }
  json.BeginObject().Field("kind", report.cause->kind).Field("text", report.cause->text);
  json.Key("file").Uint(report.cause->file).Key("line").Uint(report.cause->line);
  json.Field("rank", report.cause->rank);
  json.Field("confidence", report.cause->confidence).Key("why");
  WriteMessage(report.cause->why, json);
  json.EndObject();
}

void WriteMessages(const LogReport& report, JsonWriter& json) {
  const model::LogMessages& messages = report.messages;
  json.Key("messages").BeginObject().Field("lines", messages.lines);
  json.Field("kinds", messages.kinds).Field("unclustered", messages.unclustered);
  json.Key("templates").BeginArray();
  for (const model::LogTemplate& row : messages.templates) {
    json.BeginObject().Field("text", row.text).Field("example", row.example);
    json.Field("alarm", row.alarm).Field("count", row.count);
    json.Key("file").Uint(row.file).Field("line", row.line).Field("last_line", row.last_line);
    WriteTime("timestamp", row.wall_ns, json);
    json.Key("counts").BeginArray();
    for (const uint32_t count : row.counts) json.Uint(count);
    json.EndArray().EndObject();
  }
  json.EndArray().Key("stretches").BeginArray();
  for (const model::LogStretch& stretch : messages.stretches) {
    json.BeginObject().Field("line", stretch.line).Field("step", stretch.step);
    WriteTime("timestamp", stretch.wall_ns, json);
    json.EndObject();
  }
  json.EndArray().EndObject();
}

void WriteAnomalies(const LogReport& report, JsonWriter& json) {
  json.Key("anomalies").BeginArray();
  for (const model::LogAnomaly& anomaly : report.anomalies) {
    json.BeginObject().Field("kind", anomaly.kind).Field("text", anomaly.text);
    json.Field("example", anomaly.example).Field("alarm", anomaly.alarm);
    json.Field("count", anomaly.count).Field("total", anomaly.total);
    json.Field("beside", anomaly.beside).Key("file").Uint(anomaly.file);
    json.Field("line", anomaly.line).Field("last_line", anomaly.last_line);
    json.Field("step_before", anomaly.step_before).Field("step_after", anomaly.step_after);
    WriteMessage(anomaly.words, json.Key("words"));
    json.EndObject();
  }
  json.EndArray();
}

void WriteFindings(const LogReport& report, const model::Run& run, JsonWriter& json) {
  json.Key("findings").BeginArray();
  for (const model::LogFinding& found : report.findings) {
    json.BeginObject();
    WriteFindingMembers(run, found.finding, json);
    json.Key("lines").BeginArray();
    for (const model::LogPlace& place : found.lines) {
      json.BeginObject().Key("file").Uint(place.file).Key("line").Uint(place.line).EndObject();
    }
    json.EndArray().EndObject();
  }
  json.EndArray();
}

void WriteShapes(const LogReport& report, JsonWriter& json) {
  json.Key("shapes").BeginArray();
  for (const model::LogShape& shape : report.shapes) {
    json.BeginObject().Field("kind", shape.first.kind).Field("records", shape.records);
    json.Key("file").Uint(shape.first.file).Key("line").Uint(shape.first.line);
    json.Key("keys").BeginArray();
    for (const LogField& field : shape.first.fields) json.String(field.key);
    json.EndArray().Field("sample", shape.sample).EndObject();
  }
  json.EndArray().Key("trends").BeginObject();
  for (const model::LogTrend& trend : report.trends) {
    json.Key(trend.name).BeginArray();
    for (const double mean : trend.means) WritePrinted(mean, json);
    json.EndArray();
  }
  json.EndObject();
}

void WriteNotes(const LogReport& report, JsonWriter& json) {
  json.Key("notes").BeginArray();
  for (const std::string& note : report.notes) json.String(note);
  json.EndArray().Key("not_known").BeginArray();
  for (const model::Message& message : report.not_known) WriteMessage(message, json);
  json.EndArray().Key("run");
  report.run_path.empty() ? json.Null() : json.String(report.run_path);
}

}  // namespace

void WriteLogData(const LogReport& report, const model::Run& run, JsonWriter& json) {
  json.BeginObject();
  WriteFiles(report, json);
  WriteCounts(report, json);
  WritePoint("first", report.first, json);
  WritePoint("last", report.last, json);
  WritePoint("first_eval", report.first_eval, json);
  WritePoint("last_eval", report.last_eval, json);
  WriteProgress(report, json);
  WriteDerived(report, json);
  WriteEvents(report, json);
  WriteMessages(report, json);
  WriteAnomalies(report, json);
  WriteFindings(report, run, json);
  WriteShapes(report, json);
  WriteNotes(report, json);
  json.EndObject();
}

}  // namespace epochmeter::exporting
