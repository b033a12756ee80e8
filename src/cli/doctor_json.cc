// SPDX-License-Identifier: Apache-2.0
#include "base/json_writer.h"
#include "cli/doctor_report.h"

namespace epochmeter::cli {
namespace {

using base::JsonWriter;

// An empty text is unknown.
std::optional<std::string> Known(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

void WriteFact(JsonWriter& json, const std::string& id, const model::CheckFact& fact) {
  json.BeginObject().Field("check", id).Field("status", model::CheckStatusName(fact.status));
  json.Field("what", fact.what).Field("why", Known(fact.why)).Field("fix", Known(fact.fix));
  json.EndObject();
}

void WriteMetric(JsonWriter& json, const collect::ProbedMetric& metric) {
  const model::MetricInfo& info = metric.info;
  json.BeginObject().Field("name", info.name).Field("label", info.label);
  json.Field("field", info.field).Field("unit", info.unit);
  json.Field("scope", model::ScopeName(info.scope)).Field("measured", metric.measured());
  json.Field("value", metric.value).Field("entities", metric.entities);
  json.Field("known_entities", metric.known_entities).Field("reason", Known(metric.reason));
  json.EndObject();
}

void WriteSource(JsonWriter& json, const char* process, const collect::ProbedSource& source) {
  json.BeginObject().Field("name", source.name).Field("process", process);
  json.Field("period_s", source.period_s).Field("reads", source.reads);
  json.Field("cost_us", source.median_us).Field("failure", Known(source.failure));
  json.Key("metrics").BeginArray();
  for (const collect::ProbedMetric& metric : source.metrics) WriteMetric(json, metric);
  json.EndArray().EndObject();
}

void WriteGpu(JsonWriter& json, const collect::ProbedGpu& gpu) {
  json.BeginObject().Field("index", gpu.index).Field("code", gpu.code);
  json.Field("error", Known(gpu.error)).Field("name", Known(gpu.name));
  json.Field("uuid", Known(gpu.uuid)).Field("mig_mode", gpu.mig_mode);
  json.Field("mig_instances", gpu.mig_instances).Field("persistence_mode", gpu.persistence);
  json.Field("memory_total_bytes", gpu.memory_total_bytes).EndObject();
}

void WriteNvml(JsonWriter& json, const collect::MachineProbe& probe) {
  const collect::NvmlProbe& nvml = probe.nvml;
  json.Key("nvml").BeginObject().Field("asked", probe.gpu_asked).Field("open", nvml.open);
  json.Field("path", Known(nvml.path)).Field("driver_version", Known(nvml.driver_version));
  json.Field("nvml_version", Known(nvml.nvml_version));
  json.Field("failure", Known(probe.gpu_output.ended_badly));
  json.Key("gpus").BeginArray();
  for (const collect::ProbedGpu& gpu : nvml.gpus) WriteGpu(json, gpu);
  json.EndArray().Key("calls").BeginArray();
  for (const collect::ProbedCall& call : nvml.calls) {
    json.BeginObject().Field("call", call.name).Field("cost_us", call.median_us);
    json.Field("reads", call.reads).Field("code", call.code).Field("error", Known(call.error));
    json.EndObject();
  }
  json.EndArray().EndObject();
}

}  // namespace

std::string DoctorJson(const DoctorReport& report) {
  JsonWriter json;
  json.BeginObject().Field("host", report.host);
  json.Field("pid", report.pid > 0 ? std::optional(report.pid) : std::nullopt);
  json.Key("counts").BeginObject();
  for (const auto status : {model::CheckStatus::kOk, model::CheckStatus::kInfo,
                            model::CheckStatus::kLimited, model::CheckStatus::kFault}) {
    json.Field(model::CheckStatusName(status), report.Count(status));
  }
  json.EndObject().Key("checks").BeginArray();
  for (const CheckResult& check : report.checks) {
    for (const model::CheckFact& fact : check.facts) WriteFact(json, check.id, fact);
  }
  json.EndArray();
  WriteNvml(json, report.probe);
  json.Key("sources").BeginArray();
  for (const auto& source : report.probe.gpu_sources) WriteSource(json, "sampler", source);
  for (const auto& source : report.probe.host_sources) WriteSource(json, "recorder", source);
  json.EndArray().Key("cost_ratio").BeginObject();
  json.Field("gpu", CostRatio(report.probe.gpu_sources));
  json.Field("host", CostRatio(report.probe.host_sources)).EndObject();
  return json.EndObject().Take();
}

}  // namespace epochmeter::cli
