// SPDX-License-Identifier: Apache-2.0
// The short form of the text report, and the line that stands for a run.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/strings.h"
#include "render/bars.h"
#include "render/columns.h"
#include "render/epoch_table.h"
#include "render/finding_text.h"
#include "render/header.h"
#include "render/not_measured.h"
#include "render/page.h"
#include "render/run_items.h"
#include "render/text.h"
#include "render/units.h"

namespace epochmeter::render {
namespace {

using model::Finding;
using model::Report;
using model::Run;
using model::Severity;

// A terminal of 24 lines with its prompt.
constexpr size_t kMostLines = 23;

// The last row of each rank or process; rows of one stand together in the order of time.
Report LastEpochs(const Report& report) {
  Report last;
  for (const model::EpochRow& row : report.epochs) {
    const bool same = !last.epochs.empty() && last.epochs.back().rank == row.rank &&
                      last.epochs.back().pid == row.pid;
    if (same) last.epochs.pop_back();
    last.epochs.push_back(row);
  }
  return last;
}

// Epochs by their number: those of several ranks, and one that was run again, count once.
size_t CountEpochs(const Report& report) {
  std::set<int64_t> epochs;
  for (const model::EpochRow& row : report.epochs) epochs.insert(row.epoch);
  return epochs.size();
}

// Of many ranks the ones whose last epochs took longest: the least that a table can't leave out.
void KeepSlowest(size_t most, Report* last) {
  if (last->epochs.size() <= most) return;
  std::stable_sort(last->epochs.begin(), last->epochs.end(),
                   [](const auto& a, const auto& b) { return a.duration_s > b.duration_s; });
  last->epochs.resize(most);
}

// `lines` are left for it, with the title.
void AddLastEpochs(const Report& report, size_t lines, Page* page) {
  if (report.epochs.empty() || lines < 4) return;
  Report last = LastEpochs(report);
  const size_t ranks = last.epochs.size();
  KeepSlowest(lines - 3, &last);
  const EpochTable table = MakeEpochTable(last, page->options());
  std::string title = fmt::format("{} ({} {})", page->Word(Phrase::kLastEpoch), CountEpochs(report),
                                  page->Word(Phrase::kTotal));
  if (table.has_incomplete) title += fmt::format(", * {}", page->Word(Phrase::kIncompleteShort));
  if (last.epochs.size() < ranks) {
    title += fmt::format(", {} {}", ranks - last.epochs.size(), page->Word(Phrase::kRanksMore));
  }
  page->Title(title);
  page->Lines(table.lines);
}

// One cut line each of what stands below the verdict, at most so many.
std::vector<std::string> Remarks(const Run& run, const Report& report, const Page& page) {
  const Language language = page.options().language;
  std::vector<std::string> items = IncidentItems(run, report, language);
  const Verdict verdict = VerdictOf(run, report, language);
  // Without a worst finding the verdict speaks of the exception.
  if (verdict.worst != nullptr) {
    for (std::string& item : ExceptionItems(run, language)) items.push_back(std::move(item));
  }
  for (const Finding& finding : report.findings) {
    if (finding.severity == Severity::kNotApplicable || &finding == verdict.worst) continue;
    const std::string_view text = page.Said(finding.summary);
    items.push_back(fmt::format("{}  {}", SeverityWord(finding.severity, language),
                                text.empty() ? page.Said(finding.title) : text));
  }
  return items;
}

void AddRemarks(const std::vector<std::string>& items, size_t lines, Page* page) {
  if (items.empty() || lines == 0) return;
  const size_t shown = items.size() <= lines ? items.size() : lines - 1;
  for (size_t i = 0; i < shown; ++i) {
    page->Line("  " + CutTo(page->Shown(items[i]), page->width() - 2, page->options().ascii));
  }
  if (shown == items.size()) return;
  page->Line(fmt::format("  {} {} {} (epochmeter report)", page->Word(Phrase::kAnd),
                         items.size() - shown, page->Word(Phrase::kMore)));
}

// "Losses: 1; Not measured: 2; run.emr".
std::string Foot(const Run& run, const Report& report, const Page& page) {
  std::vector<std::string> parts;
  const auto add = [&](Phrase name, size_t count) {
    const std::string_view words = page.Word(name);
    if (count > 0) parts.push_back(fmt::format("{}: {}", words, count));
  };
  add(Phrase::kLosses, LossItems(run, page.options().language).size());
  add(Phrase::kNotMeasured, ByReason(report).size());
  for (const std::string& file : page.options().files) parts.push_back(Plain(file));
  return base::Join(parts, "; ");
}

}  // namespace

std::string RenderSummary(const Run& run, const Report& report, const TextOptions& options) {
  Page page(options);
  std::vector<std::string> header = HeaderLines(run, report, Phrase::kSummary, page.options());
  header[0] = page.Tinted(CutTo(header[0], page.width(), page.options().ascii), Tint::kBold);
  page.Lines(header);
  AddVerdict(run, report, &page);
  const std::vector<Gauge> gauges = GaugesOf(run, report, page.options().language);
  if (!gauges.empty()) page.Line("");
  AddGauges(gauges, &page);
  const std::string foot = Foot(run, report, page);
  const size_t foot_lines = foot.empty() ? 0 : 1;
  const auto left = [&] {
    const size_t used = page.lines() + foot_lines;
    return used < kMostLines ? kMostLines - used : size_t{0};
  };
  const std::vector<std::string> remarks = Remarks(run, report, page);
  // The table has a row at least, however many remarks there are.
  constexpr size_t kTableLines = 4, kMostRemarks = 5;
  const size_t wanted = std::min(remarks.size(), kMostRemarks);
  const size_t for_table = left() > wanted ? left() - wanted : 0;
  AddLastEpochs(report, std::max(std::min(left(), kTableLines), for_table), &page);
  AddRemarks(remarks, left(), &page);
  if (!foot.empty()) {
    page.Line(page.Tinted(CutTo(foot, page.width(), page.options().ascii), Tint::kDim));
  }
  return page.Take();
}

std::string RenderLine(const Run& run, const Report& report, const TextOptions& options) {
  Page page(options);
  const Language language = page.options().language;
  const Verdict verdict = VerdictOf(run, report, language);
  std::vector<std::string> parts = {RunTitle(run), EndWords(run, report, page.options())};
  if (report.duration_s > 0) parts.push_back(Seconds(report.duration_s).value_or(""));
  for (const Gauge& gauge : GaugesOf(run, report, language)) {
    const bool host = gauge.name == Phrase::kHostCpu || gauge.name == Phrase::kHostMemoryPeak;
    if (!host) {
      parts.push_back(
          fmt::format("{} {}", page.Word(gauge.name), gauge.text.substr(0, gauge.text.find(" ("))));
    }
  }
  const std::string_view word =
      verdict.good ? page.Word(Phrase::kGood) : SeverityWord(verdict.severity, language);
  parts.push_back(fmt::format(
      "{}{}{}", page.Tinted(word, verdict.good ? Tint::kGreen : SeverityTint(verdict.severity)),
      page.Word(Phrase::kColon), page.Shown(verdict.text)));
  parts.erase(std::remove(parts.begin(), parts.end(), std::string()), parts.end());
  page.Line(base::Join(parts, " · "));
  return page.Take();
}

}  // namespace epochmeter::render
