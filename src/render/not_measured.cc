// SPDX-License-Identifier: Apache-2.0
#include "render/not_measured.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/strings.h"
#include "render/page.h"

namespace epochmeter::render {
namespace {

using model::NotMeasured;
using model::Report;

// How much a reader of the text misses what is absent, 0 the most: what the job runs on and how far
// it came; then the machine's main figures; what few machines have comes last.
int Misses(const std::string& subject) {
  constexpr std::array<std::string_view, 6> kMain = {"utilization_ratio", "memory_used_bytes",
                                                     "power_w",           "temperature_c",
                                                     "sm_active_ratio",   "energy_j"};
  constexpr std::array<std::string_view, 5> kRare = {"host.energy", "cgroup.", "host pressure",
                                                     "rdma", "host.rdma"};
  const auto starts = [&](std::string_view with) { return base::StartsWith(subject, with); };
  if (starts("GPU") || starts("which GPUs")) return 0;
  if (starts("gpu") && subject.find(" in epoch ") != std::string::npos) return 0;
  if (starts("epochs and steps") || starts("loss")) return 1;
  if (starts("host CPU") || starts("host memory") || starts("job CPU")) return 2;
  if (starts("gpu")) {
    const auto words = base::SplitWhitespace(subject);
    const bool main = std::any_of(words.begin(), words.end(), [&](std::string_view word) {
      if (!word.empty() && word.back() == ',') word.remove_suffix(1);
      return std::find(kMain.begin(), kMain.end(), word) != kMain.end();
    });
    return main ? 3 : 5;
  }
  if (starts("allocator")) return 4;
  return std::any_of(kRare.begin(), kRare.end(), starts) ? 7 : 6;
}

// A long list of names, cut between two of them with the count of the rest.
std::string Shortened(const std::string& names, Language language) {
  constexpr size_t kMost = 160;
  if (names.size() <= kMost) return names;
  const size_t cut = names.find_last_of(",;", kMost);
  if (cut == std::string::npos) return names;
  const auto rest = std::count_if(names.begin() + static_cast<std::ptrdiff_t>(cut), names.end(),
                                  [](char c) { return c == ',' || c == ';'; });
  return fmt::format("{} {} {} {}", names.substr(0, cut), Text(Phrase::kAnd, language), rest,
                     Text(Phrase::kMore, language));
}

}  // namespace

std::vector<std::vector<const NotMeasured*>> ByReason(const Report& report) {
  std::vector<std::vector<const NotMeasured*>> groups;
  for (const NotMeasured& item : report.not_measured) {
    auto group = std::find_if(groups.begin(), groups.end(), [&](const auto& known) {
      return known.front()->reason == item.reason;
    });
    if (group == groups.end()) group = groups.insert(group, {&item});
    const bool told = std::any_of(group->begin(), group->end(), [&](const NotMeasured* known) {
      return known->subject == item.subject;
    });
    if (!told) group->push_back(&item);
  }
  return groups;
}

std::vector<std::string> NotMeasuredItems(const Report& report, Language language) {
  std::vector<std::pair<int, std::string>> ranked;
  for (const auto& group : ByReason(report)) {
    int misses = Misses(group.front()->subject);
    std::vector<std::string> subjects;
    for (const NotMeasured* item : group) {
      misses = std::min(misses, Misses(item->subject));
      subjects.emplace_back(Said(item->subject, item->subject_zh, language));
    }
    const NotMeasured& first = *group.front();
    ranked.emplace_back(misses,
                        fmt::format("{}: {}", Shortened(base::Join(subjects, "; "), language),
                                    Said(first.reason, first.reason_zh, language)));
  }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> items;
  items.reserve(ranked.size());
  for (auto& [misses, item] : ranked) items.push_back(std::move(item));
  return items;
}

}  // namespace epochmeter::render
