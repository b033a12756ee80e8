// SPDX-License-Identifier: Apache-2.0
#include "diagnose/incidents.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include "base/clock.h"
#include "base/strings.h"
#include "model/limits.h"

namespace epochmeter::diagnose {
namespace {

using model::Event;
using model::EventKind;
using model::Incident;

constexpr std::string_view kOomKill = "oom_kill";
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

// Processes of ours that are started again, and what was not done while one was away.
constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kHelpers = {
    {{"sampler", "GPUs were not read"},
     {"relay", "the relay of the output was away"},
     {"recorder", "nothing was recorded"}}};

const std::pair<std::string_view, std::string_view>* HelperOf(const Event& event) {
  if (event.kind != EventKind::kSource || !event.Text("state")) return nullptr;
  const auto helper = std::find_if(kHelpers.begin(), kHelpers.end(),
                                   [&](const auto& known) { return known.first == event.name; });
  return helper == kHelpers.end() ? nullptr : &*helper;
}

std::string SignedDuration(double seconds) {
  return (seconds < 0 ? "" : "+") + base::FormatDuration(seconds);
}

std::string OomText(const Event& event) {
  const int64_t count = model::WholeOf(event.Number("count").value_or(1)).value_or(1);
  std::string text = "the kernel's out-of-memory killer ended ";
  text += count == 1 ? "a process" : std::to_string(count) + " processes";
  text += " in cgroup " + std::string(event.Text("cgroup").value_or("of unknown name"));
  if (event.Text("where") == "above") text += ", above the job: perhaps another's";
  return text;
}

std::string TextOf(const Event& event) {
  if (event.name == kOomKill) return OomText(event);
  if (const auto xid = model::WholeOf(event.Number("xid").value_or(NAN))) {
    return "the driver reported XID " + std::to_string(*xid);
  }
  if (event.name == "clock.jumped") {
    return "the wall clock was set by " + SignedDuration(event.Number("by_s").value_or(0)) +
           "; times of day follow it, durations do not";
  }
  if (event.name == "clock.suspended") {
    return "the machine was suspended for " +
           base::FormatDuration(event.Number("for_s").value_or(0)) +
           ": nothing ran and nothing was recorded, and durations leave that time out";
  }
  if (event.name == "recorder.paused") {
    return "the recorder did not run for at least " +
           base::FormatDuration(event.Number("for_s").value_or(0)) +
           ": the job was stopped, or the machine had no time for it; nothing was read then";
  }
  return std::string(event.Text("detail").value_or("reported by the driver"));
}

// The time from the first end of a helper until it works again: one incident, however often it
// ended in between.
struct Absence {
  const Event* first = nullptr;
  std::string_view what;
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
  std::string Words() const {
    std::string text(what);
    text += away_s ? " for " + base::FormatDuration(*away_s) : std::string(" from then on");
    if (ends > 1) text += ", after " + std::to_string(ends) + " ends of it";
    return text + ": " + base::Join(reasons, "; ");
  }
};

// In the order of their begin.
std::vector<Absence> FindAbsences(const model::Run& run) {
  std::vector<Absence> list;
  std::map<std::string, size_t, std::less<>> open;  // by helper: the place in the list
  for (const Event& event : run.events) {
    const auto* helper = HelperOf(event);
    if (helper == nullptr) continue;
    const auto known = open.find(event.name);
    if (event.Text("state") == "gone") {
      const size_t at = known != open.end() ? known->second : list.size();
      if (at == list.size()) list.push_back({.first = &event, .what = helper->second});
      open[event.name] = at;
      list[at].Add(event);
    } else if (event.Text("state") == "replaced") {
      // Told by its successor, all at once.
      list.push_back({.first = &event, .what = helper->second});
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
    Incident incident{.t_ns = event.t_ns,
                      .epoch = EpochAt(event.t_ns, rows),
                      .gpu = {},
                      .kind = event.name,
                      .text = TextOf(event)};
    const auto gpu = model::WholeOf(event.Number("gpu").value_or(NAN));
    if (gpu && *gpu >= 0 && *gpu <= INT32_MAX) incident.gpu = static_cast<int32_t>(*gpu);
    list.push_back(std::move(incident));
  }
  for (const Absence& absence : FindAbsences(run)) {
    list.push_back({.t_ns = absence.BeginNs(),
                    .epoch = EpochAt(absence.BeginNs(), rows),
                    .gpu = {},
                    .kind = absence.first->name,
                    .text = absence.Words()});
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
