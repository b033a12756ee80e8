// SPDX-License-Identifier: Apache-2.0
#include "render/run_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <limits>

#include "base/clock.h"
#include "base/strings.h"
#include "render/figure_words.h"
#include "render/finding_text.h"
#include "render/fitted_table.h"
#include "render/markdown.h"
#include "render/page.h"
#include "render/units.h"

namespace epochmeter::render {
namespace {

using model::ProfileFigure;
using model::RunProfile;
using model::RunRow;

using Cell = std::optional<std::string>;
using CellOf = std::function<Cell(const RunRow&)>;

constexpr size_t kMostProfiles = 20;
constexpr size_t kWidestName = 32, kWidestFinding = 44;

Cell Count(uint64_t count) { return count == 0 ? Cell() : Cell(std::to_string(count)); }

Cell GpuTimeCell(const std::optional<double>& gpu_s) {
  return gpu_s ? Cell(GpuTime(*gpu_s)) : Cell();
}

// "2 × NVIDIA H200".
Cell GpusCell(const RunRow& row) {
  if (row.gpus == 0) return {};
  return fmt::format("{} × {}", row.gpus, row.gpu_model.empty() ? "GPU" : row.gpu_model);
}

// "5.6 GB/151 GB".
Cell MemoryCell(const RunRow& row) {
  const Cell peak = Bytes(row.gpu_memory_peak_bytes), total = Bytes(row.gpu_memory_total_bytes);
  return peak && total ? Cell(*peak + "/" + *total) : peak;
}

// "86 % in 3".
Cell PeakCell(const RunRow& row) {
  if (!row.peak_epoch) return {};
  return fmt::format("{} @ {}", *Percent(row.peak_utilization_ratio), *row.peak_epoch);
}

class RunPlanner {
 public:
  RunPlanner(const std::vector<const RunRow*>& rows, const TextOptions& options)
      : rows_(rows), options_(options) {}

  std::vector<ColumnPlan> Plans() {
    AddIdentity();
    Add(Phrase::kRanks, 7, [](const RunRow& row) { return Count(row.ranks); });
    Add(Phrase::kGpusOfRun, 5, GpusCell);
    Add(Phrase::kEpochCount, 6, [](const RunRow& row) { return Count(row.epochs); });
    Add(Phrase::kSteps, 6, [](const RunRow& row) { return Count(row.steps); });
    Add(Phrase::kGpu, 1, [](const RunRow& row) { return Percent(row.utilization_ratio); });
    Add(Phrase::kSm, 2, [](const RunRow& row) { return Percent(row.sm_active_ratio); });
    Add(Phrase::kPeakAtEpoch, 7, PeakCell);
    Add(Phrase::kGpuMemory, 3, MemoryCell);
    Add(Phrase::kDataWait, 2, [](const RunRow& row) { return Percent(row.data_wait_ratio); });
    Add(Phrase::kIoWait, 3, [](const RunRow& row) { return Percent(row.iowait_ratio); });
    Add(Phrase::kWaste, 1, [](const RunRow& row) { return GpuTimeCell(row.waste_gpu_s); });
    Add(Phrase::kEnergy, 4, [](const RunRow& row) { return Joules(row.energy_j); });
    Add(
        Phrase::kWorst, 1, [this](const RunRow& row) { return Worst(row); }, true);
    return std::move(plans_);
  }

 private:
  void AddIdentity() {
    Add(
        Phrase::kRun, 0, [this](const RunRow& row) { return Name(row); }, true);
    Add(
        Phrase::kStarted, 8,
        [](const RunRow& row) -> Cell {
          if (!row.started_wall_ns) return {};
          return base::FormatUtc(*row.started_wall_ns).substr(0, 16);
        },
        true);
    Add(Phrase::kDuration, 2, [](const RunRow& row) { return Seconds(row.duration_s); });
    Add(
        Phrase::kEnded, 2, [this](const RunRow& row) { return Cut(row.state, kWidestName); }, true);
  }

  Cell Cut(const std::string& text, size_t width) const {
    if (text.empty()) return {};
    return CutTo(Plain(text), width, options_.ascii);
  }
  // Its name, else its id, else that of its file.
  Cell Name(const RunRow& row) const {
    const std::string file = row.path.substr(row.path.rfind('/') + 1);
    return Cut(!row.name.empty() ? row.name : !row.run_id.empty() ? row.run_id : file, kWidestName);
  }
  Cell Worst(const RunRow& row) const {
    if (row.worst_rule.empty()) return {};
    return Cut(fmt::format("{} {}", SeverityWord(row.worst_severity, options_.language),
                           Said(row.worst_title, options_.language)),
               kWidestFinding);
  }
  void Add(Phrase title, int importance, const CellOf& cell, bool left = false) {
    TableColumn column{
        .title = std::string(Text(title, options_.language)), .left = left, .cells = {}};
    for (const RunRow* row : rows_) column.cells.push_back(cell(*row));
    const bool known = std::any_of(column.cells.begin(), column.cells.end(),
                                   [](const Cell& one) { return one.has_value(); });
    if (known) plans_.push_back({.column = std::move(column), .importance = importance});
  }

  const std::vector<const RunRow*>& rows_;
  const TextOptions& options_;
  std::vector<ColumnPlan> plans_;
};

std::vector<const RunRow*> Readable(const std::vector<RunRow>& rows) {
  std::vector<const RunRow*> readable;
  for (const RunRow& row : rows) {
    if (row.error.empty()) readable.push_back(&row);
  }
  return readable;
}

// "12.3 GB / 80.1 GB": half of the runs, and 95 of 100, took no more.
std::vector<ColumnPlan> ProfilePlans(const std::vector<RunProfile>& profiles,
                                     const TextOptions& options) {
  std::vector<ColumnPlan> plans;
  const auto add = [&](std::string title, int importance, bool left, auto cell) {
    TableColumn column{.title = std::move(title), .left = left, .cells = {}};
    for (size_t i = 0; i < std::min(profiles.size(), kMostProfiles); ++i) {
      column.cells.push_back(cell(profiles[i]));
    }
    plans.push_back({.column = std::move(column), .importance = importance});
  };
  add(std::string(Text(Phrase::kKind, options.language)), 0, true,
      [&](const RunProfile& profile) -> Cell {
        return CutTo(Plain(profile.name), kWidestName, options.ascii);
      });
  add(std::string(Text(Phrase::kRuns, options.language)), 0, false,
      [](const RunProfile& profile) { return Count(profile.runs); });
  constexpr std::array<std::pair<std::string_view, Phrase>, 8> kColumns = {
      {{"gpus", Phrase::kGpusMeasured},
       {"gpu_memory_peak_bytes", Phrase::kGpuMemory},
       {"utilization_ratio", Phrase::kGpu},
       {"sm_active_ratio", Phrase::kSm},
       {"cpu_per_gpu_cores", Phrase::kCoresPerGpu},
       {"memory_peak_per_gpu_bytes", Phrase::kRamPerGpu},
       {"read_per_gpu_bytes_per_s", Phrase::kReadPerGpu},
       {"duration_s", Phrase::kDuration}}};
  int importance = 0;
  for (const auto& [field, title] : kColumns) {
    add(std::string(Text(title, options.language)), ++importance, false,
        [field = field, title = title](const RunProfile& profile) -> Cell {
          for (const ProfileFigure& figure : profile.figures) {
            if (figure.field != field) continue;
            const bool cores = title == Phrase::kCoresPerGpu;  // the title has the unit
            const auto text = [&](double value) {
              return cores ? Cores(value).value_or("") : WordsOf(field, value).value;
            };
            if (figure.runs == 1) return text(figure.p50);
            return text(figure.p50) + " / " + text(figure.p95);
          }
          return {};
        });
  }
  return plans;
}

// "12 runs, 3.40 GPU-h, 1.20 GPU-h of it brought nothing, 5.1 kWh".
std::string SumText(const std::vector<const RunRow*>& rows, Language language) {
  double gpu_s = 0, waste_s = 0, energy_j = 0;
  size_t with_energy = 0;
  for (const RunRow* row : rows) {
    gpu_s += row->gpu_s.value_or(0);
    waste_s += row->waste_gpu_s.value_or(0);
    energy_j += row->energy_j.value_or(0);
    with_energy += row->energy_j ? 1 : 0;
  }
  std::vector<std::string> parts = {
      fmt::format("{} {}", rows.size(), Text(Phrase::kRunsCounted, language))};
  if (gpu_s > 0) {
    parts.push_back(GpuTime(gpu_s));
    parts.push_back(
        fmt::format("{} {}", GpuTime(waste_s), Text(Phrase::kBroughtNothing, language)));
  }
  if (with_energy > 0) {
    std::string energy = Joules(energy_j).value_or("");
    if (with_energy < rows.size()) {
      energy += fmt::format(" ({} {})", with_energy, Text(Phrase::kRunsCounted, language));
    }
    parts.push_back(std::move(energy));
  }
  return base::Join(parts, ", ");
}

std::vector<std::string> UnreadableItems(const std::vector<RunRow>& rows) {
  std::vector<std::string> items;
  for (const RunRow& row : rows) {
    if (row.error.empty()) continue;
    const bool named = row.error.find(row.path) != std::string::npos;
    items.push_back(named ? row.error : fmt::format("{}: {}", row.path, row.error));
  }
  return items;
}

std::string MarkdownTable(const std::vector<ColumnPlan>& plans) {
  std::string titles = "|", rule = "|";
  size_t rows = 0;
  for (const ColumnPlan& plan : plans) {
    titles += " " + MarkdownText(plan.column.title) + " |";
    rule += plan.column.left ? " --- |" : " ---: |";
    rows = std::max(rows, plan.column.cells.size());
  }
  std::string table = titles + "\n" + rule + "\n";
  for (size_t i = 0; i < rows; ++i) {
    table += "|";
    for (const ColumnPlan& plan : plans) {
      table += " " + (plan.column.cells[i] ? MarkdownText(*plan.column.cells[i]) : "-") + " |";
    }
    table += "\n";
  }
  return table;
}

}  // namespace

std::string RenderRuns(const std::vector<RunRow>& rows, const std::vector<RunProfile>& profiles,
                       const TextOptions& options) {
  constexpr size_t kMostUnreadable = 50;
  Page page(options);
  const std::vector<const RunRow*> readable = Readable(rows);
  page.Line(page.Tinted(fmt::format("epochmeter {} · {}", page.Word(Phrase::kReport),
                                    SumText(readable, page.options().language)),
                        Tint::kBold));
  page.Line("");
  if (!readable.empty()) {
    const FittedTable table =
        FitTable(RunPlanner(readable, page.options()).Plans(), page.width(), "  ");
    page.Lines(table.lines);
    if (!table.too_wide.empty()) {
      page.Paragraph(
          fmt::format("{}: {}", page.Word(Phrase::kTooWide), base::Join(table.too_wide, ", ")),
          "  ", "    ", Tint::kDim);
    }
  }
  const std::vector<std::string> unreadable = UnreadableItems(rows);
  if (!unreadable.empty()) {
    page.Title(page.Word(Phrase::kUnreadable));
    page.Items(unreadable, kMostUnreadable);
  }
  if (profiles.empty()) return page.Take();
  page.Title(page.Word(Phrase::kProfiles));
  page.Lines(FitTable(ProfilePlans(profiles, page.options()), page.width(), "  ").lines);
  if (profiles.size() > kMostProfiles) {
    page.Line(fmt::format("  {} {} {} ({})", page.Word(Phrase::kAnd),
                          profiles.size() - kMostProfiles, page.Word(Phrase::kMore),
                          page.Word(Phrase::kAllFigures)));
  }
  return page.Take();
}

std::string RenderRunsMarkdown(const std::vector<RunRow>& rows,
                               const std::vector<RunProfile>& profiles,
                               const TextOptions& options) {
  const auto word = [&](Phrase phrase) { return Text(phrase, options.language); };
  const std::vector<const RunRow*> readable = Readable(rows);
  std::string text =
      fmt::format("## epochmeter · {}\n\n", MarkdownText(SumText(readable, options.language)));
  TextOptions plain = options;
  plain.ascii = false;
  if (!readable.empty()) text += MarkdownTable(RunPlanner(readable, plain).Plans());
  const std::vector<std::string> unreadable = UnreadableItems(rows);
  if (!unreadable.empty()) text += fmt::format("\n### {}\n\n", word(Phrase::kUnreadable));
  for (const std::string& item : unreadable) text += "- " + MarkdownText(item) + "\n";
  if (profiles.empty()) return text;
  text += fmt::format("\n### {}\n\n", word(Phrase::kProfiles));
  return text + MarkdownTable(ProfilePlans(profiles, plain));
}

}  // namespace epochmeter::render
