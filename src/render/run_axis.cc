// SPDX-License-Identifier: Apache-2.0
#include "render/run_axis.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "model/rank_events.h"

namespace epochmeter::render {
namespace {

using model::EpochRow;

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

// The numbered rows of the process that has most of them, in the order of time.
std::vector<const EpochRow*> RowsOfOne(const model::Report& report) {
  using Key = std::pair<std::optional<int32_t>, std::optional<int64_t>>;
  std::map<Key, std::vector<const EpochRow*>> rows;
  for (const EpochRow& row : report.epochs) {
    if (row.epoch != model::kNoEpoch) rows[{row.rank, row.pid}].push_back(&row);
  }
  std::vector<const EpochRow*> most;
  for (auto& [key, its] : rows) {
    if (its.size() > most.size()) most = std::move(its);
  }
  return most;
}

}  // namespace

std::optional<PictureX> PictureXFromName(std::string_view name) {
  if (name == "time") return PictureX::kTime;
  if (name == "step" || name == "steps") return PictureX::kStep;
  if (name == "epoch" || name == "epochs") return PictureX::kEpoch;
  return {};
}

void RunAxis::Anchor(int64_t t_ns, double x) {
  if (!t_ns_.empty() && t_ns <= t_ns_.back()) {
    if (t_ns < t_ns_.back()) return;
    x_.back() = x;
    return;
  }
  t_ns_.push_back(t_ns);
  x_.push_back(x);
}

std::optional<RunAxis> RunAxis::Make(const model::Run& run, const model::Report& report,
                                     PictureX kind) {
  RunAxis axis(kind);
  if (kind == PictureX::kTime) {
    const model::Interval recorded = run.Recorded();
    axis.Anchor(recorded.begin_ns, 0);
    axis.Anchor(std::max(recorded.end_ns, recorded.begin_ns + 1),
                base::SecondsFromNs(std::max<int64_t>(recorded.end_ns - recorded.begin_ns, 1)));
  } else if (kind == PictureX::kStep) {
    const model::StepTable* most = nullptr;
    for (const auto& [process, table] : run.steps) {
      if (most == nullptr || table.size() > most->size()) most = &table;
    }
    if (most == nullptr) return {};
    for (const size_t row : model::StepOrder(*most)) {
      if (most->step[row] == model::kNotKnown) continue;
      axis.Anchor(most->t_ns[row], static_cast<double>(most->step[row]));
    }
  } else {
    for (const EpochRow* row : RowsOfOne(report)) {
      axis.Anchor(row->begin_ns, static_cast<double>(row->epoch));
      axis.Anchor(row->end_ns, static_cast<double>(row->epoch) + 1);
    }
  }
  if (axis.t_ns_.size() < 2) return {};
  const auto [least, most] = std::minmax_element(axis.x_.begin(), axis.x_.end());
  if (*least == *most) return {};
  axis.range_ = {.least = *least, .most = *most};
  return axis;
}

double RunAxis::At(int64_t t_ns) const {
  if (t_ns < t_ns_.front() || t_ns > t_ns_.back()) return kNone;
  if (near_ + 1 >= t_ns_.size() || t_ns_[near_] > t_ns || t_ns_[near_ + 1] < t_ns) {
    const auto after = std::upper_bound(t_ns_.begin(), t_ns_.end(), t_ns);
    near_ = static_cast<size_t>(std::max<std::ptrdiff_t>(after - t_ns_.begin() - 1, 0));
    near_ = std::min(near_, t_ns_.size() - 2);
  }
  // Steps that are counted anew, after a restart, leave a hole.
  if (x_[near_ + 1] < x_[near_]) return kNone;
  const auto length = static_cast<double>(t_ns_[near_ + 1] - t_ns_[near_]);
  const double part = static_cast<double>(t_ns - t_ns_[near_]) / length;
  return x_[near_] + part * (x_[near_ + 1] - x_[near_]);
}

std::vector<Tick> RunAxis::Ticks(Language language) const {
  return kind_ == PictureX::kTime ? TimeTicks(range_, language) : WholeTicks(range_);
}

std::vector<double> EpochMarks(const model::Report& report, const RunAxis& axis) {
  constexpr size_t kMost = 200;
  std::vector<double> marks;
  const std::vector<const EpochRow*> rows = RowsOfOne(report);
  const size_t stride = rows.size() / kMost + 1;
  for (size_t i = 0; i < rows.size(); i += stride) {
    for (const int64_t t_ns : {rows[i]->begin_ns, rows[i]->end_ns}) {
      const bool last = i + stride >= rows.size();
      const double x = t_ns == rows[i]->begin_ns || last ? axis.At(t_ns) : kNone;
      if (std::isfinite(x)) marks.push_back(x);
    }
  }
  return marks;
}

}  // namespace epochmeter::render
