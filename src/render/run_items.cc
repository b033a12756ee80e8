// SPDX-License-Identifier: Apache-2.0
#include "render/run_items.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/clock.h"
#include "render/page.h"

namespace epochmeter::render {
namespace {

struct LossKind {
  model::Loss sum;
  size_t times = 1;
};

std::vector<LossKind> LossKinds(const model::Run& run) {
  std::vector<LossKind> kinds;
  for (const model::Loss& loss : run.losses) {
    const auto known = std::find_if(kinds.begin(), kinds.end(), [&](const LossKind& kind) {
      return kind.sum.kind == loss.kind;
    });
    if (known == kinds.end()) {
      kinds.push_back({.sum = loss});
    } else {
      known->sum.count += loss.count;
      ++known->times;
    }
  }
  return kinds;
}

}  // namespace

std::vector<std::string> ExceptionItems(const model::Run& run, Language language) {
  std::vector<std::pair<const model::Event*, size_t>> kinds;
  std::map<std::string_view, size_t> places;  // in `kinds`, by type
  for (const model::Event& event : run.events) {
    if (event.kind != model::EventKind::kException) continue;
    const auto [known, is_new] = places.emplace(event.name, kinds.size());
    if (is_new) {
      kinds.emplace_back(&event, 1);
    } else {
      ++kinds[known->second].second;
    }
  }
  std::vector<std::string> items;
  for (const auto& [event, count] : kinds) {
    std::string item = event->name;
    if (count > 1) item += fmt::format(" × {}", count);
    if (event->rank) item += fmt::format(" ({} {})", Text(Phrase::kRank, language), *event->rank);
    items.push_back(item + ": " + std::string(event->Text("message").value_or("")));
  }
  return items;
}

std::vector<std::string> IncidentItems(const model::Run& run, const model::Report& report,
                                       Language language) {
  std::vector<std::string> items;
  for (const model::Incident& incident : report.incidents) {
    const double since_s = base::SecondsFromNs(incident.t_ns - run.Recorded().begin_ns);
    std::string item = "+" + base::FormatDuration(since_s);
    if (incident.epoch) {
      item += fmt::format(", {} {}", Text(Phrase::kEpoch, language), *incident.epoch);
    }
    if (incident.gpu) item += fmt::format(", gpu{}", *incident.gpu);
    items.push_back(fmt::format("{}: {}: {}", item, incident.kind,
                                Said(incident.text, incident.text_zh, language)));
  }
  return items;
}

std::vector<std::string> LossItems(const model::Run& run, Language language) {
  std::vector<std::string> items;
  for (const auto& [loss, times] : LossKinds(run)) {
    const std::string often =
        times > 1 ? fmt::format(" ({} {})", times, Text(Phrase::kTimesOf, language)) : "";
    items.push_back(
        fmt::format("{} × {}{}: {}. {}", loss.kind, loss.count, often, loss.detail, loss.help));
  }
  return items;
}

}  // namespace epochmeter::render
