// SPDX-License-Identifier: Apache-2.0
#include "render/text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/strings.h"
#include "render/bars.h"
#include "render/bill_block.h"
#include "render/columns.h"
#include "render/epoch_table.h"
#include "render/finding_text.h"
#include "render/gpu_table.h"
#include "render/header.h"
#include "render/not_measured.h"
#include "render/page.h"
#include "render/run_items.h"
#include "render/units.h"

namespace epochmeter::render {
namespace {

using model::Report;
using model::Run;

constexpr size_t kMostItems = 12;  // of a list; the rest is counted

void AddHeader(const Run& run, const Report& report, Page* page) {
  std::vector<std::string> lines = HeaderLines(run, report, Phrase::kReport, page->options());
  lines[0] = page->Tinted(lines[0], Tint::kBold);
  page->Lines(lines);
}

void AddEpochs(const Report& report, const EpochTable& table, Page* page) {
  page->Title(page->Word(Phrase::kEpochs));
  if (table.lines.empty()) {
    page->Line(fmt::format("  {}", page->Word(Phrase::kNoEpochs)));
    return;
  }
  page->Lines(table.lines);
  if (table.has_incomplete) page->Paragraph(page->Word(Phrase::kIncomplete), "  * ", "    ");
  const bool own = std::find(table.too_wide.begin(), table.too_wide.end(),
                             page->Word(Phrase::kOwnMemory)) == table.too_wide.end();
  const bool at_least = own && std::any_of(report.epochs.begin(), report.epochs.end(),
                                           [](const model::EpochRow& row) {
                                             return row.own_gpus.memory.own_source == "allocator";
                                           });
  if (at_least) page->Paragraph(page->Word(Phrase::kAtLeast), "  ", "  ");
  if (!table.too_wide.empty()) {
    page->Paragraph(
        fmt::format("{}: {}", page->Word(Phrase::kTooWide), base::Join(table.too_wide, ", ")), "  ",
        "    ");
  }
  const std::vector<std::string> phases = MakePhaseTable(report, page->options());
  if (phases.empty()) return;
  page->Title(page->Word(Phrase::kPhases));
  page->Lines(phases);
}

void AddList(Phrase title, const std::vector<std::string>& items, size_t most,
             std::string_view hint, Page* page) {
  if (items.empty()) return;
  page->Title(page->Word(title));
  page->Items(items, most, hint);
}

void AddNotMeasured(const Report& report, const std::vector<std::string>& unknown, Page* page) {
  constexpr size_t kMostReasons = 6;
  std::vector<std::string> items = NotMeasuredItems(report, page->options().language);
  if (!unknown.empty()) {
    items.insert(items.begin(),
                 fmt::format("{}: {}", base::Join(unknown, ", "), page->Word(Phrase::kNoValue)));
  }
  AddList(Phrase::kNotMeasured, items, kMostReasons, page->Word(Phrase::kAllFigures), page);
}

void AddFiles(Page* page) {
  if (page->options().files.empty()) return;
  page->Title(page->Word(Phrase::kFiles));
  for (const std::string& file : page->options().files) page->Line("  " + Plain(file));
}

}  // namespace

std::string RenderReport(const Run& run, const Report& report, const TextOptions& options) {
  Page page(options);
  const Language language = page.options().language;
  AddHeader(run, report, &page);
  AddVerdict(run, report, &page);
  const std::vector<Gauge> gauges = GaugesOf(run, report, language);
  if (!gauges.empty()) page.Line("");
  AddGauges(gauges, &page);
  const EpochTable table = MakeEpochTable(report, page.options());
  AddEpochs(report, table, &page);
  AddGpuTable(run, report, &page);
  AddList(Phrase::kIncidents, IncidentItems(run, report, language), kMostItems, {}, &page);
  AddList(Phrase::kExceptions, ExceptionItems(run, language), kMostItems, {}, &page);
  AddFindings(run, report, &page);
  if (report.bill) {
    AddList(Phrase::kBill, BillItems(*report.bill, language), kMostItems, {}, &page);
  }
  AddList(Phrase::kLosses, LossItems(run, language), kMostItems, {}, &page);
  AddNotMeasured(report, table.unknown, &page);
  AddFiles(&page);
  return page.Take();
}

}  // namespace epochmeter::render
