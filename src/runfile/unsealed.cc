// SPDX-License-Identifier: Apache-2.0
#include "runfile/unsealed.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"
#include "runfile/record_codec.h"

namespace epochmeter::runfile {
namespace {

constexpr size_t kBytesPerValue = 2 * sizeof(int64_t);

// Indices in order of time; samples of one instant keep their order.
std::vector<size_t> TimeOrder(const std::vector<int64_t>& t_ns) {
  std::vector<size_t> order(t_ns.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&t_ns](size_t a, size_t b) { return t_ns[a] < t_ns[b]; });
  return order;
}

}  // namespace

std::optional<double> Unsealed::Storable(model::SeriesId series, double value) const {
  if (series >= buffers_.size() || !buffers_[series].defined) return {};
  const double resolution = series_[series].metric.resolution;
  if (resolution == 0) return value;
  if (!std::isfinite(value)) return {};
  const int64_t raw = model::RawFromValue(value, resolution);
  if (raw == INT64_MIN || raw == INT64_MAX) return {};
  return model::ValueFromRaw(raw, resolution);
}

void Unsealed::AddSamples(const model::Samples& samples) {
  for (const model::SampleValue& sample : samples.values) {
    Buffer& buffer = buffers_[sample.series];
    buffer.t_ns.push_back(samples.t_ns);
    buffer.raw.push_back(
        model::RawFromValue(sample.value, series_[sample.series].metric.resolution));
    ticks_ = std::max<uint64_t>(ticks_, buffer.t_ns.size());
  }
  values_ += samples.values.size();
  bytes_ += samples.values.size() * kBytesPerValue;
  last_ns_ = std::max(last_ns_, samples.t_ns);
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
    EPM_CHECK(series->id < kMaxId);
    series_.resize(std::max<size_t>(series_.size(), series->id + 1));
    buffers_.resize(series_.size());
    series_[series->id] = *series;
    buffers_[series->id].defined = true;
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
  if (series >= buffers_.size()) return;
  std::optional<int64_t>& previous = buffers_[series].previous_ns;
  previous = previous ? std::max(*previous, t_ns) : t_ns;
}

std::string Unsealed::Schema() const {
  base::ByteWriter out;
  if (info_) EncodeRecord(*info_, out);
  for (size_t i = 0; i < entities_.size(); ++i) {
    if (entity_defined_[i]) EncodeRecord(entities_[i], out);
  }
  for (size_t i = 0; i < series_.size(); ++i) {
    if (buffers_[i].defined) EncodeRecord(series_[i], out);
  }
  return out.Take();
}

void Unsealed::AddChunks(const Buffer& buffer, const model::SeriesDef& def,
                         std::vector<SeriesChunk>& out) const {
  const std::vector<size_t> order = TimeOrder(buffer.t_ns);
  std::optional<int64_t> previous = buffer.previous_ns;
  for (size_t begin = 0; begin < order.size(); begin += kMaxColumnValues) {
    SeriesChunk& chunk = out.emplace_back();
    chunk.series = def.id;
    chunk.resolution = def.metric.resolution;
    chunk.period_ns = def.period_ns;
    chunk.previous_ns = previous;
    const size_t end = std::min(order.size(), begin + kMaxColumnValues);
    for (size_t i = begin; i < end; ++i) {
      chunk.t_ns.push_back(buffer.t_ns[order[i]]);
      chunk.raw.push_back(buffer.raw[order[i]]);
    }
    previous = std::max(previous.value_or(INT64_MIN), chunk.t_ns.back());
  }
}

ChunkSet Unsealed::Build() const {
  ChunkSet set;
  set.schema = Schema();
  set.events = events_;
  set.log = log_;
  set.other = other_;
  for (size_t i = 0; i < buffers_.size(); ++i) {
    if (!buffers_[i].t_ns.empty()) AddChunks(buffers_[i], series_[i], set.series);
  }
  return set;
}

void Unsealed::DropLastLog(size_t bytes) {
  EPM_CHECK(bytes <= log_.size());
  log_.resize(log_.size() - bytes);
  bytes_ -= bytes;
}

void Unsealed::Clear() {
  for (Buffer& buffer : buffers_) {
    for (const int64_t t_ns : buffer.t_ns) {
      buffer.previous_ns = std::max(buffer.previous_ns.value_or(INT64_MIN), t_ns);
    }
    buffer.t_ns.clear();
    buffer.raw.clear();
  }
  events_.clear();
  log_.clear();
  other_.clear();
  bytes_ = 0;
  ticks_ = values_ = 0;
}

}  // namespace epochmeter::runfile
