// SPDX-License-Identifier: Apache-2.0
#include "diagnose/incidents.h"

#include <algorithm>
#include <array>

#include "base/strings.h"

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
  const bool sampler = event.kind == EventKind::kSource && event.name == "sampler";
  return IsGpuTrouble(event) || (sampler && event.Text("state") == "gone");
}

std::string OomText(const Event& event) {
  const auto count = static_cast<int64_t>(event.Number("count").value_or(1));
  std::string text = "the kernel's out-of-memory killer ended ";
  text += count == 1 ? "a process" : std::to_string(count) + " processes";
  text += " in cgroup " + std::string(event.Text("cgroup").value_or("of unknown name"));
  if (event.Text("where") == "above") text += ", above the job: perhaps another's";
  return text;
}

std::string TextOf(const Event& event) {
  if (event.name == kOomKill) return OomText(event);
  if (const auto xid = event.Number("xid")) {
    return "the driver reported XID " + std::to_string(static_cast<int64_t>(*xid));
  }
  const std::string detail(event.Text("detail").value_or("reported by the driver"));
  return event.name == "sampler" ? "GPUs were not read for a while: " + detail : detail;
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
    if (const auto gpu = event.Number("gpu")) incident.gpu = static_cast<int32_t>(*gpu);
    list.push_back(std::move(incident));
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
