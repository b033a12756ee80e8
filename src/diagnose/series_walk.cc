// SPDX-License-Identifier: Apache-2.0
#include "diagnose/series_walk.h"

#include <algorithm>
#include <cmath>

#include "base/clock.h"
#include "diagnose/statistics.h"

namespace epochmeter::diagnose {
namespace {

using model::EntityDef;
using model::SeriesColumn;
using model::TimeUse;

// As in nvmlClocksEventReasons: hardware slowdown, software and hardware thermal, power brake.
constexpr int64_t kHeldDown = 0x8 | 0x20 | 0x40 | 0x80;

// Whether nothing is missing between two samples.
bool Follow(int64_t before_ns, int64_t t_ns, int64_t period_ns) {
  const double weight_s = model::SampleWeightSeconds(before_ns, t_ns, period_ns);
  return t_ns > before_ns && weight_s >= base::SecondsFromNs(t_ns - before_ns);
}

// A sample holds since the one before it, as its weight in means.
std::vector<Piece> HeldPieces(const SeriesColumn& column, int64_t period_ns) {
  std::vector<Piece> pieces;
  for (size_t i = 1; i < column.t_ns.size(); ++i) {
    const double value = column.value[i];
    if (!std::isfinite(value) || column.t_ns[i] <= column.t_ns[i - 1]) continue;
    int64_t begin_ns = column.t_ns[i - 1];
    if (!Follow(begin_ns, column.t_ns[i], period_ns)) begin_ns = column.t_ns[i] - period_ns;
    pieces.push_back({std::max(begin_ns, column.t_ns[i - 1]), column.t_ns[i], value, value});
  }
  return pieces;
}

int64_t PeriodOf(const Facts& facts, const EntityDef& entity, std::string_view field) {
  const auto id = facts.run().FindSeries(entity.id, field);
  return id ? facts.run().series[*id].period_ns : 0;
}

// Power as a part of the limit that held.
SeriesColumn PowerOfLimit(const SeriesColumn& power, const SeriesColumn& limit) {
  SeriesColumn ratio;
  size_t at = 0;
  for (size_t i = 0; i < power.t_ns.size(); ++i) {
    while (at + 1 < limit.t_ns.size() && limit.t_ns[at + 1] <= power.t_ns[i]) ++at;
    if (at >= limit.t_ns.size() || !(limit.value[at] > 0)) continue;
    ratio.t_ns.push_back(power.t_ns[i]);
    ratio.value.push_back(std::clamp(power.value[i] / limit.value[at], 0.0, 1.0));
  }
  return ratio;
}

TimeUse UseAt(const Timeline& timeline, int64_t t_ns) {
  const auto next = std::upper_bound(timeline.cuts.begin(), timeline.cuts.end(), t_ns,
                                     [](int64_t t, const Cut& cut) { return t < cut.begin_ns; });
  return next == timeline.cuts.begin() ? TimeUse::kUnknown : std::prev(next)->use;
}

bool IsHeldDown(double reasons) {
  return reasons >= 0 && reasons < 9e15 && (static_cast<int64_t>(reasons) & kHeldDown) != 0;
}

// The latest value at or before `t_ns`, walking on from `at`; NaN before the first.
double ValueAt(const SeriesColumn& column, int64_t t_ns, size_t* at) {
  if (column.t_ns.empty() || column.t_ns.front() > t_ns) return std::nan("");
  while (*at + 1 < column.t_ns.size() && column.t_ns[*at + 1] <= t_ns) ++*at;
  return column.value[*at];
}

double FreeClock(const SeriesColumn& clock, const SeriesColumn& reasons, const Timeline& timeline) {
  std::vector<double> free;
  double highest = 0;
  size_t at = 0;
  for (size_t i = 0; i < clock.t_ns.size(); ++i) {
    if (!(clock.value[i] > 0)) continue;
    highest = std::max(highest, clock.value[i]);
    const double now = ValueAt(reasons, clock.t_ns[i], &at);
    if (IsHeldDown(now) || UseAt(timeline, clock.t_ns[i]) != TimeUse::kProductive) continue;
    free.push_back(clock.value[i]);
  }
  std::sort(free.begin(), free.end());
  return Percentile(free, 0.5).value_or(highest);
}

}  // namespace

Integral SeriesWalk::Take(int64_t begin_ns, int64_t end_ns) {
  Integral sum;
  while (at_ < pieces_.size() && pieces_[at_].end_ns <= begin_ns) ++at_;
  for (size_t i = at_; i < pieces_.size() && pieces_[i].begin_ns < end_ns; ++i) {
    const Piece& piece = pieces_[i];
    const int64_t from_ns = std::max(begin_ns, piece.begin_ns);
    const int64_t to_ns = std::min(end_ns, piece.end_ns);
    if (from_ns >= to_ns) continue;
    const double length = static_cast<double>(piece.end_ns - piece.begin_ns);
    const double middle =
        (static_cast<double>(from_ns - piece.begin_ns) + static_cast<double>(to_ns - from_ns) / 2) /
        length;
    const double value = piece.begin_value + (piece.end_value - piece.begin_value) * middle;
    sum.value_s += value * base::SecondsFromNs(to_ns - from_ns);
    sum.covered_ns += to_ns - from_ns;
  }
  return sum;
}

std::vector<Piece> PowerOfCounter(const SeriesColumn& column) {
  std::vector<Piece> pieces;
  bool grew = false;
  size_t before = column.t_ns.size();
  for (size_t i = 0; i < column.t_ns.size(); ++i) {
    if (!std::isfinite(column.value[i])) continue;
    if (before < i && column.t_ns[i] <= column.t_ns[before]) continue;
    const double growth = before < i ? column.value[i] - column.value[before] : -1;
    if (growth >= 0) {
      const double power = growth / base::SecondsFromNs(column.t_ns[i] - column.t_ns[before]);
      pieces.push_back({column.t_ns[before], column.t_ns[i], power, power});
      grew |= growth > 0;
    }
    before = i;
  }
  if (!grew) pieces.clear();
  return pieces;
}

std::vector<Piece> PowerOfSamples(const SeriesColumn& column, int64_t period_ns) {
  std::vector<Piece> pieces;
  for (size_t i = 1; i < column.t_ns.size(); ++i) {
    const double before = column.value[i - 1];
    const double now = column.value[i];
    if (!std::isfinite(before) || !std::isfinite(now)) continue;
    if (!Follow(column.t_ns[i - 1], column.t_ns[i], period_ns)) continue;
    pieces.push_back({column.t_ns[i - 1], column.t_ns[i], before, now});
  }
  return pieces;
}

Activity ActivityOf(const Facts& facts, const EntityDef& gpu) {
  for (const std::string_view field : {"sm_active_ratio", "utilization_ratio"}) {
    const SeriesColumn column = facts.Read(gpu.id, field);
    std::vector<Piece> pieces = HeldPieces(column, PeriodOf(facts, gpu, field));
    if (!pieces.empty()) return {.source = std::string(field), .pieces = std::move(pieces)};
  }
  const SeriesColumn ratio =
      PowerOfLimit(facts.Read(gpu.id, "power_w"), facts.Read(gpu.id, "power_limit_w"));
  std::vector<Piece> pieces = HeldPieces(ratio, PeriodOf(facts, gpu, "power_w"));
  if (pieces.empty()) return {};
  return {.source = "power_of_limit", .pieces = std::move(pieces)};
}

Throttling ThrottlingOf(const Facts& facts, const EntityDef& gpu, const Timeline& timeline) {
  Throttling found;
  const SeriesColumn reasons = facts.Read(gpu.id, "throttle_reasons");
  if (std::none_of(reasons.value.begin(), reasons.value.end(), IsHeldDown)) return found;
  const SeriesColumn clock = facts.Read(gpu.id, "sm_clock_hz");
  const double free_hz = FreeClock(clock, reasons, timeline);
  found.unknown = !(free_hz > 0);
  if (found.unknown) return found;
  size_t at = 0;
  double before = std::nan("");  // reasons of the piece before: one sample alone may be a switch
  for (Piece piece : HeldPieces(reasons, PeriodOf(facts, gpu, "throttle_reasons"))) {
    const double hz = ValueAt(clock, piece.end_ns, &at);
    const bool held = IsHeldDown(piece.end_value) && IsHeldDown(before);
    before = piece.end_value;
    if (!held || !(hz >= 0)) continue;
    piece.begin_value = piece.end_value = std::clamp(1 - hz / free_hz, 0.0, 1.0);
    if (piece.begin_value > 0) found.pieces.push_back(piece);
  }
  return found;
}

}  // namespace epochmeter::diagnose
