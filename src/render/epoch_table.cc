// SPDX-License-Identifier: Apache-2.0
#include "render/epoch_table.h"

#include <algorithm>
#include <functional>
#include <set>

#include "base/strings.h"
#include "render/bars.h"
#include "render/columns.h"
#include "render/epoch_fold.h"
#include "render/fitted_table.h"
#include "render/units.h"

namespace epochmeter::render {
namespace {

using model::EpochRow;
using model::Report;
using model::Stat;
using model::StatTable;

using Cell = std::optional<std::string>;

constexpr std::string_view kEval = "eval";
constexpr size_t kMostPhaseRows = 40;

const model::PhaseStats* FindPhase(const EpochRow& row, std::string_view name) {
  for (const model::PhaseStats& phase : row.phases) {
    if (phase.phase == name) return &phase;
  }
  return nullptr;
}

Cell ScalarCell(const model::ScalarTable& table, const std::string& name) {
  for (const auto& [known, value] : table) {
    if (known == name) return Scalar(value);
  }
  return {};
}

Cell OwnMemory(const model::MemoryLedger& memory) {
  Cell cell = Bytes(memory.own_max_bytes);
  if (cell && memory.own_source == "allocator") cell->insert(0, ">=");
  return cell;
}

// Whether own, others and unexplained memory say more than the memory in use does: somebody else
// has some, or the split is not known in full.
bool LedgerSaysMore(const std::vector<const EpochRow*>& rows) {
  return std::any_of(rows.begin(), rows.end(), [](const EpochRow* row) {
    const model::MemoryLedger& memory = row->own_gpus.memory;
    return memory.own_source == "allocator" || memory.others_max_bytes.value_or(0) > 0 ||
           memory.unexplained_max_bytes.value_or(0) > kMuchUnexplainedBytes;
  });
}

std::string EpochName(const EpochRow& row, Language language) {
  const std::string name = row.epoch == model::kNoEpoch
                               ? std::string(Text(Phrase::kWholeRun, language))
                               : std::to_string(row.epoch);
  return row.complete ? name : name + "*";
}

// Names of scalars in the order of first sight, loss first.
std::vector<std::string> ScalarNames(
    const std::vector<const EpochRow*>& rows,
    const std::function<const model::ScalarTable*(const EpochRow&)>& table_of) {
  std::vector<std::string> names;
  for (const EpochRow* row : rows) {
    const model::ScalarTable* table = table_of(*row);
    if (table == nullptr) continue;
    for (const auto& [name, value] : *table) {
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  }
  std::stable_partition(names.begin(), names.end(),
                        [](const std::string& name) { return name == "loss"; });
  return names;
}

class Planner {
 public:
  Planner(const std::vector<const EpochRow*>& rows, Language language)
      : rows_(rows), language_(language) {}

  void Add(std::string title, int importance, const std::function<Cell(const EpochRow&)>& cell) {
    ColumnPlan plan{.column = {.title = std::move(title), .left = false, .cells = {}},
                    .importance = importance};
    for (const EpochRow* row : rows_) plan.column.cells.push_back(cell(*row));
    plans_.push_back(std::move(plan));
  }
  void Add(Phrase title, int importance, const std::function<Cell(const EpochRow&)>& cell) {
    Add(std::string(Text(title, language_)), importance, cell);
  }

  void AddProgress() {
    std::set<std::optional<int32_t>> ranks;
    for (const EpochRow* row : rows_) ranks.insert(row->rank);
    if (ranks.size() > 1) {
      Add(Phrase::kRank, 0,
          [](const EpochRow& row) { return row.rank ? Cell(std::to_string(*row.rank)) : Cell(); });
    }
    Add(Phrase::kPid, 0,
        [](const EpochRow& row) { return row.pid ? Cell(std::to_string(*row.pid)) : Cell(); });
    Add(Phrase::kEpoch, 0, [this](const EpochRow& row) { return EpochName(row, language_); });
    Add(Phrase::kDuration, 0, [](const EpochRow& row) { return Seconds(row.duration_s); });
    Add(Phrase::kSteps, 2, [](const EpochRow& row) {
      return row.steps_known ? Cell(std::to_string(row.steps)) : Cell();
    });
    Add(Phrase::kStepP50, 4, [](const EpochRow& row) { return Seconds(row.step_s.p50); });
    Add(Phrase::kDataWait, 3, [](const EpochRow& row) { return Percent(row.data_wait_ratio); });
  }

  void AddScalars() {
    for (const std::string& name :
         ScalarNames(rows_, [](const EpochRow& row) { return &row.scalars; })) {
      Add(Plain(name), name == "loss" ? 0 : 11,
          [&](const EpochRow& row) { return ScalarCell(row.scalars, name); });
    }
    AddValidation();
  }

  void AddMachine() {
    Add(Phrase::kCpu, 1,
        [](const EpochRow& row) { return Percent(FigureOf(row.host, "cpu_ratio", &Stat::mean)); });
    Add(Phrase::kRam, 1, [](const EpochRow& row) {
      return Bytes(FigureOf(row.host, "memory_used_bytes", &Stat::max));
    });
    Add(Phrase::kTreeRam, 8,
        [](const EpochRow& row) { return Bytes(FigureOf(row.process, "rss_bytes", &Stat::max)); });
    Add(Phrase::kTreeCpu, 8,
        [](const EpochRow& row) { return Cores(FigureOf(row.process, "cpu_cores", &Stat::mean)); });
    Add(Phrase::kGpu, 1,
        [](const EpochRow& row) { return Percent(row.own_gpus.utilization_ratio); });
    if (HasUnmeasured()) AddMeasured();
    Add(Phrase::kSm, 4, [](const EpochRow& row) { return Percent(row.own_gpus.sm_active_ratio); });
    Add(Phrase::kGpuMemory, 2,
        [](const EpochRow& row) { return Bytes(row.own_gpus.memory_used_max_bytes); });
    if (LedgerSaysMore(rows_)) AddLedger();
    Add(Phrase::kPower, 6, [](const EpochRow& row) { return Watts(row.own_gpus.power_w); });
    Add(Phrase::kTemperature, 5,
        [](const EpochRow& row) { return Celsius(row.own_gpus.temperature_max_c); });
    Add(Phrase::kAllocated, 7, [](const EpochRow& row) {
      return Bytes(FigureOf(row.framework, "allocated_bytes", &Stat::last));
    });
    Add(Phrase::kEnergy, 10, [](const EpochRow& row) { return Joules(row.energy_j); });
  }

  void AddLedger() {
    Add(Phrase::kOwnMemory, 7, [](const EpochRow& row) { return OwnMemory(row.own_gpus.memory); });
    Add(Phrase::kOthersMemory, 9,
        [](const EpochRow& row) { return Bytes(row.own_gpus.memory.others_max_bytes); });
    Add(Phrase::kUnexplainedMemory, 12,
        [](const EpochRow& row) { return Bytes(row.own_gpus.memory.unexplained_max_bytes); });
  }

  std::vector<ColumnPlan> Take() { return std::move(plans_); }

 private:
  // Whether the figures of some row leave out a GPU of its own.
  bool HasUnmeasured() const {
    return std::any_of(rows_.begin(), rows_.end(), [](const EpochRow* row) {
      return row->own_gpus.measured.size() < row->own_gpus.gpus.size();
    });
  }
  // "2 of 3": how many GPUs the figures of the row are of.
  void AddMeasured() {
    Add(Phrase::kGpusMeasured, 1, [this](const EpochRow& row) -> Cell {
      if (row.own_gpus.gpus.empty()) return {};
      return std::to_string(row.own_gpus.measured.size()) +
             std::string(Text(Phrase::kOfGpus, language_)) +
             std::to_string(row.own_gpus.gpus.size());
    });
  }
  // Time and scalars of the evaluation, apart from the training's.
  void AddValidation() {
    Add(Phrase::kValidation, 1, [](const EpochRow& row) -> Cell {
      const model::PhaseStats* phase = FindPhase(row, kEval);
      return phase == nullptr ? Cell() : Seconds(phase->total_s);
    });
    const auto table_of = [](const EpochRow& row) {
      const model::PhaseStats* phase = FindPhase(row, kEval);
      return phase == nullptr ? nullptr : &phase->scalars;
    };
    for (const std::string& name : ScalarNames(rows_, table_of)) {
      Add("val_" + Plain(name), name == "loss" ? 0 : 11, [&](const EpochRow& row) {
        const model::ScalarTable* table = table_of(row);
        return table == nullptr ? Cell() : ScalarCell(*table, name);
      });
    }
  }

  const std::vector<const EpochRow*>& rows_;
  Language language_;
  std::vector<ColumnPlan> plans_;
};

bool IsUnknown(const ColumnPlan& plan) {
  return std::none_of(plan.column.cells.begin(), plan.column.cells.end(),
                      [](const Cell& cell) { return cell.has_value(); });
}

// Whether an empty column is to be told. Not evaluating is no lack of a measurement, nor is a rank
// instead of a process id; why memory has no owner is told by its series.
bool IsLack(const std::string& title, Language language) {
  constexpr Phrase kNoLack[] = {Phrase::kValidation, Phrase::kPid, Phrase::kOwnMemory,
                                Phrase::kOthersMemory, Phrase::kUnexplainedMemory};
  return std::none_of(std::begin(kNoLack), std::end(kNoLack),
                      [&](Phrase phrase) { return title == Text(phrase, language); });
}

// "loss 0.87, accuracy 0.9".
Cell ScalarList(const model::ScalarTable& table) {
  std::vector<std::string> parts;
  for (const auto& [name, value] : table) {
    if (const Cell cell = Scalar(value)) parts.push_back(Plain(name) + " " + *cell);
  }
  return parts.empty() ? Cell() : Cell(base::Join(parts, ", "));
}

// Phases other than the evaluation of an epoch, one a row; those beyond the most are left out.
class PhaseTable {
 public:
  explicit PhaseTable(Language language) {
    constexpr Phrase kTitles[] = {Phrase::kRank,  Phrase::kPid,   Phrase::kEpoch, Phrase::kPhase,
                                  Phrase::kTimes, Phrase::kTotal, Phrase::kValues};
    for (const Phrase title : kTitles) {
      const bool left = title == Phrase::kPhase || title == Phrase::kValues;
      columns_.push_back({.title = std::string(Text(title, language)), .left = left, .cells = {}});
    }
  }

  void Add(std::optional<int32_t> rank, std::optional<int64_t> pid, const std::string& epoch,
           const model::PhaseStats& stats, const Cell& values) {
    AddRow({rank ? Cell(std::to_string(*rank)) : Cell(), pid ? Cell(std::to_string(*pid)) : Cell(),
            epoch, Plain(stats.phase), std::to_string(stats.count), Seconds(stats.total_s),
            values});
  }
  // What was said outside of phases.
  void AddValues(const model::AfterTraining& late, const std::string& epoch) {
    AddRow({late.rank ? Cell(std::to_string(*late.rank)) : Cell(),
            late.pid ? Cell(std::to_string(*late.pid)) : Cell(), epoch, Cell(), Cell(), Cell(),
            ScalarList(late.scalars)});
  }

  std::vector<std::string> Lines() const {
    return columns_.front().cells.empty() ? std::vector<std::string>() : LayOut(columns_, "  ");
  }

 private:
  void AddRow(const std::vector<Cell>& cells) {
    if (columns_.front().cells.size() >= kMostPhaseRows) return;
    for (size_t i = 0; i < cells.size(); ++i) columns_[i].cells.push_back(cells[i]);
  }

  std::vector<TableColumn> columns_;
};

}  // namespace

EpochCells MakeEpochCells(const Report& report, const TextOptions& options) {
  EpochCells cells;
  cells.rows = KeptRows(report.epochs, options.all_epochs);
  std::vector<const EpochRow*> rows;
  for (const size_t index : cells.rows) {
    rows.push_back(&report.epochs[index]);
    cells.has_incomplete |= !report.epochs[index].complete;
  }
  if (rows.empty()) return cells;
  Planner planner(rows, options.language);
  planner.AddProgress();
  planner.AddScalars();
  planner.AddMachine();
  for (ColumnPlan& plan : planner.Take()) {
    if (!IsUnknown(plan)) {
      cells.columns.push_back(std::move(plan.column));
      cells.importance.push_back(plan.importance);
    } else if (IsLack(plan.column.title, options.language)) {
      cells.unknown.push_back(plan.column.title);
    }
  }
  return cells;
}

EpochTable MakeEpochTable(const Report& report, const TextOptions& options) {
  EpochCells cells = MakeEpochCells(report, options);
  EpochTable table{.lines = {},
                   .unknown = std::move(cells.unknown),
                   .too_wide = {},
                   .rows_left_out = report.epochs.size() - cells.rows.size(),
                   .has_incomplete = cells.has_incomplete};
  if (cells.rows.empty()) return table;
  std::vector<ColumnPlan> plans;
  for (size_t i = 0; i < cells.columns.size(); ++i) {
    plans.push_back({.column = std::move(cells.columns[i]), .importance = cells.importance[i]});
  }
  FittedTable fitted = FitTable(std::move(plans), options.width, "  ");
  table.too_wide = std::move(fitted.too_wide);
  table.lines =
      WithHoles(cells.rows, report.epochs.size(), std::move(fitted.lines), options.language);
  return table;
}

std::vector<std::string> MakePhaseTable(const Report& report, const TextOptions& options) {
  PhaseTable table(options.language);
  for (const EpochRow& row : report.epochs) {
    for (const model::PhaseStats& stats : row.phases) {
      if (stats.phase == kEval) continue;
      table.Add(row.rank, row.pid, EpochName(row, options.language), stats, {});
    }
  }
  const std::string after(Text(Phrase::kAfterTraining, options.language));
  for (const model::AfterTraining& late : report.after_training) {
    for (const model::PhaseStats& stats : late.phases) {
      table.Add(late.rank, late.pid, after, stats, ScalarList(stats.scalars));
    }
    if (!late.scalars.empty()) table.AddValues(late, after);
  }
  return table.Lines();
}

}  // namespace epochmeter::render
