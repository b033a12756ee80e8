// SPDX-License-Identifier: Apache-2.0
#include "runfile/unsealed.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "runfile/record_codec.h"

namespace epochmeter::runfile {
namespace {

constexpr size_t kBytesPerValue = 2 * sizeof(int64_t);  // as vectors grow by doubling

// Cuts a column into chunks, each with the piece of its times that stands at the same place.
void AddChunks(SampleRows::Column column, size_t samples, size_t first_times, SeriesChunk chunk,
               const std::vector<std::vector<int64_t>>& times, std::vector<SeriesChunk>& out) {
  chunk.series = column.series;
  chunk.times = first_times;
  if (samples <= kMaxColumnValues) {
    chunk.raw = std::move(column.raw);
    out.push_back(std::move(chunk));
    return;
  }
  for (size_t begin = 0; begin < samples; begin += kMaxColumnValues, ++chunk.times) {
    const size_t end = std::min(samples, begin + kMaxColumnValues);
    chunk.raw.assign(column.raw.data() + begin, column.raw.data() + end);
    out.push_back(chunk);
    chunk.previous_ns = std::max(chunk.previous_ns.value_or(INT64_MIN), times[chunk.times].back());
  }
}

}  // namespace

uint64_t Unsealed::MakeStorable(model::Samples& samples) const {
  const size_t before = samples.values.size();
  std::erase_if(samples.values, [this](model::SampleValue& sample) {
    if (sample.series >= state_.size() || !state_[sample.series].defined) return true;
    const std::optional<double> value = Storable(state_[sample.series].steps, sample.value);
    if (value) sample.value = *value;
    return !value;
  });
  return before - samples.values.size();
}

std::optional<double> Unsealed::Storable(const model::Steps& steps, double value) {
  if (steps.bits()) return value;
  if (!std::isfinite(value)) return {};
  const int64_t raw = steps.Raw(value);
  if (raw == INT64_MIN || raw == INT64_MAX) return {};
  return steps.Value(raw);
}

void Unsealed::AddSamples(const model::Samples& samples) {
  rows_.BeginRow(samples);
  for (const model::SampleValue& sample : samples.values) {
    Series& series = state_[sample.series];
    rows_.Put(series.steps.Raw(sample.value));
    ticks_ = std::max(ticks_, ++series.count);
  }
  values_ += samples.values.size();
  bytes_ += samples.values.size() * kBytesPerValue;
  last_ns_ = std::max(last_ns_, samples.t_ns);
}

void Unsealed::DefineSeries(const model::SeriesDef& def) {
  EPM_CHECK(def.id < kMaxId);
  series_.resize(std::max<size_t>(series_.size(), def.id + 1));
  state_.resize(series_.size());
  series_[def.id] = def;
  state_[def.id].defined = true;
  state_[def.id].steps = model::Steps(def.metric.resolution);
}

void Unsealed::Add(const model::Record& record, std::string_view encoded) {
  const auto keep = [&](std::string& where, int64_t t_ns) {
    where += encoded;
    last_ns_ = std::max(last_ns_, t_ns);
  };
  if (const auto* samples = std::get_if<model::Samples>(&record)) return AddSamples(*samples);
  bytes_ += encoded.size();
  if (const auto* info = std::get_if<model::RunInfo>(&record)) {
    if (!info_) info_ = *info;
    last_ns_ = std::max(last_ns_, info->anchor.mono_ns);
  } else if (const auto* entity = std::get_if<model::EntityDef>(&record)) {
    EPM_CHECK(entity->id < kMaxId);
    entities_.resize(std::max<size_t>(entities_.size(), entity->id + 1));
    entity_defined_.resize(entities_.size());
    entities_[entity->id] = *entity;
    entity_defined_[entity->id] = true;
  } else if (const auto* series = std::get_if<model::SeriesDef>(&record)) {
    DefineSeries(*series);
  } else if (const auto* event = std::get_if<model::Event>(&record)) {
    keep(events_, event->t_ns);
  } else if (const auto* text = std::get_if<model::LogText>(&record)) {
    keep(log_, text->t_ns);
  } else if (const auto* state = std::get_if<model::SeriesState>(&record)) {
    keep(other_, state->t_ns);
  } else if (const auto* end = std::get_if<model::RunEnd>(&record)) {
    keep(other_, end->t_ns);
  } else {
    other_ += encoded;
  }
}

void Unsealed::SetPrevious(model::SeriesId series, int64_t t_ns) {
  if (series >= state_.size()) return;
  std::optional<int64_t>& previous = state_[series].previous_ns;
  previous = previous ? std::max(*previous, t_ns) : t_ns;
}

std::string Unsealed::Schema() const {
  base::ByteWriter out;
  if (info_) EncodeRecord(*info_, out);
  for (size_t i = 0; i < entities_.size(); ++i) {
    if (entity_defined_[i]) EncodeRecord(entities_[i], out);
  }
  for (size_t i = 0; i < series_.size(); ++i) {
    if (state_[i].defined) EncodeRecord(series_[i], out);
  }
  return out.Take();
}

ChunkSet Unsealed::Build() const {
  ChunkSet set;
  set.schema = Schema();
  set.events = events_;
  set.log = log_;
  set.other = other_;
  SampleRows::Columns built = rows_.Build();
  std::vector<size_t> first_times;  // of each time column, in the set's pieces
  for (const SampleRows::Times& times : built.times) {
    first_times.push_back(set.times.size());
    for (size_t begin = 0; begin < times.t_ns.size(); begin += kMaxColumnValues) {
      const size_t end = std::min(times.t_ns.size(), begin + kMaxColumnValues);
      set.times.emplace_back(times.t_ns.data() + begin, times.t_ns.data() + end);
    }
  }
  for (SampleRows::Column& column : built.columns) {
    const model::SeriesDef& def = series_[column.series];
    const SeriesChunk chunk{.resolution = def.metric.resolution,
                            .period_ns = def.period_ns,
                            .previous_ns = state_[column.series].previous_ns};
    const size_t times = column.times;
    AddChunks(std::move(column), built.times[times].t_ns.size(), first_times[times], chunk,
              set.times, set.series);
  }
  return set;
}

void Unsealed::DropLastLog(size_t bytes) {
  EPM_CHECK(bytes <= log_.size());
  log_.resize(log_.size() - bytes);
  bytes_ -= bytes;
}

void Unsealed::Clear() {
  rows_.ForEachLatest([this](model::SeriesId id, int64_t t_ns) { SetPrevious(id, t_ns); });
  rows_.Clear();
  for (Series& series : state_) series.count = 0;
  events_.clear();
  log_.clear();
  other_.clear();
  bytes_ = 0;
  ticks_ = values_ = 0;
}

}  // namespace epochmeter::runfile
