// SPDX-License-Identifier: Apache-2.0
#include "cli/sampler_records.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/clock.h"
#include "runfile/record_codec.h"

namespace epochmeter::cli {
namespace {

bool IsOfSampler(const model::Record& record) {
  return !std::holds_alternative<model::RunInfo>(record) &&
         !std::holds_alternative<model::Anchor>(record) &&
         !std::holds_alternative<model::LogText>(record) &&
         !std::holds_alternative<model::RunEnd>(record);
}

}  // namespace

void SamplerRecords::SeenSeries::Write(const model::Record& record) {
  if (const auto* samples = std::get_if<model::Samples>(&record)) {
    for (const model::SampleValue& value : samples->values) MarkLive(value.series);
  }
  out_.Write(record);
}

void SamplerRecords::SeenSeries::TellGone(int64_t t_ns, const std::string& detail) {
  for (model::SeriesId id = 0; id < live_.size(); ++id) {
    if (!live_[id]) continue;
    live_[id] = false;
    out_.Write(model::SeriesState{.t_ns = t_ns,
                                  .series = id,
                                  .condition = model::SeriesCondition::kSourceGone,
                                  .detail = detail});
    gone_.resize(std::max(gone_.size(), live_.size()));
    gone_[id] = true;
  }
}

void SamplerRecords::SeenSeries::MarkLive(model::SeriesId id) {
  if (live_.size() <= id) live_.resize(id + 1);
  live_[id] = true;
  if (id >= gone_.size() || !gone_[id]) return;
  gone_[id] = false;
  out_.Write(model::SeriesState{.t_ns = base::MonotonicNs(),
                                .series = id,
                                .condition = model::SeriesCondition::kOk,
                                .detail = "the sampler is back"});
}

bool SamplerRecords::Take(std::string_view packet) {
  base::ByteReader reader(packet);
  model::Record record;
  bool good = true;
  while (reader.remaining() > 0) {
    const runfile::DecodeStatus status = runfile::DecodeRecord(reader, &record);
    if (status == runfile::DecodeStatus::kIncomplete) return false;
    if (status != runfile::DecodeStatus::kRecord || !IsOfSampler(record)) {
      good = false;
      continue;
    }
    // A source may write samples of an earlier time as well.
    if (const auto* samples = std::get_if<model::Samples>(&record)) {
      last_sample_ns_ = std::max(last_sample_ns_, samples->t_ns);
    }
    remap_->Write(record);
  }
  return good;
}

}  // namespace epochmeter::cli
