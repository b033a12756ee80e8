// SPDX-License-Identifier: Apache-2.0
#include "render/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/clock.h"
#include "base/strings.h"
#include "render/columns.h"
#include "render/epoch_table.h"
#include "render/header.h"
#include "render/not_measured.h"
#include "render/units.h"

namespace epochmeter::render {
namespace {

using model::GpuStats;
using model::Report;
using model::Run;
using model::Stat;

constexpr size_t kMostItems = 12;  // of a list; the rest is counted

std::optional<double> Figure(const model::StatTable& table, std::string_view field,
                             std::optional<double> Stat::*figure) {
  for (const auto& [name, stat] : table) {
    if (name == field) return stat.*figure;
  }
  return {};
}

// Typographic signs that ASCII has words for; the rest becomes '?'.
std::string AsciiPage(std::string page) {
  constexpr std::pair<std::string_view, std::string_view> kSigns[] = {
      {"·", "-"}, {"…", "..."}, {"°C", "C"}, {"×", "x"}};
  for (const auto& [sign, word] : kSigns) {
    for (size_t at = page.find(sign); at != std::string::npos; at = page.find(sign, at)) {
      page.replace(at, sign.size(), word);
      at += word.size();
    }
  }
  return ToAscii(page);
}

// Collects lines; titles are bold where colour is wanted.
class Page {
 public:
  explicit Page(const TextOptions& options) : options_(options) {
    // The other languages have no ASCII form.
    if (options_.ascii) options_.language = Language::kEnglish;
  }

  const TextOptions& options() const { return options_; }
  std::string_view Word(Phrase phrase) const { return Text(phrase, options_.language); }

  void Header(const Run& run, const Report& report, Phrase title) {
    std::vector<std::string> lines = HeaderLines(run, report, title, options_);
    lines[0] = Bold(lines[0]);
    Lines(lines);
  }
  void Title(std::string_view title) {
    text_ += '\n';
    Line(Bold(title));
  }
  void Line(std::string_view line) {
    text_ += line;
    text_ += '\n';
  }
  void Lines(const std::vector<std::string>& lines) {
    for (const std::string& line : lines) Line(line);
  }
  // Items of a list, wrapped at the width; those beyond the most are counted, and `hint` says where
  // they are.
  void Items(const std::vector<std::string>& items, size_t most = kMostItems,
             std::string_view hint = {}) {
    for (size_t i = 0; i < std::min(items.size(), most); ++i) {
      Lines(Wrap(Plain(items[i]), options_.width, "  ", "    "));
    }
    if (items.size() <= most) return;
    const std::string where = hint.empty() ? std::string() : fmt::format(" ({})", hint);
    Line(fmt::format("  {} {} {}{}", Word(Phrase::kAnd), items.size() - most, Word(Phrase::kMore),
                     where));
  }
  std::string Take() { return options_.ascii ? AsciiPage(std::move(text_)) : std::move(text_); }

 private:
  std::string Bold(std::string_view text) const {
    return options_.color ? fmt::format("\033[1m{}\033[0m", text) : std::string(text);
  }
  TextOptions options_;
  std::string text_;
};

void AddEpochs(const Report& report, const EpochTable& table, Page* page) {
  page->Title(page->Word(Phrase::kEpochs));
  if (table.lines.empty()) {
    page->Line(fmt::format("  {}", page->Word(Phrase::kNoEpochs)));
    return;
  }
  page->Lines(table.lines);
  if (table.has_incomplete) page->Line(fmt::format("  * {}", page->Word(Phrase::kIncomplete)));
  const bool at_least = std::any_of(
      report.epochs.begin(), report.epochs.end(),
      [](const model::EpochRow& row) { return row.own_gpus.memory.own_source == "allocator"; });
  if (at_least) page->Lines(Wrap(page->Word(Phrase::kAtLeast), page->options().width, "  ", "  "));
  if (!table.too_wide.empty()) {
    page->Line(fmt::format("  {}: {}", page->Word(Phrase::kTooWide),
                           Plain(base::Join(table.too_wide, ", "))));
  }
  const std::vector<std::string> phases = MakePhaseTable(report, page->options());
  if (phases.empty()) return;
  page->Title(page->Word(Phrase::kPhases));
  page->Lines(phases);
}

void AddGpus(const Run& run, const Report& report, Page* page) {
  if (report.gpus.empty()) return;
  page->Title(page->Word(Phrase::kGpus));
  std::vector<TableColumn> columns;
  const auto add = [&](std::string title, bool left, auto cell) {
    TableColumn column{.title = std::move(title), .left = left, .cells = {}};
    for (const GpuStats& gpu : report.gpus) column.cells.push_back(cell(gpu));
    columns.push_back(std::move(column));
  };
  const auto word = [&](Phrase phrase) { return std::string(page->Word(phrase)); };
  const auto with = [&](Phrase what, Phrase which) { return word(what) + " " + word(which); };
  add(word(Phrase::kGpu), false,
      [](const GpuStats& gpu) { return gpu.gpu >= 0 ? std::to_string(gpu.gpu) : gpu.uuid; });
  add(word(Phrase::kName), true, [&](const GpuStats& gpu) {
    const std::string name = GpuName(run, gpu);
    return name.empty() ? std::nullopt : std::optional<std::string>(name);
  });
  const auto figure = [](std::string_view field, std::optional<double> Stat::*which, auto format) {
    return [=](const GpuStats& gpu) { return format(Figure(gpu.stats, field, which)); };
  };
  const bool has_others =
      std::any_of(report.gpus.begin(), report.gpus.end(),
                  [](const GpuStats& gpu) { return !gpu.of_job.value_or(true); });
  add(word(Phrase::kOfJob), true, [&](const GpuStats& gpu) -> std::optional<std::string> {
    if (!has_others || !gpu.of_job) return {};
    return word(*gpu.of_job ? Phrase::kYes : Phrase::kNo);
  });
  add(with(Phrase::kGpu, Phrase::kMean), false, figure("utilization_ratio", &Stat::mean, Percent));
  add(with(Phrase::kSm, Phrase::kMean), false, figure("sm_active_ratio", &Stat::mean, Percent));
  add(with(Phrase::kGpuMemory, Phrase::kMax), false,
      figure("memory_used_bytes", &Stat::max, Bytes));
  const bool ledger = std::any_of(report.gpus.begin(), report.gpus.end(), [](const auto& gpu) {
    return Figure(gpu.stats, "others_memory_bytes", &Stat::max).value_or(0) > 0 ||
           Figure(gpu.stats, "unexplained_memory_bytes", &Stat::max).value_or(0) >
               kMuchUnexplainedBytes;
  });
  for (const auto& [phrase, field] :
       {std::pair(Phrase::kOwnMemory, "own_memory_bytes"),
        std::pair(Phrase::kOthersMemory, "others_memory_bytes"),
        std::pair(Phrase::kUnexplainedMemory, "unexplained_memory_bytes")}) {
    if (ledger) add(with(phrase, Phrase::kMax), false, figure(field, &Stat::max, Bytes));
  }
  add(with(Phrase::kPower, Phrase::kMean), false, figure("power_w", &Stat::mean, Watts));
  add(with(Phrase::kTemperature, Phrase::kMax), false,
      figure("temperature_c", &Stat::max, Celsius));
  add(word(Phrase::kEnergy), false, [](const GpuStats& gpu) { return Joules(gpu.energy_j); });
  page->Lines(LayOut(columns, "  "));
  const bool integral = std::any_of(report.gpus.begin(), report.gpus.end(), [](const auto& gpu) {
    return gpu.energy_source == "power_integral";
  });
  if (integral) page->Line(fmt::format("  {}", page->Word(Phrase::kPowerIntegral)));
}

void AddFindings(const Report& report, Page* page) {
  std::vector<std::string> items;
  for (const model::Finding& finding : report.findings) {
    if (finding.severity == model::Severity::kNotApplicable) continue;
    std::string item = fmt::format("{} [{}] {}", model::SeverityName(finding.severity),
                                   finding.rule, finding.summary.en);
    items.push_back(std::move(item));
  }
  if (items.empty()) return;
  page->Title(page->Word(Phrase::kFindings));
  page->Items(items);
}

// What the training raised: the first of each type, with its count over all ranks.
void AddExceptions(const Run& run, Page* page) {
  std::vector<std::pair<const model::Event*, size_t>> kinds;
  std::map<std::string_view, size_t> places;  // in `kinds`, by type
  for (const model::Event& event : run.events) {
    if (event.kind != model::EventKind::kException) continue;
    const auto [known, is_new] = places.emplace(event.name, kinds.size());
    if (is_new) {
      kinds.emplace_back(&event, 1);
    } else {
      ++kinds[known->second].second;
    }
  }
  if (kinds.empty()) return;
  page->Title(page->Word(Phrase::kExceptions));
  std::vector<std::string> items;
  for (const auto& [event, count] : kinds) {
    std::string item = event->name;
    if (count > 1) item += fmt::format(" × {}", count);
    if (event->rank) item += fmt::format(" ({} {})", page->Word(Phrase::kRank), *event->rank);
    items.push_back(item + ": " + std::string(event->Text("message").value_or("")));
  }
  page->Items(items);
}

// What went wrong around the training, with the time since its start.
void AddIncidents(const Run& run, const Report& report, Page* page) {
  if (report.incidents.empty()) return;
  page->Title(page->Word(Phrase::kIncidents));
  std::vector<std::string> items;
  for (const model::Incident& incident : report.incidents) {
    const double since_s = base::SecondsFromNs(incident.t_ns - run.Recorded().begin_ns);
    std::string item = "+" + base::FormatDuration(since_s);
    if (incident.epoch) {
      item += fmt::format(", {} {}", page->Word(Phrase::kEpoch), *incident.epoch);
    }
    if (incident.gpu) item += fmt::format(", gpu{}", *incident.gpu);
    items.push_back(fmt::format("{}: {}: {}", item, incident.kind, incident.text));
  }
  page->Items(items);
}

// Losses of one kind as one: their counts summed, the words of the first.
struct LossKind {
  model::Loss sum;
  size_t times = 1;
};

std::vector<LossKind> LossKinds(const Run& run) {
  std::vector<LossKind> kinds;
  for (const model::Loss& loss : run.losses) {
    const auto known = std::find_if(kinds.begin(), kinds.end(), [&](const LossKind& kind) {
      return kind.sum.kind == loss.kind;
    });
    if (known == kinds.end()) {
      kinds.push_back({.sum = loss});
    } else {
      known->sum.count += loss.count;
      ++known->times;
    }
  }
  return kinds;
}

void AddLosses(const Run& run, Page* page) {
  if (run.losses.empty()) return;
  page->Title(page->Word(Phrase::kLosses));
  std::vector<std::string> items;
  for (const auto& [loss, times] : LossKinds(run)) {
    const std::string often =
        times > 1 ? fmt::format(" ({} {})", times, page->Word(Phrase::kTimesOf)) : "";
    items.push_back(
        fmt::format("{} × {}{}: {}. {}", loss.kind, loss.count, often, loss.detail, loss.help));
  }
  page->Items(items);
}

void AddNotMeasured(const Report& report, const std::vector<std::string>& unknown, Page* page) {
  constexpr size_t kMostReasons = 6;
  std::vector<std::string> items = NotMeasuredItems(report, page->options().language);
  if (!unknown.empty()) {
    items.insert(items.begin(),
                 fmt::format("{}: {}", base::Join(unknown, ", "), page->Word(Phrase::kNoValue)));
  }
  if (items.empty()) return;
  page->Title(page->Word(Phrase::kNotMeasured));
  page->Items(items, kMostReasons, page->Word(Phrase::kAllFigures));
}

void AddFiles(Page* page) {
  if (page->options().files.empty()) return;
  page->Title(page->Word(Phrase::kFiles));
  for (const std::string& file : page->options().files) page->Line("  " + Plain(file));
}

// "GPU 61 %, SM 44 %, ..." of what is known.
std::string OverallLine(const Report& report, const Page& page) {
  std::vector<std::string> parts;
  const auto add = [&](Phrase name, const std::optional<std::string>& value) {
    if (value) parts.push_back(fmt::format("{} {}", page.Word(name), *value));
  };
  add(Phrase::kCpu, Percent(Figure(report.host, "cpu_ratio", &Stat::mean)));
  add(Phrase::kRam, Bytes(Figure(report.host, "memory_used_bytes", &Stat::max)));
  add(Phrase::kTreeRam, Bytes(Figure(report.process, "rss_bytes", &Stat::max)));
  add(Phrase::kEnergy, Joules(report.energy_j));
  return base::Join(parts, ", ");
}

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

}  // namespace

std::string RenderReport(const Run& run, const Report& report, const TextOptions& options) {
  Page page(options);
  page.Header(run, report, Phrase::kReport);
  const EpochTable table = MakeEpochTable(report, page.options());
  AddEpochs(report, table, &page);
  AddGpus(run, report, &page);
  AddIncidents(run, report, &page);
  AddExceptions(run, &page);
  AddFindings(report, &page);
  AddLosses(run, &page);
  AddNotMeasured(report, table.unknown, &page);
  AddFiles(&page);
  return page.Take();
}

std::string RenderSummary(const Run& run, const Report& report, const TextOptions& options) {
  Page page(options);
  page.Header(run, report, Phrase::kSummary);
  const std::string overall = OverallLine(report, page);
  if (!overall.empty()) page.Line("  " + overall);
  AddGpus(run, report, &page);
  if (!report.epochs.empty()) {
    page.Title(fmt::format("{} ({} {})", page.Word(Phrase::kLastEpoch), CountEpochs(report),
                           page.Word(Phrase::kTotal)));
    const EpochTable table = MakeEpochTable(LastEpochs(report), page.options());
    page.Lines(table.lines);
    if (table.has_incomplete) page.Line(fmt::format("  * {}", page.Word(Phrase::kIncomplete)));
  }
  AddIncidents(run, report, &page);
  AddExceptions(run, &page);
  AddFindings(report, &page);
  if (!run.losses.empty() || !report.not_measured.empty()) {
    page.Line("");
    page.Line(fmt::format("{}: {}; {}: {}", page.Word(Phrase::kLosses), LossKinds(run).size(),
                          page.Word(Phrase::kNotMeasured), ByReason(report).size()));
  }
  AddFiles(&page);
  return page.Take();
}

}  // namespace epochmeter::render
