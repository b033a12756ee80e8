// SPDX-License-Identifier: Apache-2.0
#include "export/bill_json.h"

#include "export/exporters.h"
#include "export/json_document.h"
#include "export/text_fields.h"

namespace epochmeter::exporting {
namespace {

using base::JsonWriter;
using model::Bill;
using model::BillLine;

void WriteRates(const model::Rates& rates, JsonWriter& json) {
  json.Key("rates").BeginObject().Key("currency");
  rates.currency.empty() ? json.Null() : json.String(rates.currency);
  json.Key("gpus").BeginArray();
  for (const model::GpuPrice& price : rates.gpus) {
    json.BeginObject()
        .Field("name", price.name)
        .Field("gpu_hour", price.gpu_hour)
        .Field("evaluation_gpu_hour", price.evaluation_gpu_hour)
        .Field("idle_gpu_hour", price.idle_gpu_hour)
        .EndObject();
  }
  json.EndArray()
      .Field("electricity_kwh", rates.electricity_kwh)
      .Field("pue", rates.pue)
      .Field("carbon_g_per_kwh", rates.carbon_g_per_kwh)
      .EndObject();
}

using WriteKey = void (*)(const BillLine&, JsonWriter&);

void WriteLines(std::string_view key, const std::vector<BillLine>& lines, WriteKey write_key,
                JsonWriter& json) {
  json.Key(key).BeginArray();
  for (const BillLine& line : lines) {
    json.BeginObject();
    write_key(line, json);
    WriteBillSums(line, json);
    json.EndObject();
  }
  json.EndArray();
}

base::Result<> Write(const model::Run& run, const model::Report& report,
                     const ExportOptions& options, std::ostream& out) {
  JsonWriter json(options.indent);
  BeginDocument(1, json);
  json.Key("data").BeginObject().Key("run_id");
  run.info ? json.String(run.info->run_id) : json.Null();
  for (const auto& [key, t_ns] :
       {std::pair("begin", run.Recorded().begin_ns), std::pair("end", run.Recorded().end_ns)}) {
    const std::string text = TimeText(run, t_ns, TimeFormat::kUtc);
    json.Key(key);
    text.empty() ? json.Null() : json.String(text);
  }
  json.Key("bill");
  if (report.bill) {
    WriteBill(*report.bill, json);
  } else {
    json.Null();
  }
  json.EndObject();
  EndDocument(options.warnings, json);
  out << json.text() << '\n';
  return StreamState(out);
}

}  // namespace

void WriteBillSums(const BillLine& line, JsonWriter& json) {
  json.Field("total_ns", line.total_ns).Key("uses").BeginObject();
  for (size_t i = 0; i < model::kTimeUseCount; ++i) {
    const model::UseFigures& use = line.uses[i];
    if (use.ns == 0) continue;
    json.Key(model::TimeUseName(static_cast<model::TimeUse>(i))).BeginObject();
    json.Field("ns", use.ns)
        .Field("energy_j", line.energy_j ? std::optional(use.energy_j) : std::nullopt)
        .Field("cost", line.cost ? std::optional(use.cost) : std::nullopt)
        .EndObject();
  }
  json.EndObject()
      .Field("activity_ratio", line.activity_ratio)
      .Field("activity_coverage_ratio", line.activity_coverage_ratio)
      .Field("effective_ns", line.effective_ns)
      .Field("energy_j", line.energy_j)
      .Field("energy_coverage_ratio", line.energy_coverage_ratio)
      .Field("counter_j", line.counter_j)
      .Field("counter_coverage_ratio", line.counter_coverage_ratio)
      .Field("integral_j", line.integral_j)
      .Field("integral_coverage_ratio", line.integral_coverage_ratio)
      .Field("cost", line.cost)
      .Field("cost_coverage_ratio", line.cost_coverage_ratio)
      .Field("electricity_cost", line.electricity_cost)
      .Field("carbon_g", line.carbon_g);
}

void WriteBill(const Bill& bill, JsonWriter& json) {
  json.BeginObject()
      .Field("basis", bill.basis)
      .Field("wall_ns", bill.wall_ns)
      .Field("devices", bill.devices)
      .Key("activity_source");
  bill.activity_source.empty() ? json.Null() : json.String(bill.activity_source);
  json.Field("mixed_activity", bill.mixed_activity)
      .Field("energy_disagreement_ratio", bill.energy_disagreement_ratio);
  WriteRates(bill.rates, json);
  json.Key("total").BeginObject();
  WriteBillSums(bill.total, json);
  json.EndObject();
  const auto named = [](const BillLine& line, JsonWriter& out) { out.Field("name", line.name); };
  WriteLines(
      "epochs", bill.epochs,
      [](const BillLine& line, JsonWriter& out) { out.Field("epoch", line.epoch); }, json);
  WriteLines("phases", bill.phases, named, json);
  WriteLines(
      "ranks", bill.ranks,
      [](const BillLine& line, JsonWriter& out) {
        out.Field("rank", line.rank).Field("pid", line.pid);
      },
      json);
  WriteLines(
      "gpus", bill.gpus,
      [](const BillLine& line, JsonWriter& out) {
        out.Field("gpu", line.gpu).Field("name", line.name);
      },
      json);
  json.Key("notes").BeginArray();
  for (const model::Message& note : bill.notes) {
    json.BeginObject().Field("text", note.en).Field("text_zh", note.zh).EndObject();
  }
  json.EndArray().EndObject();
}

extern const ExporterDef kBillJson{.subject = Subject::kBill,
                                   .name = "json",
                                   .extension = "json",
                                   .summary = "the bill as one object",
                                   .Write = Write};

}  // namespace epochmeter::exporting
