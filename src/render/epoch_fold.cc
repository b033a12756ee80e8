// SPDX-License-Identifier: Apache-2.0
#include "render/epoch_fold.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <optional>
#include <set>

namespace epochmeter::render {
namespace {

using model::EpochRow;

constexpr size_t kMostRows = 40;
constexpr size_t kFirstRows = 8;
constexpr size_t kLastRows = 8;
constexpr size_t kWorstRows = 4;  // of each kind

bool HasBadScalar(const EpochRow& row) {
  return std::any_of(row.scalars.begin(), row.scalars.end(),
                     [](const auto& scalar) { return !std::isfinite(scalar.second); });
}

// Whether the row is the first of its rank or process.
bool IsFirst(const std::vector<EpochRow>& rows, size_t index) {
  return index == 0 || rows[index - 1].rank != rows[index].rank ||
         rows[index - 1].pid != rows[index].pid;
}

using Badness = std::function<std::optional<double>(const EpochRow&)>;

// Adds the rows with the highest badness.
void AddWorst(const std::vector<EpochRow>& rows, const Badness& badness, std::set<size_t>* kept) {
  std::vector<std::pair<double, size_t>> ranked;
  for (size_t i = 0; i < rows.size(); ++i) {
    const std::optional<double> bad = IsFirst(rows, i) ? std::nullopt : badness(rows[i]);
    if (bad && std::isfinite(*bad)) ranked.emplace_back(-*bad, i);
  }
  const size_t count = std::min(kWorstRows, ranked.size());
  const auto end = ranked.begin() + static_cast<std::ptrdiff_t>(count);
  std::partial_sort(ranked.begin(), end, ranked.end());
  for (auto entry = ranked.begin(); entry != end; ++entry) kept->insert(entry->second);
}

}  // namespace

std::vector<size_t> KeptRows(const std::vector<EpochRow>& rows, bool all) {
  std::vector<size_t> every(rows.size());
  std::iota(every.begin(), every.end(), size_t{0});
  if (all || rows.size() <= kMostRows) return every;
  std::set<size_t> kept(every.begin(), every.begin() + kFirstRows);
  kept.insert(every.end() - kLastRows, every.end());
  size_t bad = 0;
  for (size_t i = 0; i < rows.size() && bad < kWorstRows; ++i) {
    if (!HasBadScalar(rows[i])) continue;
    kept.insert(i);
    ++bad;
  }
  AddWorst(
      rows, [](const EpochRow& row) { return row.duration_s; }, &kept);
  AddWorst(
      rows, [](const EpochRow& row) { return row.data_wait_ratio; }, &kept);
  AddWorst(
      rows,
      [](const EpochRow& row) -> std::optional<double> {
        if (!row.own_gpus.utilization_ratio) return {};
        return -*row.own_gpus.utilization_ratio;
      },
      &kept);
  return {kept.begin(), kept.end()};
}

std::vector<std::string> WithHoles(const std::vector<size_t>& kept, size_t rows,
                                   std::vector<std::string> lines, Language language) {
  if (kept.size() == rows || lines.size() != kept.size() + 1) return lines;
  std::vector<std::string> with{lines.front()};
  const auto hole = [&](size_t from, size_t to) {
    if (from >= to) return;
    with.push_back(fmt::format("  … {} {}", to - from, Text(Phrase::kMoreRows, language)));
  };
  size_t next = 0;  // the row that comes next in a table without holes
  for (size_t i = 0; i < kept.size(); ++i) {
    hole(next, kept[i]);
    with.push_back(std::move(lines[i + 1]));
    next = kept[i] + 1;
  }
  hole(next, rows);
  return with;
}

}  // namespace epochmeter::render
