// SPDX-License-Identifier: Apache-2.0
#include "render/gpu_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "render/bars.h"
#include "render/epoch_table.h"
#include "render/fitted_table.h"
#include "render/header.h"
#include "render/units.h"

namespace epochmeter::render {
namespace {

using model::GpuStats;
using model::Report;
using model::Stat;

using Cell = std::optional<std::string>;

constexpr size_t kMostGpus = 64;

using CellOf = std::function<Cell(const GpuStats&)>;

CellOf Figure(std::string_view field, std::optional<double> Stat::*which,
              Cell (*format)(std::optional<double>)) {
  return [=](const GpuStats& gpu) { return format(FigureOf(gpu.stats, field, which)); };
}

class GpuPlanner {
 public:
  GpuPlanner(const model::Run& run, const Report& report, const Page& page)
      : run_(run), report_(report), page_(page) {}

  std::vector<ColumnPlan> Plans() {
    AddIdentity();
    Add(With(Phrase::kGpu, Phrase::kMean), 1, Figure("utilization_ratio", &Stat::mean, Percent));
    Add(With(Phrase::kSm, Phrase::kMean), 2, Figure("sm_active_ratio", &Stat::mean, Percent));
    Add(With(Phrase::kGpuMemory, Phrase::kMax), 1, Figure("memory_used_bytes", &Stat::max, Bytes));
    if (LedgerSaysMore()) AddLedger();
    Add(With(Phrase::kPower, Phrase::kMean), 3, Figure("power_w", &Stat::mean, Watts));
    Add(With(Phrase::kTemperature, Phrase::kMax), 4, Figure("temperature_c", &Stat::max, Celsius));
    Add(Word(Phrase::kEnergy), 5, [](const GpuStats& gpu) { return Joules(gpu.energy_j); });
    return std::move(plans_);
  }

 private:
  void AddIdentity() {
    Add(Word(Phrase::kGpu), 0, [](const GpuStats& gpu) -> Cell {
      return gpu.gpu >= 0 ? std::to_string(gpu.gpu) : gpu.uuid;
    });
    Add(Word(Phrase::kName), 6, [this](const GpuStats& gpu) -> Cell {
      const std::string name = GpuName(run_, gpu);
      return name.empty() ? Cell() : Cell(name);
    });
    plans_.back().column.left = true;
    const bool has_others =
        std::any_of(report_.gpus.begin(), report_.gpus.end(),
                    [](const GpuStats& gpu) { return !gpu.of_job.value_or(true); });
    if (!has_others) return;
    Add(Word(Phrase::kOfJob), 0, [this](const GpuStats& gpu) -> Cell {
      if (!gpu.of_job) return {};
      return Word(*gpu.of_job ? Phrase::kYes : Phrase::kNo);
    });
    plans_.back().column.left = true;
  }

  bool LedgerSaysMore() const {
    return std::any_of(report_.gpus.begin(), report_.gpus.end(), [](const GpuStats& gpu) {
      const auto most = [&](std::string_view field) {
        return FigureOf(gpu.stats, field, &Stat::max).value_or(0);
      };
      return most("others_memory_bytes") > 0 ||
             most("unexplained_memory_bytes") > kMuchUnexplainedBytes;
    });
  }
  void AddLedger() {
    for (const auto& [phrase, field] :
         {std::pair(Phrase::kOwnMemory, "own_memory_bytes"),
          std::pair(Phrase::kOthersMemory, "others_memory_bytes"),
          std::pair(Phrase::kUnexplainedMemory, "unexplained_memory_bytes")}) {
      Add(With(phrase, Phrase::kMax), 7, Figure(field, &Stat::max, Bytes));
    }
  }

  void Add(std::string title, int importance, const CellOf& cell) {
    ColumnPlan plan{.column = {.title = std::move(title), .left = false, .cells = {}},
                    .importance = importance};
    const size_t count = std::min(report_.gpus.size(), kMostGpus);
    for (size_t i = 0; i < count; ++i) plan.column.cells.push_back(cell(report_.gpus[i]));
    plans_.push_back(std::move(plan));
  }
  std::string Word(Phrase phrase) const { return std::string(page_.Word(phrase)); }
  std::string With(Phrase what, Phrase which) const { return Word(what) + " " + Word(which); }

  const model::Run& run_;
  const Report& report_;
  const Page& page_;
  std::vector<ColumnPlan> plans_;
};

}  // namespace

void AddGpuTable(const model::Run& run, const Report& report, Page* page) {
  if (report.gpus.empty()) return;
  page->Title(page->Word(Phrase::kGpus));
  page->Lines(FitTable(GpuPlanner(run, report, *page).Plans(), page->width(), "  ").lines);
  if (report.gpus.size() > kMostGpus) {
    page->Line(fmt::format("  {} {} {}", page->Word(Phrase::kAnd), report.gpus.size() - kMostGpus,
                           page->Word(Phrase::kMore)));
  }
  const bool integral = std::any_of(report.gpus.begin(), report.gpus.end(), [](const auto& gpu) {
    return gpu.energy_source == "power_integral";
  });
  if (integral) page->Paragraph(page->Word(Phrase::kPowerIntegral), "  ", "  ");
}

}  // namespace epochmeter::render
