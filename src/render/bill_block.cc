// SPDX-License-Identifier: Apache-2.0
#include "render/bill_block.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "base/strings.h"
#include "render/bill_text.h"
#include "render/fill.h"
#include "render/units.h"

namespace epochmeter::render {
namespace {

using model::Bill;
using model::BillLine;
using model::TimeUse;

std::string Share(int64_t part_ns, int64_t all_ns) {
  return Percent(static_cast<double>(part_ns) / static_cast<double>(all_ns)).value_or("-");
}

// "productive 62 %, data wait 12 %, ...": productive time first, then what took most.
std::string UsesText(const BillLine& total, Language language) {
  std::vector<std::pair<int64_t, TimeUse>> uses;
  for (size_t i = 0; i < model::kTimeUseCount; ++i) {
    const auto use = static_cast<TimeUse>(i);
    const bool first = use == TimeUse::kProductive;
    if (first || total.Of(use).ns > 0) uses.emplace_back(first ? INT64_MAX : total.Of(use).ns, use);
  }
  std::stable_sort(uses.begin(), uses.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<std::string> parts;
  for (const auto& [order, use] : uses) {
    parts.push_back(
        fmt::format("{} {}", UseWord(use, language), Share(total.Of(use).ns, total.total_ns)));
  }
  return base::Join(parts, ", ");
}

std::string EnergyText(const Bill& bill, Language language) {
  const BillLine& total = bill.total;
  std::vector<std::string> parts;
  if (total.energy_j) {
    parts.push_back(Fill(Phrase::kEnergyCovers, language, Joules(total.energy_j).value_or(""),
                         Percent(total.energy_coverage_ratio).value_or("-")));
  }
  if (total.cost) {
    parts.push_back(Fill(Phrase::kCostCovers, language,
                         fmt::format("{:.2f} {}", *total.cost, bill.rates.currency),
                         Percent(total.cost_coverage_ratio).value_or("-")));
  }
  if (total.carbon_g) parts.push_back(fmt::format("CO2 {:.4g} g", *total.carbon_g));
  return base::Join(parts, "; ");
}

}  // namespace

std::vector<std::string> BillItems(const Bill& bill, Language language) {
  const BillLine& total = bill.total;
  if (total.total_ns <= 0) return {};
  const bool gpu = bill.basis == "gpu";
  std::vector<std::string> items;
  items.push_back(fmt::format("{} × {} {} = {}: {}",
                              base::FormatDuration(base::SecondsFromNs(bill.wall_ns)), bill.devices,
                              gpu ? "GPU" : Text(Phrase::kRank, language),
                              gpu ? GpuTime(base::SecondsFromNs(total.total_ns))
                                  : base::FormatDuration(base::SecondsFromNs(total.total_ns)),
                              UsesText(total, language)));
  if (total.effective_ns && total.activity_ratio) {
    items.push_back(Fill(Phrase::kEffective, language, Share(*total.effective_ns, total.total_ns),
                         ActivityWord(bill, language), Percent(total.activity_ratio).value_or("-"),
                         Percent(total.activity_coverage_ratio).value_or("-")));
  }
  if (std::string text = EnergyText(bill, language); !text.empty()) {
    items.push_back(std::move(text));
  }
  return items;
}

}  // namespace epochmeter::render
