// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "base/strings.h"
#include "model/rank_events.h"
#include "render/page_numbers.h"
#include "render/page_parts.h"
#include "render/step_rows.h"

namespace epochmeter::render {
namespace {

using base::JsonWriter;
using model::StepTable;

constexpr double kMiddleSteps = 1e4;
constexpr size_t kMostSlowest = 1000;
constexpr size_t kMostSpans = 2000;  // epochs or phases of a rank
constexpr size_t kMostScalars = 32;  // of a rank
constexpr size_t kLeastBuckets = 4;  // of a rank

std::string_view WildName(double value) {
  if (std::isnan(value)) return model::IsAbsent(value) ? "null" : "\"nan\"";
  return value < 0 ? "\"-inf\"" : "\"inf\"";
}

// {"scale":S,"v":[...]} of some rows of a column; plain numbers without a scale that fits.
std::string PackColumn(const std::vector<double>& column, const std::vector<size_t>& rows) {
  std::vector<double> values;
  values.reserve(rows.size());
  for (const size_t row : rows) values.push_back(column[row]);
  const std::optional<double> step = StepFor(values, 0, kMiddleSteps);
  DeltaArray array;
  for (const double value : values) {
    if (!std::isfinite(value)) {
      array.AddText(WildName(value));
    } else if (step) {
      array.Add(std::llround(value / *step));
    } else {
      array.AddText(base::JsonNumber(value));
    }
  }
  const std::string scale = step ? base::JsonNumber(*step) : "null";
  return "{\"scale\":" + scale + ",\"v\":" + array.Take() + "}";
}

void WriteColumn(std::string_view key, const std::vector<double>* column,
                 const std::vector<size_t>& rows, JsonWriter* json) {
  json->Key(key);
  column == nullptr ? json->Null() : json->Raw(PackColumn(*column, rows));
}

// Numbers of epochs or steps, null when none is known.
void WriteNumbers(std::string_view key, const std::vector<int64_t>& numbers,
                  const std::vector<size_t>& rows, JsonWriter* json) {
  DeltaArray array;
  bool any = false;
  for (const size_t row : rows) {
    // What a browser knows as a whole number.
    const bool known = std::abs(numbers[row] / 2) < (int64_t{1} << 51);
    known ? array.Add(numbers[row]) : array.AddNull();
    any = any || known;
  }
  json->Key(key);
  any ? json->Raw(array.Take()) : json->Null();
}

// How many steps a row tells: trainings that print each tenth step tell ten in one.
double StepsOfRow(const StepTable& table, size_t row) {
  const std::vector<double>* counts = table.Column("steps");
  const double count = counts == nullptr ? 1 : (*counts)[row];
  return count >= 1 && count < 1e9 ? count : 1;
}

uint64_t CountSteps(const StepTable& table) {
  double total = 0;
  for (size_t row = 0; row < table.size(); ++row) total += StepsOfRow(table, row);
  return static_cast<uint64_t>(total);
}

// Seconds of one of the steps that a row tells.
void WriteSeconds(std::string_view key, const StepTable& table, std::string_view name,
                  const std::vector<size_t>& rows, JsonWriter* json) {
  const std::vector<double>* column = table.Column(name);
  if (column == nullptr || table.Column("steps") == nullptr) {
    return WriteColumn(key, column, rows, json);
  }
  std::vector<double> each = *column;
  for (const size_t row : rows) {
    if (std::isfinite(each[row])) each[row] /= StepsOfRow(table, row);
  }
  WriteColumn(key, &each, rows, json);
}

bool WriteSteps(const StepTable* table, size_t buckets, const PageClock& clock, JsonWriter* json) {
  json->Key("steps");
  if (table == nullptr || table->size() == 0) {
    json->Null();
    return true;
  }
  const std::vector<size_t> rows = ShownSteps(*table, buckets);
  const bool thinned = rows.size() < table->size();
  json->BeginObject().Field("count", CountSteps(*table));
  json->Field("thinned", thinned);
  DeltaArray times;
  for (const size_t row : rows) times.Add(clock.Ms(table->t_ns[row]));
  json->Key("t").Raw(times.Take());
  WriteNumbers("step", table->step, rows, json);
  WriteNumbers("epoch", table->epoch, rows, json);
  WriteSeconds("duration", *table, "duration_s", rows, json);
  WriteSeconds("data_wait", *table, "data_wait_s", rows, json);
  json->Key("scalars").BeginObject();
  size_t scalars = 0;
  for (const auto& [name, column] : table->columns) {
    if (!base::StartsWith(name, kScalarPrefix) || ++scalars > kMostScalars) continue;
    WriteColumn(std::string_view(name).substr(kScalarPrefix.size()), &column, rows, json);
  }
  json->EndObject().EndObject();
  return !thinned;
}

void WriteEpochs(const std::vector<const model::EpochRow*>& rows, const PageClock& clock,
                 JsonWriter* json) {
  json->Key("epochs").BeginArray();
  for (size_t i = 0; i < std::min(rows.size(), kMostSpans); ++i) {
    if (rows[i]->epoch == model::kNoEpoch) continue;
    json->BeginObject()
        .Field("epoch", rows[i]->epoch)
        .Field("begin", clock.Ms(rows[i]->begin_ns))
        .Field("end", clock.Ms(rows[i]->end_ns))
        .EndObject();
  }
  json->EndArray();
}

// The longest ones when there are too many.
void WritePhases(std::vector<model::PhaseSpan> phases, const PageClock& clock, JsonWriter* json) {
  const auto begins_first = [](const model::PhaseSpan& a, const model::PhaseSpan& b) {
    return a.interval.begin_ns < b.interval.begin_ns;
  };
  if (phases.size() > kMostSpans) {
    const auto length = [](const model::PhaseSpan& phase) {
      return phase.interval.end_ns - phase.interval.begin_ns;
    };
    std::nth_element(phases.begin(), phases.begin() + kMostSpans, phases.end(),
                     [&](const auto& a, const auto& b) { return length(a) > length(b); });
    phases.resize(kMostSpans);
    std::stable_sort(phases.begin(), phases.end(), begins_first);
  }
  json->Key("phases").BeginArray();
  for (const model::PhaseSpan& phase : phases) {
    json->BeginObject()
        .Field("name", phase.name)
        .Field("begin", clock.Ms(phase.interval.begin_ns))
        .Field("end", clock.Ms(phase.interval.end_ns))
        .EndObject();
  }
  json->EndArray();
}

void WriteSlowest(const std::vector<model::RankEvents>& ranks, const PageClock& clock,
                  JsonWriter* json) {
  std::vector<const StepTable*> tables;
  std::vector<int32_t> numbers;
  for (const model::RankEvents& rank : ranks) {
    if (!rank.rank || rank.steps == nullptr) continue;
    tables.push_back(rank.steps);
    numbers.push_back(*rank.rank);
  }
  json->Key("slowest");
  if (tables.size() < 2) {
    json->Null();
    return;
  }
  const SlowestSteps slowest = FindSlowest(tables, kMostSlowest);
  DeltaArray times;
  for (const int64_t t_ns : slowest.t_ns) times.Add(clock.Ms(t_ns));
  json->BeginObject().Key("t").Raw(times.Take()).Key("rank").BeginArray();
  for (const size_t table : slowest.table) json->Int(numbers[table]);
  json->EndArray().EndObject();
}

// Rows of the report by process, in one walk: there may be ten thousand ranks.
using RowsByRank = std::map<std::pair<std::optional<int32_t>, std::optional<int64_t>>,
                            std::vector<const model::EpochRow*>>;

}  // namespace

bool WriteRanks(const model::Run& run, const model::Report& report, size_t step_buckets,
                JsonWriter* json) {
  const PageClock clock(run);
  const std::vector<model::RankEvents> ranks = model::SplitByRank(run);
  RowsByRank rows_of;
  for (const model::EpochRow& row : report.epochs) rows_of[{row.rank, row.pid}].push_back(&row);
  const size_t buckets = std::max(step_buckets / std::max<size_t>(ranks.size(), 1), kLeastBuckets);
  bool all = true;
  json->Key("ranks").BeginArray();
  for (const model::RankEvents& rank : ranks) {
    const std::vector<const model::EpochRow*>& rows = rows_of[{rank.rank, rank.pid}];
    json->BeginObject()
        .Field("name", model::ProcessName(rank.rank, rank.pid))
        .Field("rank", rank.rank)
        .Field("pid", rank.pid);
    json->Key("gpus").BeginArray();
    if (!rows.empty()) {
      for (const int32_t gpu : rows.back()->own_gpus.gpus) json->Int(gpu);
    }
    json->EndArray();
    all = WriteSteps(rank.steps, buckets, clock, json) && all;
    WriteEpochs(rows, clock, json);
    WritePhases(model::PhasesOf(rank, run.Recorded().end_ns), clock, json);
    json->EndObject();
  }
  json->EndArray();
  WriteSlowest(ranks, clock, json);
  return all;
}

}  // namespace epochmeter::render
