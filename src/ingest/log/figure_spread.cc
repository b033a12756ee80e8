// SPDX-License-Identifier: Apache-2.0
#include "ingest/log/figure_spread.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace epochmeter::ingest::log {

void FigureSpread::Add(double value, const LinePlace& place) {
  if (!std::isfinite(value)) return;
  if (count_ == 0 || value > max_) {
    max_ = value;
    max_place_ = place;
  }
  min_ = count_ == 0 ? value : std::min(min_, value);
  sum_ += value;
  if ((count_ & (stride_ - 1)) == 0) {
    if (kept_.size() == kMostKept) {
      for (size_t i = 0; 2 * i < kept_.size(); ++i) kept_[i] = kept_[2 * i];
      kept_.resize(kMostKept / 2);
      stride_ *= 2;
    }
    if ((count_ & (stride_ - 1)) == 0) kept_.push_back(value);
  }
  ++count_;
}

std::optional<model::LogSpread> FigureSpread::Take() {
  if (count_ == 0) return {};
  const auto middle = kept_.begin() + static_cast<std::ptrdiff_t>(kept_.size() / 2);
  std::nth_element(kept_.begin(), middle, kept_.end());
  return model::LogSpread{.count = count_,
                          .mean = sum_ / static_cast<double>(count_),
                          .median = *middle,
                          .min = min_,
                          .max = max_,
                          .max_file = max_place_.file,
                          .max_line = max_place_.line,
                          .sampled = stride_ > 1};
}

void FigureTrend::Add(double value) {
  if (parts_.empty() || parts_.back().all == per_part_) {
    if (parts_.size() == kMostParts) {
      for (size_t i = 0; i < kMostParts / 2; ++i) {
        const Part& second = parts_[2 * i + 1];
        parts_[i] = parts_[2 * i];
        parts_[i].sum += second.sum;
        parts_[i].finite += second.finite;
        parts_[i].all += second.all;
      }
      parts_.resize(kMostParts / 2);
      per_part_ *= 2;
    }
    parts_.emplace_back();
  }
  Part& part = parts_.back();
  ++part.all;
  if (!std::isfinite(value)) return;
  part.sum += value;
  ++part.finite;
}

std::vector<double> FigureTrend::Means() const {
  std::vector<double> means;
  means.reserve(parts_.size());
  for (const Part& part : parts_) {
    means.push_back(part.finite == 0 ? std::numeric_limits<double>::quiet_NaN()
                                     : part.sum / static_cast<double>(part.finite));
  }
  return means;
}

}  // namespace epochmeter::ingest::log
