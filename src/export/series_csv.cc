// SPDX-License-Identifier: Apache-2.0
// Wide: one tick a row, one series a column, on the grid of the run's sampling interval; a value
// belongs to the nearest grid instant, the later one where two do. Ticks at which nothing was read
// have no row. Long: one value a row, nothing is moved.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

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

// The step and epoch at rising instants, of the lowest rank that has any.
class Progress {
 public:
  Progress(const Run& run, const Report& report) {
    if (!report.epochs.empty()) {
      const std::optional<int32_t> rank = report.epochs.front().rank;
      for (const EpochRow& row : report.epochs) {
        if (row.rank == rank && row.epoch != model::kNoEpoch) rows_.push_back(&row);
      }
    }
    if (run.steps.empty()) return;
    steps_ = &run.steps.begin()->second;
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
    return step < 0 ? std::string() : std::to_string(step);
  }

  std::string EpochAt(int64_t t_ns) {
    while (row_ + 1 < rows_.size() && rows_[row_ + 1]->begin_ns <= t_ns) ++row_;
    if (rows_.empty()) return {};
    const EpochRow& row = *rows_[row_];
    return row.begin_ns <= t_ns && t_ns <= row.end_ns ? std::to_string(row.epoch) : std::string();
  }

 private:
  std::vector<const EpochRow*> rows_;
  size_t row_ = 0;
  const StepTable* steps_ = nullptr;
  std::vector<size_t> order_;
  size_t next_ = 0;
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
  for (const ExportedSeries& one : series) header.push_back(one.wide_name);
  WriteCsvRow(header, out);
  const int64_t interval_ns = SamplingIntervalNs(series);
  if (run.store == nullptr) return StreamState(out);
  EPM_ASSIGN(const int64_t phase_ns, GridPhase(run, series, interval_ns));
  // A row takes the values from half an interval before its instant to half an interval after.
  const int64_t into_row_ns = (run.span.begin_ns - phase_ns + interval_ns / 2) % interval_ns;
  const int64_t begin_ns =
      run.span.begin_ns - (into_row_ns < 0 ? into_row_ns + interval_ns : into_row_ns);
  TimeChunks chunks(run, series, begin_ns, kRowsPerChunk * interval_ns);
  Progress progress(run, report);
  while (true) {
    EPM_ASSIGN(const std::optional<TimeChunk> chunk, chunks.Next());
    if (!chunk) break;
    int64_t instant_ns = chunk->interval.begin_ns + interval_ns / 2;
    for (const std::vector<std::string>& cells : WideCells(*chunk, interval_ns)) {
      if (!cells.empty()) {
        out << TimeText(run, instant_ns, options.time) << ','
            << CsvNumber(base::SecondsFromNs(instant_ns - run.span.begin_ns)) << ','
            << progress.StepAt(instant_ns) << ',' << progress.EpochAt(instant_ns) << ',';
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
