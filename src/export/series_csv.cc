// SPDX-License-Identifier: Apache-2.0
// Wide: one tick a row, one series a column, on the grid of the run's sampling interval; a value
// belongs to the nearest grid instant, the later one where two do. Ticks at which nothing was read
// have no row. The last columns are the scalars of the last step that ended within the interval up
// to the row's instant, of the same process as the step and epoch. Long: one value a row, nothing
// is moved.
#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <numeric>

#include "base/strings.h"
#include "export/exporters.h"
#include "export/series_list.h"
#include "export/text_fields.h"
#include "export/time_chunks.h"
#include "export/value_order.h"

namespace epochmeter::exporting {
namespace {

using model::EpochRow;
using model::Report;
using model::Run;
using model::StepTable;

constexpr int64_t kRowsPerChunk = 600;
constexpr int64_t kTicksPerLongChunk = 100;
constexpr int64_t kPhaseSamples = 1000;

// Where within the interval the fastest series is sampled: the circular mean over its first
// samples, so that jitter around a grid instant doesn't throw values into the neighbouring row.
base::Result<int64_t> GridPhase(const Run& run, const std::vector<ExportedSeries>& series,
                                int64_t interval_ns) {
  for (const ExportedSeries& one : series) {
    if (one.def->period_ns != interval_ns) continue;
    const model::Interval start{.begin_ns = run.span.begin_ns,
                                .end_ns = run.span.begin_ns + kPhaseSamples * interval_ns};
    EPM_ASSIGN(const model::SeriesColumn column, run.store->Read(one.def->id, start));
    if (column.t_ns.empty()) continue;
    double x = 0;
    double y = 0;
    const double turn = 2 * std::numbers::pi / static_cast<double>(interval_ns);
    for (const int64_t t_ns : column.t_ns) {
      x += std::cos(static_cast<double>(t_ns % interval_ns) * turn);
      y += std::sin(static_cast<double>(t_ns % interval_ns) * turn);
    }
    const int64_t phase = std::llround(std::atan2(y, x) / turn);
    return (phase + interval_ns) % interval_ns;
  }
  return int64_t{0};
}

// Lower case letters, digits and underscores; anything else becomes an underscore.
std::string CleanName(std::string_view name) {
  std::string clean = base::ToLowerAscii(name);
  for (char& c : clean) {
    if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))) c = '_';
  }
  return clean;
}

// The steps of the process that a row belongs to; null when it has none.
const StepTable* StepsOf(const Run& run, const EpochRow& row) {
  for (const auto& [process, steps] : run.steps) {
    const bool same_pid = !row.pid || *row.pid == process.pid;
    if (process.rank == row.rank.value_or(model::kNoRank) && same_pid) return &steps;
  }
  return nullptr;
}

// The step, epoch and step scalars at rising instants, of the lowest rank that has any.
class Progress {
 public:
  Progress(const Run& run, const Report& report) {
    if (!report.epochs.empty()) {
      const EpochRow& first = report.epochs.front();
      for (const EpochRow& row : report.epochs) {
        const bool same = row.rank == first.rank && row.pid == first.pid;
        if (same && row.epoch != model::kNoEpoch) rows_.push_back(&row);
      }
      steps_ = StepsOf(run, first);
    } else if (!run.steps.empty()) {
      steps_ = &run.steps.begin()->second;
    }
    if (steps_ == nullptr) return;
    FindScalars();
    order_.resize(steps_->size());
    std::iota(order_.begin(), order_.end(), size_t{0});
    std::stable_sort(order_.begin(), order_.end(),
                     [&](size_t a, size_t b) { return steps_->t_ns[a] < steps_->t_ns[b]; });
  }

  // The last step that ended by then; empty before the first.
  std::string StepAt(int64_t t_ns) {
    while (next_ < order_.size() && steps_->t_ns[order_[next_]] <= t_ns) ++next_;
    if (next_ == 0) return {};
    const int64_t step = steps_->step[order_[next_ - 1]];
    return step == model::kNotKnown ? std::string() : std::to_string(step);
  }

  const std::vector<std::string>& scalar_names() const { return scalar_names_; }

  // The scalars at the instant that StepAt was asked for last: each by the last step that has it
  // and ended less than `interval_ns` before; empty without one.
  std::vector<std::string> Scalars(int64_t t_ns, int64_t interval_ns) const {
    std::vector<std::string> cells(scalars_.size());
    for (size_t i = next_; i > 0 && steps_->t_ns[order_[i - 1]] > t_ns - interval_ns; --i) {
      for (size_t s = 0; s < scalars_.size(); ++s) {
        const double value = (*scalars_[s])[order_[i - 1]];
        if (cells[s].empty() && !model::IsAbsent(value)) cells[s] = CsvNumber(value);
      }
    }
    return cells;
  }

  std::string EpochAt(int64_t t_ns) {
    while (row_ + 1 < rows_.size() && rows_[row_ + 1]->begin_ns <= t_ns) ++row_;
    if (rows_.empty()) return {};
    const EpochRow& row = *rows_[row_];
    return row.begin_ns <= t_ns && t_ns <= row.end_ns ? std::to_string(row.epoch) : std::string();
  }

 private:
  void FindScalars() {
    constexpr std::string_view kPrefix = "scalar.";
    std::map<std::string, int> seen;
    for (const auto& [name, column] : steps_->columns) {
      if (!base::StartsWith(name, kPrefix)) continue;
      std::string clean = "train_value_" + CleanName(std::string_view(name).substr(kPrefix.size()));
      const int times = ++seen[clean];
      if (times > 1) clean += "_" + std::to_string(times);
      scalar_names_.push_back(std::move(clean));
      scalars_.push_back(&column);
    }
  }

  std::vector<const EpochRow*> rows_;
  size_t row_ = 0;
  const StepTable* steps_ = nullptr;
  std::vector<size_t> order_;
  size_t next_ = 0;
  std::vector<std::string> scalar_names_;
  std::vector<const std::vector<double>*> scalars_;
};

// Cells of a stretch, row by row; an empty row is one at which nothing was read.
std::vector<std::vector<std::string>> WideCells(const TimeChunk& chunk, int64_t interval_ns) {
  std::vector<std::vector<std::string>> rows(static_cast<size_t>(kRowsPerChunk));
  for (size_t s = 0; s < chunk.columns.size(); ++s) {
    const model::SeriesColumn& column = chunk.columns[s];
    for (size_t i = 0; i < column.t_ns.size(); ++i) {
      const auto row =
          static_cast<size_t>((column.t_ns[i] - chunk.interval.begin_ns) / interval_ns);
      if (rows[row].empty()) rows[row].resize(chunk.columns.size());
      rows[row][s] = CsvNumber(column.value[i]);
    }
  }
  return rows;
}

base::Result<> WriteWide(const Run& run, const Report& report, const ExportOptions& options,
                         std::ostream& out) {
  const std::vector<ExportedSeries> series = ListSeries(run);
  std::vector<std::string> header = {"timestamp", "elapsed_seconds", "step", "epoch"};
  for (const ExportedSeries& one : series) header.push_back(CsvCell(one.wide_name));
  Progress progress(run, report);
  const std::vector<std::string>& scalars = progress.scalar_names();
  header.insert(header.end(), scalars.begin(), scalars.end());
  WriteCsvRow(header, out);
  const int64_t interval_ns = SamplingIntervalNs(series);
  if (run.store == nullptr) return StreamState(out);
  EPM_ASSIGN(const int64_t phase_ns, GridPhase(run, series, interval_ns));
  // A row takes the values from half an interval before its instant to half an interval after.
  const int64_t into_row_ns = (run.span.begin_ns - phase_ns + interval_ns / 2) % interval_ns;
  const int64_t begin_ns =
      run.span.begin_ns - (into_row_ns < 0 ? into_row_ns + interval_ns : into_row_ns);
  TimeChunks chunks(run, series, begin_ns, kRowsPerChunk * interval_ns);
  while (true) {
    EPM_ASSIGN(const std::optional<TimeChunk> chunk, chunks.Next());
    if (!chunk) break;
    int64_t instant_ns = chunk->interval.begin_ns + interval_ns / 2;
    for (std::vector<std::string>& cells : WideCells(*chunk, interval_ns)) {
      if (!cells.empty()) {
        out << TimeText(run, instant_ns, options.time) << ','
            << CsvNumber(base::SecondsFromNs(instant_ns - run.span.begin_ns)) << ','
            << progress.StepAt(instant_ns) << ',' << progress.EpochAt(instant_ns) << ',';
        const auto values = progress.Scalars(instant_ns, interval_ns);
        cells.insert(cells.end(), values.begin(), values.end());
        WriteCsvRow(cells, out);
      }
      instant_ns += interval_ns;
    }
    EPM_TRY(StreamState(out));
  }
  return StreamState(out);
}

base::Result<> WriteLong(const Run& run, const ExportOptions& options, std::ostream& out) {
  const std::vector<ExportedSeries> series = ListSeries(run);
  const std::string host = CsvCell(HostName(run));
  WriteCsvRow({"timestamp", "metric", "unit", "host", "rank", "gpu", "value"}, out);
  TimeChunks chunks(run, series, run.span.begin_ns,
                    kTicksPerLongChunk * SamplingIntervalNs(series));
  while (true) {
    EPM_ASSIGN(const std::optional<TimeChunk> chunk, chunks.Next());
    if (!chunk) break;
    for (const ValueRef& value : ValuesInOrder(*chunk)) {
      const ExportedSeries& one = series[value.series];
      WriteCsvRow({TimeText(run, value.t_ns, options.time), CsvCell(one.metric),
                   CsvCell(one.def->metric.unit), host, CsvCell(one.rank), CsvCell(one.gpu),
                   CsvNumber(value.value)},
                  out);
    }
    EPM_TRY(StreamState(out));
  }
  return StreamState(out);
}

base::Result<> Write(const Run& run, const Report& report, const ExportOptions& options,
                     std::ostream& out) {
  return options.long_form ? WriteLong(run, options, out) : WriteWide(run, report, options, out);
}

}  // namespace

extern const ExporterDef kSeriesCsv{.subject = Subject::kSeries,
                                    .name = "csv",
                                    .extension = "csv",
                                    .summary = "series as columns, or one value a row with --long",
                                    .Write = Write};

}  // namespace epochmeter::exporting
