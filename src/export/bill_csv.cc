// SPDX-License-Identifier: Apache-2.0
// One row a line of the bill; the column `by` says of what: total, epoch, phase, rank, gpu. Times
// are whole ns; an empty cell is unknown.
#include "export/exporters.h"
#include "export/text_fields.h"
#include "model/bill.h"

namespace epochmeter::exporting {
namespace {

using model::Bill;
using model::BillLine;

std::vector<std::string> Header() {
  std::vector<std::string> names = {"run_id", "by",  "epoch",    "phase",   "rank",
                                    "pid",    "gpu", "gpu_name", "total_ns"};
  for (size_t i = 0; i < model::kTimeUseCount; ++i) {
    names.push_back(std::string(model::TimeUseName(static_cast<model::TimeUse>(i))) + "_ns");
  }
  for (const char* name :
       {"effective_ns", "activity_ratio", "activity_coverage_ratio", "activity_source", "energy_j",
        "energy_coverage_ratio", "counter_j", "counter_coverage_ratio", "integral_j",
        "integral_coverage_ratio", "cost", "cost_coverage_ratio", "currency", "electricity_cost",
        "carbon_g"}) {
    names.emplace_back(name);
  }
  return names;
}

template <typename T>
std::string Cell(const std::optional<T>& value) {
  return value ? std::to_string(*value) : "";
}

void WriteLine(const std::string& run_id, std::string_view by, const Bill& bill,
               const BillLine& line, std::ostream& out) {
  std::vector<std::string> cells = {CsvCell(run_id),
                                    std::string(by),
                                    Cell(line.epoch),
                                    by == "phase" ? CsvCell(line.name) : "",
                                    Cell(line.rank),
                                    Cell(line.pid),
                                    Cell(line.gpu),
                                    by == "gpu" ? CsvCell(line.name) : "",
                                    std::to_string(line.total_ns)};
  for (const model::UseFigures& use : line.uses) cells.push_back(std::to_string(use.ns));
  cells.push_back(Cell(line.effective_ns));
  cells.push_back(CsvNumber(line.activity_ratio));
  cells.push_back(CsvNumber(line.activity_coverage_ratio));
  cells.push_back(line.activity_ratio ? bill.activity_source : "");
  cells.push_back(CsvNumber(line.energy_j));
  cells.push_back(CsvNumber(line.energy_coverage_ratio));
  cells.push_back(CsvNumber(line.counter_j));
  cells.push_back(CsvNumber(line.counter_coverage_ratio));
  cells.push_back(CsvNumber(line.integral_j));
  cells.push_back(CsvNumber(line.integral_coverage_ratio));
  cells.push_back(CsvNumber(line.cost));
  cells.push_back(CsvNumber(line.cost_coverage_ratio));
  cells.push_back(CsvCell(bill.rates.currency));
  cells.push_back(CsvNumber(line.electricity_cost));
  cells.push_back(CsvNumber(line.carbon_g));
  WriteCsvRow(cells, out);
}

base::Result<> Write(const model::Run& run, const model::Report& report,
                     const ExportOptions& options, std::ostream& out) {
  if (!options.without_header) WriteCsvRow(Header(), out);
  if (report.bill) {
    const Bill& bill = *report.bill;
    const std::string run_id = run.info ? run.info->run_id : "";
    WriteLine(run_id, "total", bill, bill.total, out);
    const auto write = [&](std::string_view by, const std::vector<BillLine>& lines) {
      if (!options.by.empty() && options.by != by) return;
      for (const BillLine& line : lines) WriteLine(run_id, by, bill, line, out);
    };
    write("epoch", bill.epochs);
    write("phase", bill.phases);
    write("rank", bill.ranks);
    write("gpu", bill.gpus);
  }
  return StreamState(out);
}

}  // namespace

extern const ExporterDef kBillCsv{.subject = Subject::kBill,
                                  .name = "csv",
                                  .extension = "csv",
                                  .summary = "one row an epoch, phase, rank and GPU",
                                  .Write = Write};

}  // namespace epochmeter::exporting
