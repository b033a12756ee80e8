// SPDX-License-Identifier: Apache-2.0
#include "diagnose/incidents.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include "base/clock.h"
#include "base/strings.h"
#include "diagnose/incident_words.h"
#include "model/limits.h"

namespace epochmeter::diagnose {
namespace {

using model::Event;
using model::EventKind;
using model::Incident;

// A kill is told at the first reading after it.
constexpr int64_t kOomNearEndNs = 10 * base::kNsPerSecond;

// Events of GPUs that are no trouble.
constexpr std::array<std::string_view, 4> kQuiet = {"gpu.choice", "gpu.found", "gpu.xid_before",
                                                    "gpu.mps"};

bool IsGpuTrouble(const Event& event) {
  if (event.kind != EventKind::kSource) return false;
  if (event.name == "driver.replaced") return true;
  // A source of the same prefix tells its state; a device is named by its UUID.
  if (!base::StartsWith(event.name, "gpu.")) return false;
  if (event.Text("state") || !event.Text("uuid")) return false;
  return std::find(kQuiet.begin(), kQuiet.end(), event.name) == kQuiet.end();
}

bool IsIncident(const Event& event) {
  if (event.kind == EventKind::kProcess) return event.name == kOomKill;
  const bool told = event.name == "clock.jumped" || event.name == "clock.suspended" ||
                    event.name == "recorder.disk" || event.name == "recorder.paused";
  return IsGpuTrouble(event) || (event.kind == EventKind::kSource && told);
}

bool IsAbsence(const Event& event) {
  return event.kind == EventKind::kSource && event.Text("state") && IsHelper(event.name);
}

// The time from the first end of a helper until it works again: one incident, however often it
// ended in between.
struct Absence {
  const Event* first = nullptr;
  int64_t ends = 0;
  std::vector<std::string> reasons;  // each once
  std::optional<double> away_s;      // nothing: it never came back

  void Add(const Event& event) {
    ++ends;
    std::string reason(event.Text("detail").value_or("no reason was given"));
    if (std::find(reasons.begin(), reasons.end(), reason) == reasons.end()) {
      reasons.push_back(std::move(reason));
    }
  }
  // A hang is noticed only after some silence.
  int64_t BeginNs() const {
    const double silent_s = first->Number("silent_s").value_or(first->Number("away_s").value_or(0));
    const auto silent_ns = model::WholeOf(silent_s * static_cast<double>(base::kNsPerSecond));
    return first->t_ns - std::clamp<int64_t>(silent_ns.value_or(0), 0, model::kMostNs);
  }
  model::Message Words() const { return AbsenceWords(first->name, away_s, ends, reasons); }
};

// In the order of their begin.
std::vector<Absence> FindAbsences(const model::Run& run) {
  std::vector<Absence> list;
  std::map<std::string, size_t, std::less<>> open;  // by helper: the place in the list
  for (const Event& event : run.events) {
    if (!IsAbsence(event)) continue;
    const auto known = open.find(event.name);
    if (event.Text("state") == "gone") {
      const size_t at = known != open.end() ? known->second : list.size();
      if (at == list.size()) list.push_back({.first = &event});
      open[event.name] = at;
      list[at].Add(event);
    } else if (event.Text("state") == "replaced") {
      // Told by its successor, all at once.
      list.push_back({.first = &event});
      list.back().Add(event);
      list.back().away_s = event.Number("away_s");
    } else if (known != open.end()) {
      list[known->second].away_s = event.Number("away_s");
      open.erase(known);
    }
  }
  return list;
}

// The number of the row that spans the instant.
std::optional<int64_t> EpochAt(int64_t t_ns, const std::vector<model::EpochRow>& rows) {
  for (const model::EpochRow& row : rows) {
    if (row.epoch == model::kNoEpoch || t_ns < row.begin_ns || t_ns > row.end_ns) continue;
    return row.epoch;
  }
  return {};
}

}  // namespace

std::vector<Incident> FindIncidents(const model::Run& run,
                                    const std::vector<model::EpochRow>& rows) {
  std::vector<Incident> list;
  for (const Event& event : run.events) {
    if (!IsIncident(event)) continue;
    model::Message words = IncidentWords(event);
    Incident incident{.t_ns = event.t_ns,
                      .epoch = EpochAt(event.t_ns, rows),
                      .gpu = {},
                      .kind = event.name,
                      .text = std::move(words.en),
                      .text_zh = std::move(words.zh)};
    const auto gpu = model::WholeOf(event.Number("gpu").value_or(NAN));
    if (gpu && *gpu >= 0 && *gpu <= INT32_MAX) incident.gpu = static_cast<int32_t>(*gpu);
    list.push_back(std::move(incident));
  }
  for (const Absence& absence : FindAbsences(run)) {
    model::Message words = absence.Words();
    list.push_back({.t_ns = absence.BeginNs(),
                    .epoch = EpochAt(absence.BeginNs(), rows),
                    .gpu = {},
                    .kind = absence.first->name,
                    .text = std::move(words.en),
                    .text_zh = std::move(words.zh)});
  }
  std::stable_sort(list.begin(), list.end(),
                   [](const Incident& a, const Incident& b) { return a.t_ns < b.t_ns; });
  return list;
}

std::string OomCgroup(const model::Run& run) {
  constexpr int kSigkill = 9;
  constexpr int kShellSigkill = 128 + kSigkill;
  if (!run.end || (run.end->signal != kSigkill && run.end->exit_code != kShellSigkill)) return {};
  for (auto event = run.events.rbegin(); event != run.events.rend(); ++event) {
    if (event->kind != EventKind::kProcess || event->name != kOomKill) continue;
    if (event->Text("where") != "job") continue;
    if (std::abs(event->t_ns - run.end->t_ns) > kOomNearEndNs) return {};
    return std::string(event->Text("cgroup").value_or("of unknown name"));
  }
  return {};
}

}  // namespace epochmeter::diagnose
