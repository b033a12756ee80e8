// SPDX-License-Identifier: Apache-2.0
#include "export/report_json.h"

#include <cmath>

#include "export/bill_json.h"
#include "export/exporters.h"
#include "export/json_document.h"
#include "export/text_fields.h"

namespace epochmeter::exporting {
namespace {

using base::JsonWriter;
using model::EpochRow;
using model::GpuStats;
using model::Report;
using model::Run;
using model::Stat;

constexpr int kSchemaVersion = 1;

void WriteTime(const Run& run, std::string_view key, int64_t t_ns, JsonWriter& json) {
  const std::string text = TimeText(run, t_ns, TimeFormat::kUtc);
  if (text.empty()) {
    json.Key(key).Null();
  } else {
    json.Field(key, text);
  }
}

void WriteStat(const Stat& stat, JsonWriter& json) {
  json.BeginObject().Field("count", stat.count);
  if (stat.total) {
    json.Field("total", stat.total);
    if (stat.at_least) json.Key("at_least").Bool(true);
    json.EndObject();
    return;
  }
  json.Field("mean", stat.mean)
      .Field("min", stat.min)
      .Field("max", stat.max)
      .Field("p50", stat.p50)
      .Field("p95", stat.p95)
      .Field("last", stat.last)
      .Field("coverage_ratio", stat.coverage_ratio)
      .EndObject();
}

void WriteStats(const model::StatTable& table, JsonWriter& json) {
  for (const auto& [field, stat] : table) {
    json.Key(field);
    WriteStat(stat, json);
  }
}

void WriteStatTable(std::string_view key, const model::StatTable& table, JsonWriter& json) {
  json.Key(key).BeginObject();
  WriteStats(table, json);
  json.EndObject();
}

// A loss of NaN is known, not absent, and JSON has no number for it.
void WriteScalar(double value, JsonWriter& json) {
  if (std::isfinite(value)) {
    json.Double(value);
  } else {
    json.String(std::isnan(value) ? "NaN" : value < 0 ? "-Infinity" : "Infinity");
  }
}

void WriteScalars(std::string_view key, const model::ScalarTable& table, JsonWriter& json) {
  json.Key(key).BeginObject();
  for (const auto& [name, value] : table) {
    json.Key(name);
    WriteScalar(value, json);
  }
  json.EndObject();
}

void WriteTextOrNull(std::string_view key, const std::string& text, JsonWriter& json) {
  if (text.empty()) {
    json.Key(key).Null();
  } else {
    json.Field(key, text);
  }
}

void WriteGpus(const std::vector<GpuStats>& gpus, JsonWriter& json) {
  json.Key("gpus").BeginArray();
  for (const GpuStats& gpu : gpus) {
    json.BeginObject();
    if (gpu.gpu >= 0) {
      json.Field("gpu", gpu.gpu);
    } else {
      json.Key("gpu").Null();
    }
    WriteTextOrNull("uuid", gpu.uuid, json);
    json.Key("job");
    if (gpu.of_job) {
      json.Bool(*gpu.of_job);
    } else {
      json.Null();
    }
    json.Field("energy_j", gpu.energy_j);
    WriteTextOrNull("energy_source", gpu.energy_source, json);
    WriteStats(gpu.stats, json);
    json.EndObject();
  }
  json.EndArray();
}

void WritePhases(const std::vector<model::PhaseStats>& phases, JsonWriter& json) {
  json.Key("phases").BeginArray();
  for (const model::PhaseStats& phase : phases) {
    json.BeginObject()
        .Field("phase", phase.phase)
        .Field("count", phase.count)
        .Field("total_s", phase.total_s);
    WriteScalars("scalars", phase.scalars, json);
    json.EndObject();
  }
  json.EndArray();
}

void WriteAfterTraining(const Report& report, JsonWriter& json) {
  json.Key("after_training").BeginArray();
  for (const model::AfterTraining& after : report.after_training) {
    json.BeginObject().Field("rank", after.rank).Field("pid", after.pid);
    WriteScalars("scalars", after.scalars, json);
    WritePhases(after.phases, json);
    json.EndObject();
  }
  json.EndArray();
}

void WriteIncidents(const Run& run, const Report& report, JsonWriter& json) {
  json.Key("incidents").BeginArray();
  for (const model::Incident& incident : report.incidents) {
    json.BeginObject();
    WriteTime(run, "time", incident.t_ns, json);
    json.Field("since_start_s", base::SecondsFromNs(incident.t_ns - run.Recorded().begin_ns))
        .Field("epoch", incident.epoch)
        .Field("gpu", incident.gpu)
        .Field("kind", incident.kind)
        .Field("text", incident.text);
    WriteTextOrNull("text_zh", incident.text_zh, json);
    json.EndObject();
  }
  json.EndArray();
}

void WriteOwnGpus(const model::GpuGroup& own, JsonWriter& json) {
  json.Key("own_gpus").BeginObject().Key("gpus").BeginArray();
  for (const int32_t gpu : own.gpus) json.Int(gpu);
  json.EndArray().Key("measured").BeginArray();
  for (const int32_t gpu : own.measured) json.Int(gpu);
  json.EndArray()
      .Field("utilization_ratio", own.utilization_ratio)
      .Field("sm_active_ratio", own.sm_active_ratio)
      .Field("memory_used_max_bytes", own.memory_used_max_bytes)
      .Field("power_w", own.power_w)
      .Field("temperature_max_c", own.temperature_max_c)
      .Field("own_memory_max_bytes", own.memory.own_max_bytes)
      .Field("others_memory_max_bytes", own.memory.others_max_bytes)
      .Field("unexplained_memory_max_bytes", own.memory.unexplained_max_bytes);
  WriteTextOrNull("own_memory_source", own.memory.own_source, json);
  json.EndObject();
}

void WriteRun(const Run& run, const Report& report, JsonWriter& json) {
  json.Key("run").BeginObject();
  WriteTextOrNull("run_id", run.info ? run.info->run_id : "", json);
  WriteTime(run, "begin", run.Recorded().begin_ns, json);
  WriteTime(run, "end", run.Recorded().end_ns, json);
  json.Field("duration_s", report.duration_s).Field("progress_source", report.progress_source);
  WriteTextOrNull("framework", report.framework, json);
  json.Field("energy_j", report.energy_j);
  json.Key("exit");
  if (run.end) {
    json.BeginObject()
        .Field("reason", run.end->reason)
        .Field("exit_code", run.end->exit_code)
        .Field("signal", run.end->signal);
    WriteTextOrNull("oom_cgroup", report.oom_cgroup, json);
    json.EndObject();
  } else {
    json.Null();
  }
  json.Key("attributes").BeginObject();
  if (run.info) {
    for (const auto& [key, value] : run.info->attributes) json.Field(key, value);
  }
  json.EndObject().EndObject();
}

// A sentence in each language: "summary" and "summary_zh"; null where there is none.
void WriteMessage(const std::string& key, const model::Message& message, JsonWriter& json) {
  if (message.empty()) {
    json.Key(key).Null().Key(key + "_zh").Null();
    return;
  }
  json.Field(key, message.en).Field(key + "_zh", message.zh);
}

void WriteEvidence(const Run& run, const model::Evidence& evidence, JsonWriter& json) {
  json.BeginObject().Field("series", evidence.series);
  const model::Interval interval = InRun(run, evidence.interval);
  WriteTime(run, "begin", interval.begin_ns, json);
  WriteTime(run, "end", interval.end_ns, json);
  const int64_t start_ns = run.Recorded().begin_ns;
  json.Field("begin_s", base::SecondsFromNs(interval.begin_ns - start_ns))
      .Field("end_s", base::SecondsFromNs(interval.end_ns - start_ns));
  WriteScalars("values", evidence.values, json);
  WriteMessage("note", evidence.note, json);
  json.Key("steps").BeginArray();
  for (const int64_t step : evidence.steps) json.Int(step);
  json.EndArray().EndObject();
}

void WriteAdvice(const model::Finding& finding, JsonWriter& json) {
  json.Key("advice").BeginArray();
  for (const model::Advice& advice : finding.advice) {
    json.BeginObject();
    json.Key("framework");
    advice.framework.empty() ? json.Null() : json.String(advice.framework);
    WriteMessage("text", advice.text, json);
    json.Key("code");
    advice.code.empty() ? json.Null() : json.String(advice.code);
    json.EndObject();
  }
  json.EndArray();
}

void WriteFindings(const Run& run, const Report& report, JsonWriter& json) {
  json.Key("findings").BeginArray();
  for (const model::Finding& finding : report.findings) {
    json.BeginObject();
    WriteFindingMembers(run, finding, json);
    json.EndObject();
  }
  json.EndArray();
}

std::string_view LossSeverityName(model::LossSeverity severity) {
  switch (severity) {
    case model::LossSeverity::kInfo:
      return "info";
    case model::LossSeverity::kDataLoss:
      return "data_loss";
    case model::LossSeverity::kError:
      return "error";
  }
  return "error";
}

void WriteLosses(const Run& run, JsonWriter& json) {
  json.Key("losses").BeginArray();
  for (const model::Loss& loss : run.losses) {
    json.BeginObject();
    WriteTime(run, "time", loss.t_ns, json);
    json.Field("kind", loss.kind)
        .Field("severity", LossSeverityName(loss.severity))
        .Field("count", loss.count)
        .Field("detail", loss.detail)
        .Field("help", loss.help)
        .EndObject();
  }
  json.EndArray();
}

void WriteNotMeasured(const Report& report, JsonWriter& json) {
  json.Key("not_measured").BeginArray();
  for (const model::NotMeasured& item : report.not_measured) {
    json.BeginObject().Field("subject", item.subject);
    WriteTextOrNull("subject_zh", item.subject_zh, json);
    json.Field("reason", item.reason);
    WriteTextOrNull("reason_zh", item.reason_zh, json);
    json.EndObject();
  }
  json.EndArray();
}

base::Result<> Write(const Run& run, const Report& report, const ExportOptions& options,
                     std::ostream& out) {
  JsonWriter json(options.indent);
  BeginDocument(kSchemaVersion, json);
  json.Key("data");
  WriteReportData(run, report, json,
                  options.brief_epochs ? EpochDetail::kBrief : EpochDetail::kFull);
  EndDocument(options.warnings, json);
  out << json.text() << '\n';
  return StreamState(out);
}

}  // namespace

void WriteFindingMembers(const Run& run, const model::Finding& finding, JsonWriter& json) {
  json.Field("rule", finding.rule).Field("severity", model::SeverityName(finding.severity));
  WriteMessage("title", finding.title, json);
  WriteMessage("summary", finding.summary, json);
  WriteMessage("explanation", finding.explanation, json);
  WriteAdvice(finding, json);
  json.Field("rank", finding.rank)
      .Field("pid", finding.pid)
      .Field("gpu", finding.gpu)
      .Field("confidence", finding.confidence)
      .Field("lost_gpu_s", finding.lost_gpu_s)
      .Field("gain_ratio", finding.gain_ratio)
      .Key("evidence")
      .BeginArray();
  for (const model::Evidence& evidence : finding.evidence) WriteEvidence(run, evidence, json);
  json.EndArray();
}

void WriteEpochMembers(const Run& run, const EpochRow& row, JsonWriter& json, EpochDetail detail) {
  json.Field("rank", row.rank).Field("pid", row.pid);
  if (row.epoch == model::kNoEpoch) {
    json.Key("epoch").Null();
  } else {
    json.Field("epoch", row.epoch);
  }
  WriteTime(run, "begin", row.begin_ns, json);
  WriteTime(run, "end", row.end_ns, json);
  json.Field("complete", row.complete)
      .Field("duration_s", row.duration_s)
      .Field("steps", row.steps_known ? std::optional(row.steps) : std::nullopt)
      .Field("samples", row.samples);
  json.Key("step_s");
  WriteStat(row.step_s, json);
  json.Key("data_wait_s");
  WriteStat(row.data_wait_s, json);
  json.Field("data_wait_ratio", row.data_wait_ratio);
  WriteScalars("scalars", row.scalars, json);
  WritePhases(row.phases, json);
  json.Field("energy_j", row.energy_j);
  WriteOwnGpus(row.own_gpus, json);
  if (detail == EpochDetail::kFull) {
    WriteGpus(row.gpus, json);
    WriteStatTable("host", row.host, json);
    WriteStatTable("process", row.process, json);
  }
  WriteStatTable("framework", row.framework, json);
}

void WriteReportData(const Run& run, const Report& report, JsonWriter& json, EpochDetail detail) {
  json.BeginObject();
  WriteRun(run, report, json);
  json.Key("epochs").BeginArray();
  for (const EpochRow& row : report.epochs) {
    json.BeginObject();
    WriteEpochMembers(run, row, json, detail);
    json.EndObject();
  }
  json.EndArray();
  WriteAfterTraining(report, json);
  WriteIncidents(run, report, json);
  WriteGpus(report.gpus, json);
  WriteStatTable("host", report.host, json);
  WriteStatTable("process", report.process, json);
  WriteFindings(run, report, json);
  json.Key("rules_judged").BeginArray();
  for (const std::string& rule : report.rules_judged) json.String(rule);
  json.EndArray();
  WriteLosses(run, json);
  WriteNotMeasured(report, json);
  json.Key("bill");
  if (report.bill) {
    WriteBill(*report.bill, json);
  } else {
    json.Null();
  }
  json.EndObject();
}

extern const ExporterDef kReportJson{.subject = Subject::kReport,
                                     .name = "json",
                                     .extension = "json",
                                     .summary = "the whole report as one object",
                                     .Write = Write};

}  // namespace epochmeter::exporting
