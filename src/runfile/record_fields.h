// SPDX-License-Identifier: Apache-2.0
// The fields of every record, listed once. The binary codec and the text form both walk this list,
// so that they can't disagree. An archive is called as archive("name", field) for each field in
// order; new fields are appended only (FORMAT.md, "Versions").
#pragma once

#include <concepts>
#include <type_traits>

#include "model/record.h"

namespace epochmeter::runfile {

template <typename T, typename U>
concept Like = std::same_as<std::remove_const_t<T>, U>;

template <typename A>
void Fields(A& archive, Like<base::ClockAnchor> auto& clocks) {
  archive("mono_ns", clocks.mono_ns);
  archive("boot_ns", clocks.boot_ns);
  archive("wall_ns", clocks.wall_ns);
}

template <typename A>
void Fields(A& archive, Like<model::RunInfo> auto& info) {
  archive("run_id", info.run_id);
  archive("boot_id", info.boot_id);
  Fields(archive, info.anchor);
  archive("attributes", info.attributes);
}

template <typename A>
void Fields(A& archive, Like<model::Anchor> auto& anchor) {
  Fields(archive, anchor.clocks);
}

template <typename A>
void Fields(A& archive, Like<model::EntityDef> auto& entity) {
  archive("id", entity.id);
  archive("scope", entity.scope);
  archive("name", entity.name);
  archive("labels", entity.labels);
  archive("attributes", entity.attributes);
}

template <typename A>
void Fields(A& archive, Like<model::SeriesDef> auto& series) {
  archive("id", series.id);
  archive("entity", series.entity);
  archive("period_ns", series.period_ns);
  archive("name", series.metric.name);
  archive("label", series.metric.label);
  archive("field", series.metric.field);
  archive("prometheus", series.metric.prometheus);
  archive("unit", series.metric.unit);
  archive("kind", series.metric.kind);
  archive("scope", series.metric.scope);
  archive("resolution", series.metric.resolution);
  archive("source", series.metric.source);
}

template <typename A>
void Fields(A& archive, Like<model::Samples> auto& samples) {
  archive("t_ns", samples.t_ns);
  archive("values", samples.values);
}

template <typename A>
void Fields(A& archive, Like<model::SeriesState> auto& state) {
  archive("t_ns", state.t_ns);
  archive("series", state.series);
  archive("condition", state.condition);
  archive("detail", state.detail);
}

template <typename A>
void Fields(A& archive, Like<model::Event> auto& event) {
  archive("t_ns", event.t_ns);
  archive("kind", event.kind);
  archive("rank", event.rank);
  archive("epoch", event.epoch);
  archive("step", event.step);
  archive("name", event.name);
  archive("fields", event.fields);
}

template <typename A>
void Fields(A& archive, Like<model::LogText> auto& text) {
  archive("t_ns", text.t_ns);
  archive("stream", text.stream);
  archive("text", text.text);
}

template <typename A>
void Fields(A& archive, Like<model::Loss> auto& loss) {
  archive("t_ns", loss.t_ns);
  archive("severity", loss.severity);
  archive("kind", loss.kind);
  archive("count", loss.count);
  archive("detail", loss.detail);
  archive("help", loss.help);
}

template <typename A>
void Fields(A& archive, Like<model::RunEnd> auto& end) {
  archive("t_ns", end.t_ns);
  archive("reason", end.reason);
  archive("exit_code", end.exit_code);
  archive("signal", end.signal);
}

// How many values an enumeration of the records has; the codecs refuse others.
template <typename E>
inline constexpr int kEnumCount = 0;
template <>
inline constexpr int kEnumCount<model::Scope> = model::kScopeCount;
template <>
inline constexpr int kEnumCount<model::MetricKind> = model::kMetricKindCount;
template <>
inline constexpr int kEnumCount<model::SeriesCondition> = model::kSeriesConditionCount;
template <>
inline constexpr int kEnumCount<model::EventKind> = model::kEventKindCount;
template <>
inline constexpr int kEnumCount<model::LossSeverity> = 3;

}  // namespace epochmeter::runfile
