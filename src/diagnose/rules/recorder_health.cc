// SPDX-License-Identifier: Apache-2.0
// What this recording itself lacks: events that were lost, a damaged file, holes in its series,
// readings that came late, processes of the recorder that ended, clocks that jumped.
//
// Needs nothing. It is a warning where a part of the figures is not to be trusted, and says how
// large that part is; info where little is missing. Silent on a whole recording: what a device or
// driver does not give is no fault of the recorder (see "not measured"), nor is what lies before
// the first or after the last sample.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "base/clock.h"
#include "base/strings.h"
#include "diagnose/activity.h"
#include "diagnose/rules/all.h"
#include "diagnose/say.h"
#include "model/limits.h"

namespace epochmeter::diagnose {
namespace {

using model::Finding;
using model::Severity;

constexpr size_t kMostItems = 6;                // that are told in words
constexpr double kLatePeriods = 3;              // a tick that is late by more of them is late
constexpr size_t kFewestSamples = 10;           // of a series whose holes are looked for
constexpr int64_t kSettledNs = 10'000'000'000;  // what fails until here never worked

struct Item {
  Severity severity = Severity::kInfo;
  double share = 0;  // of the run's time or events; 0: not known
  model::Message text;
  model::Evidence evidence;
};

Severity SeverityOfShare(const Facts& facts, double share) {
  return share >= facts.limits()["recorder_health.warning_ratio"] ? Severity::kWarning
                                                                  : Severity::kInfo;
}

// Losses of the run by kind: their counts, and the first of each.
struct Lost {
  const model::Loss* first = nullptr;
  double count = 0;
  model::LossSeverity severity = model::LossSeverity::kInfo;
};
using LostByKind = std::map<std::string_view, Lost>;

LostByKind LossesOf(const std::vector<model::Loss>& losses) {
  LostByKind by_kind;
  for (const model::Loss& loss : losses) {
    if (loss.severity == model::LossSeverity::kInfo) continue;
    Lost& lost = by_kind[loss.kind];
    if (lost.first == nullptr) lost.first = &loss;
    lost.count += static_cast<double>(std::max<uint64_t>(loss.count, 1));
    lost.severity = std::max(lost.severity, loss.severity);
  }
  return by_kind;
}

bool IsOfEvents(std::string_view kind) {
  constexpr std::array<std::string_view, 5> kKinds = {
      "client.dropped", "client.sequence_gap", "recorder.events_dropped", "recorder.events_lost",
      "recorder.dropped_records"};
  return std::find(kKinds.begin(), kKinds.end(), kind) != kKinds.end();
}

// Events that did not arrive. Several kinds may count the same ones, so the largest counts.
void AddLostEvents(const Facts& facts, const LostByKind& losses, std::vector<Item>* items) {
  const Lost* most = nullptr;
  for (const auto& [kind, lost] : losses) {
    if (IsOfEvents(kind) && (most == nullptr || lost.count > most->count)) most = &lost;
  }
  if (most == nullptr) return;
  auto seen = static_cast<double>(facts.run().events.size());
  for (const auto& [process, steps] : facts.run().steps) seen += static_cast<double>(steps.size());
  Item item;
  item.share = most->count / (most->count + seen);
  item.severity = SeverityOfShare(facts, item.share);
  item.text =
      Say("{:.0f} events of the training were lost ({} of all): counts of steps and "
          "epochs are too low",
          "丢失了 {:.0f} 个训练事件（占全部的 {}）：步数和轮数偏低", most->count,
          SayPercent(item.share));
  item.evidence = {.series = "recorder events",
                   .interval = facts.run().Recorded(),
                   .values = {{"lost", most->count}, {"arrived", seen}},
                   .note = {.en = most->first->detail, .zh = most->first->detail},
                   .steps = {}};
  items->push_back(std::move(item));
}

// A torn end costs the last moment only; damage inside costs whatever stood there.
void AddDamage(const Facts& facts, const LostByKind& losses, std::vector<Item>* items) {
  for (const auto& [kind, lost] : losses) {
    if (!base::StartsWith(kind, "file.")) continue;
    const bool end_only = kind == "file.torn_tail" || kind == "file.cut";
    Item item;
    item.severity = end_only ? Severity::kInfo : Severity::kWarning;
    item.text = end_only ? Say("the end of the file is torn: its last moment is missing",
                               "文件末尾不完整：缺少最后一小段")
                         : Say("parts of the file are damaged ({}, {:.0f} times)",
                               "文件部分损坏（{}，{:.0f} 处）", kind, lost.count);
    item.evidence = {.series = "recorder file",
                     .interval = facts.run().Recorded(),
                     .values = {{"damaged_parts", lost.count}},
                     .note = {.en = lost.first->detail, .zh = lost.first->detail},
                     .steps = {}};
    items->push_back(std::move(item));
  }
}

void AddOtherLosses(const LostByKind& losses, std::vector<Item>* items) {
  for (const auto& [kind, lost] : losses) {
    if (IsOfEvents(kind) || base::StartsWith(kind, "file.")) continue;
    Item item;
    const bool error = lost.severity == model::LossSeverity::kError;
    item.severity = error ? Severity::kWarning : Severity::kInfo;
    item.text = Say("{}: {:.0f}", "{}：{:.0f}", kind, lost.count);
    item.evidence = {.series = "recorder losses",
                     .interval = {.begin_ns = lost.first->t_ns, .end_ns = lost.first->t_ns},
                     .values = {{"count", lost.count}},
                     .note = {.en = lost.first->detail, .zh = lost.first->detail},
                     .steps = {}};
    items->push_back(std::move(item));
  }
}

// Seconds between the first and the last sample of a curve, and how many of them no sample covers.
struct Holes {
  double seconds = 0, missing_s = 0;
};
Holes HolesOf(const model::Curve& curve) {
  model::Summary all;
  for (const model::Summary& bucket : curve.buckets) {
    if (bucket.count > 0) all.Append(bucket);
  }
  if (all.count < kFewestSamples || curve.period_ns <= 0) return {};
  Holes holes{.seconds = base::SecondsFromNs(all.t_last_ns - all.t_first_ns)};
  holes.missing_s = std::max(holes.seconds - all.weight_s, 0.0);
  return holes;
}

void AddHoles(const Facts& facts, std::vector<Item>* items) {
  std::vector<const model::Curve*> curves;
  for (const int32_t gpu : GpusOfJob(facts)) {
    for (const std::string_view field : {"utilization_ratio", "memory_used_bytes", "power_w"}) {
      if (const model::Curve* curve = facts.GpuCurve(gpu, field)) {
        curves.push_back(curve);
        break;
      }
    }
  }
  for (const model::Curve* curve : {facts.HostCurve("cpu_ratio"), facts.TreeCurve("rss_bytes")}) {
    if (curve != nullptr) curves.push_back(curve);
  }
  const model::Curve* worst = nullptr;
  Holes most;
  size_t with_holes = 0;
  for (const model::Curve* curve : curves) {
    const Holes holes = HolesOf(*curve);
    if (holes.seconds <= 0) continue;
    const double share = holes.missing_s / holes.seconds;
    if (share < facts.limits()["recorder_health.info_ratio"]) continue;
    ++with_holes;
    if (worst != nullptr && holes.missing_s <= most.missing_s) continue;
    worst = curve;
    most = holes;
  }
  if (worst == nullptr) return;
  Item item;
  item.share = most.missing_s / most.seconds;
  item.severity = SeverityOfShare(facts, item.share);
  item.text =
      Say("{} of {} main series have holes: {} has no samples in {} of the time ({})",
          "{}/{} 个主要序列有缺口：{} 在 {} 的时间内没有样本（{}）", with_holes, curves.size(),
          facts.SeriesName(*worst), SayPercent(item.share), SaySeconds(most.missing_s));
  item.evidence = {.series = facts.SeriesName(*worst),
                   .interval = facts.run().Recorded(),
                   .values = {{"missing_s", most.missing_s}, {"missing_ratio", item.share}},
                   .note = {},
                   .steps = {}};
  items->push_back(std::move(item));
}

// Readings that came late by several ticks, as each of our processes told.
void AddLateTicks(const Facts& facts, std::vector<Item>* items) {
  for (const model::Curve& curve : facts.report().curves) {
    if (curve.field != "lag_s" || curve.period_ns <= 0) continue;
    const double limit_s = kLatePeriods * base::SecondsFromNs(curve.period_ns);
    double all = 0;
    double late = 0;
    double most_s = 0;
    for (const model::Summary& bucket : curve.buckets) {
      if (bucket.count == 0) continue;
      all += 1;
      late += bucket.max > limit_s ? 1 : 0;
      most_s = std::max(most_s, bucket.max);
    }
    if (all < kFewestSamples || late / all < facts.limits()["recorder_health.info_ratio"]) continue;
    Item item;
    item.share = late / all;
    // What was read late is right all the same, at the time that it carries.
    item.text = Say("readings came up to {} late, in {} of the time by more than {}",
                    "读数最多延迟 {}，在 {} 的时间内延迟超过 {}", SaySeconds(most_s),
                    SayPercent(item.share), SaySeconds(limit_s));
    item.evidence = {.series = facts.SeriesName(curve),
                     .interval = facts.run().Recorded(),
                     .values = {{"late_ratio", item.share}, {"lag_max_s", most_s}},
                     .note = {},
                     .steps = {}};
    items->push_back(std::move(item));
  }
}

// Ends of our own processes, stops and clocks, each kind once.
void AddIncidents(const Facts& facts, std::vector<Item>* items) {
  using Words = std::pair<std::string_view, std::string_view>;
  constexpr std::array<Words, 7> kKinds = {{{"sampler", "GPU 采样进程曾中断"},
                                            {"relay", "输出转发进程曾中断"},
                                            {"recorder", "记录进程曾中断"},
                                            {"recorder.paused", "记录器曾停止运行"},
                                            {"recorder.disk", "运行文件所在磁盘曾无法写入"},
                                            {"clock.jumped", "系统时间曾被调整"},
                                            {"clock.suspended", "机器曾被挂起"}}};
  std::map<std::string_view, std::vector<const model::Incident*>> by_kind;
  for (const model::Incident& incident : facts.report().incidents) {
    by_kind[incident.kind].push_back(&incident);
  }
  for (const auto& [kind, chinese] : kKinds) {
    const auto found = by_kind.find(kind);
    if (found == by_kind.end()) continue;
    const auto& list = found->second;
    Item item;
    item.text = {.en = list.front()->text, .zh = std::string(chinese)};
    if (list.size() > 1) {
      item.text.en += fmt::format(" ({} times)", list.size());
      item.text.zh += fmt::format("（共 {} 次）", list.size());
    }
    item.evidence = {.series = std::string(kind),
                     .interval = {.begin_ns = list.front()->t_ns, .end_ns = list.back()->t_ns},
                     .values = {{"count", static_cast<double>(list.size())}},
                     .note = {},
                     .steps = {}};
    items->push_back(std::move(item));
  }
}

// Sources that worked and then failed to the end: their figures are of a part of the run. One that
// never worked, and one that is read less often for the CPU budget, is told under "not measured".
void AddSources(const Facts& facts, std::vector<Item>* items) {
  std::map<std::string_view, const model::Event*> last;
  for (const model::Event& event : facts.run().events) {
    if (event.kind != model::EventKind::kSource || !event.Text("state")) continue;
    if (event.name != "budget" && event.Text("reason")) last[event.name] = &event;
  }
  std::vector<std::string> names;
  const model::Event* first = nullptr;
  for (const auto& [name, event] : last) {
    const std::string_view state = *event->Text("state");
    const bool worked = event->t_ns > facts.run().Recorded().begin_ns + kSettledNs;
    if (state != "failing" || !worked) continue;
    if (first == nullptr) first = event;
    names.emplace_back(name);
  }
  if (first == nullptr) return;
  const std::string reason(first->Text("reason").value_or(""));
  Item item;
  item.text = Say("read for a part of the run only: {}", "只在运行的一部分时间内读取：{}",
                  base::Join(names, ", "));
  item.evidence = {.series = "recorder sources",
                   .interval = {.begin_ns = first->t_ns, .end_ns = first->t_ns},
                   .values = {{"sources", static_cast<double>(names.size())}},
                   .note = {.en = reason, .zh = reason},
                   .steps = {}};
  items->push_back(std::move(item));
}

Finding Told(std::vector<Item> items) {
  std::stable_sort(items.begin(), items.end(), [](const Item& a, const Item& b) {
    return a.severity != b.severity ? a.severity > b.severity : a.share > b.share;
  });
  Finding finding;
  finding.severity = items.front().severity;
  finding.summary = {.en = "The recording is not whole: " + items.front().text.en + ".",
                     .zh = "记录不完整：" + items.front().text.zh + "。"};
  for (size_t i = 1; i < std::min(items.size(), kMostItems); ++i) {
    finding.explanation.en += (i == 1 ? "Also: " : "; ") + items[i].text.en;
    finding.explanation.zh += (i == 1 ? "此外：" : "；") + items[i].text.zh;
  }
  if (items.size() > 1) {
    finding.explanation.en += ".";
    finding.explanation.zh += "。";
  } else {
    finding.explanation = Say("All else that was recorded is whole.", "其余记录完整。");
  }
  finding.advice.push_back(
      {.framework = "",
       .text = Say("Keep a disk with room and a little CPU time for the recorder; what it says of "
                   "the rest of the run holds.",
                   "为记录器保留足够的磁盘空间和少量 CPU 时间；报告中其余部分的结论仍然有效。"),
       .code = "epochmeter doctor"});
  for (size_t i = 0; i < std::min(items.size(), kMostItems); ++i) {
    finding.evidence.push_back(std::move(items[i].evidence));
  }
  return finding;
}

Judgement Judge(const Facts& facts) {
  std::vector<model::Loss> losses = facts.run().losses;
  if (facts.run().store != nullptr) {
    for (model::Loss& loss : facts.run().store->LossesFound()) losses.push_back(std::move(loss));
  }
  const LostByKind by_kind = LossesOf(losses);
  std::vector<Item> items;
  AddLostEvents(facts, by_kind, &items);
  AddDamage(facts, by_kind, &items);
  AddHoles(facts, &items);
  AddIncidents(facts, &items);
  AddLateTicks(facts, &items);
  AddSources(facts, &items);
  AddOtherLosses(by_kind, &items);
  Judgement judgement;
  if (!items.empty()) judgement.findings.push_back(Told(std::move(items)));
  return judgement;
}

}  // namespace

namespace rules {

const RuleDef kRecorderHealth = {
    .id = "recorder_health",
    .Title = [] { return Say("Parts of the recording are missing", "记录有缺失"); },
    .Judge = Judge};

}  // namespace rules
}  // namespace epochmeter::diagnose
