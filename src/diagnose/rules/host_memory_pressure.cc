// SPDX-License-Identifier: Apache-2.0
// The host's memory is short: programs wait for it, are swapped out, or are about to meet a limit.
//
// Judged by what gives no way: memory in use is the machine's less what is available, or, under a
// limit of the job's cgroup, program and shared memory there; page cache counts as free. Time that
// tasks waited for memory (PSI) and page faults are judged over steady steps. Page faults that read
// storage are the rule for mapped data sets, so they count beside swapping only. Kills for memory
// that ended the training are told by out_of_memory. False positives: swap that was filled before
// the run; a job that fills its limit on purpose and stays there.
#include <algorithm>
#include <cmath>

#include "diagnose/host_room.h"
#include "diagnose/memory.h"
#include "diagnose/rules/all.h"
#include "diagnose/say.h"

namespace epochmeter::diagnose {
namespace {

using model::Curve;
using model::Finding;
using model::Message;
using model::Scope;
using model::Severity;

struct Sign {
  Severity severity = Severity::kInfo;
  Message text;  // the end of "The host's memory is short: ..."
  model::Evidence evidence;
};

const Curve* Pressure(const Facts& facts, std::string_view field) {
  const Curve* curve = facts.FirstCurve(Scope::kCgroup, field);
  return curve != nullptr ? curve : facts.HostCurve(field);
}

model::Interval Ends(const std::vector<model::Interval>& intervals) {
  return {.begin_ns = intervals.front().begin_ns, .end_ns = intervals.back().end_ns};
}

// Part of the judged time in which tasks waited for memory.
bool AddWaiting(const Facts& facts, const std::vector<model::Interval>& judged,
                std::vector<Sign>* signs) {
  const Curve* waiting = Pressure(facts, "pressure_memory_waiting_ratio");
  if (waiting == nullptr) return false;
  const auto some = Sum(*waiting, judged).Mean();
  if (!some || !std::isfinite(*some)) return false;
  const Curve* stalled = Pressure(facts, "pressure_memory_stalled_ratio");
  const auto full = stalled != nullptr ? Sum(*stalled, judged).Mean() : std::nullopt;
  const Limits& limits = facts.limits();
  const bool much = *some >= limits["host_memory_pressure.waiting_ratio"] ||
                    full.value_or(0) >= limits["host_memory_pressure.stalled_ratio"];
  if (!much && *some < limits["host_memory_pressure.waiting_info_ratio"]) return true;
  Sign sign{.severity = much ? Severity::kWarning : Severity::kInfo,
            .text = Say("tasks waited for memory in {} of the steps' time",
                        "在步骤时间的 {} 中有任务等待内存", SayPercent(*some)),
            .evidence = {.series = facts.SeriesName(*waiting),
                         .interval = Ends(judged),
                         .values = {{"waiting_ratio", *some}}}};
  if (full) sign.evidence.values.emplace_back("stalled_ratio", *full);
  signs->push_back(std::move(sign));
  return true;
}

bool AddFull(const Facts& facts, std::vector<Sign>* signs) {
  const auto room = HostRoomOf(facts);
  const auto use = room ? HighestUse(*room) : std::nullopt;
  if (!use) return false;
  const double ratio = use->bytes / room->limit_bytes;
  const Limits& limits = facts.limits();
  if (!(ratio >= limits["host_memory_pressure.full_info_ratio"])) return true;
  const bool full = ratio >= limits["host_memory_pressure.full_ratio"];
  const std::string used = SayBytes(use->bytes), limit = SayBytes(room->limit_bytes);
  signs->push_back({.severity = full ? Severity::kWarning : Severity::kInfo,
                    .text = room->of_cgroup
                                ? Say("the job held {} of the {} that its cgroup allows",
                                      "作业占用 {}，其 cgroup 上限为 {}", used, limit)
                                : Say("{} of {} were in use", "已使用 {}（共 {}）", used, limit),
                    .evidence = {.series = facts.SeriesName(*room->used),
                                 .interval = use->when,
                                 .values = {{"highest_bytes", use->bytes},
                                            {"limit_bytes", room->limit_bytes},
                                            {"used_ratio", ratio}}}});
  return true;
}

// What of the training went to swap; of the host where that is not told.
bool AddSwap(const Facts& facts, const std::vector<model::Interval>& judged,
             std::vector<Sign>* signs) {
  const Curve* own = facts.TreeCurve("swapped_bytes");
  if (own == nullptr) own = facts.FirstCurve(Scope::kCgroup, "memory_swap_bytes");
  const Curve* swap = own != nullptr ? own : facts.HostCurve("swap_used_bytes");
  const auto highest = HighestOf(swap);
  if (!highest) return false;
  // What the host had in swap before is not this run's.
  const double grew = own != nullptr ? *highest : GainOf(swap, Ends(judged)).value_or(0);
  if (grew < facts.limits()["host_memory_pressure.swapped_bytes"]) return true;
  const Curve* faults = facts.TreeCurve("major_faults_per_s");
  const double rate =
      faults != nullptr ? Sum(*faults, judged).Mean().value_or(0) : model::kAbsentNumber;
  const bool felt = rate >= facts.limits()["host_memory_pressure.faults_per_s"];
  Sign sign{.severity = felt ? Severity::kWarning : Severity::kInfo,
            .text = own != nullptr ? Say("{} of the training were swapped out", "训练有 {} 被换出",
                                         SayBytes(grew))
                                   : Say("{} more of the host were swapped out",
                                         "主机又有 {} 被换出", SayBytes(grew)),
            .evidence = {.series = facts.SeriesName(*swap),
                         .interval = Ends(judged),
                         .values = {{"swapped_bytes", grew}}}};
  if (std::isfinite(rate)) sign.evidence.values.emplace_back("major_faults_per_s", rate);
  signs->push_back(std::move(sign));
  return true;
}

// Processes of the job that the kernel killed for memory while the training went on.
void AddKills(const Facts& facts, std::vector<Sign>* signs) {
  if (!facts.report().oom_cgroup.empty()) return;
  double kills = 0;
  const model::Event* first = nullptr;
  for (const model::Event& event : facts.run().events) {
    if (event.kind != model::EventKind::kProcess || event.name != "oom_kill") continue;
    if (event.Text("where").value_or("job") != "job") continue;
    kills += event.Number("count").value_or(1);
    if (first == nullptr) first = &event;
  }
  if (first == nullptr) return;
  signs->push_back({.severity = Severity::kWarning,
                    .text = Say("the kernel killed {:.0f} of the job's processes for memory",
                                "内核因内存不足杀死了作业的 {:.0f} 个进程", kills),
                    .evidence = {.series = "cgroup memory_oom_kills",
                                 .interval = {.begin_ns = first->t_ns, .end_ns = first->t_ns},
                                 .values = {{"kills", kills}}}});
}

// memory.high slows each allocation down beyond it.
void AddHeld(const Facts& facts, const std::vector<model::Interval>& judged,
             std::vector<Sign>* signs) {
  const Curve* held = facts.FirstCurve(Scope::kCgroup, "memory_high_events_per_s");
  if (held == nullptr) return;
  const double rate = Sum(*held, judged).Mean().value_or(0);
  if (!(rate >= facts.limits()["host_memory_pressure.held_per_s"])) return;
  signs->push_back({.severity = Severity::kWarning,
                    .text = Say("allocations were slowed at memory.high {} times a second",
                                "内存分配在 memory.high 处每秒被减速 {} 次", SayNumber(rate)),
                    .evidence = {.series = facts.SeriesName(*held),
                                 .interval = Ends(judged),
                                 .values = {{"held_per_s", rate}}}});
}

std::vector<model::Advice> HowToRelieve() {
  const Message workers =
      Say("Use fewer loader workers, a shorter prefetch and less pinned memory; keep data in "
          "arrays or files instead of Python lists.",
          "减少加载进程、预取和锁页内存；数据放在数组或文件中，而不是 Python 列表。");
  return {{.framework = "paddle",
           .text = workers,
           .code = "paddle.io.DataLoader(dataset, num_workers=2, prefetch_factor=2)"},
          {.framework = "tensorflow",
           .text = Say("Shorten shuffle and prefetch buffers; cache to a file.",
                       "缩短 shuffle 和 prefetch 缓冲区；缓存到文件。"),
           .code = "ds.cache('/local/cache').shuffle(1000).prefetch(2)"},
          {.framework = "pytorch",
           .text = workers,
           .code = "DataLoader(dataset, num_workers=2, prefetch_factor=2, pin_memory=False)"},
          {.framework = "",
           .text = Say("Or give the job more memory.", "或为作业分配更多内存。"),
           .code = "sbatch --mem=64G   # docker run --memory=64g"}};
}

Finding Told(std::vector<Sign> signs) {
  std::stable_sort(signs.begin(), signs.end(), [](const Sign& a, const Sign& b) {
    return static_cast<int>(a.severity) > static_cast<int>(b.severity);
  });
  Finding finding;
  finding.severity = signs.front().severity;
  finding.confidence = signs.size() > 1 ? 0.9 : 0.8;
  finding.summary = {.en = "The host's memory is short: ", .zh = "主机内存紧张："};
  for (size_t i = 0; i < signs.size(); ++i) {
    finding.summary.en += (i == 0 ? "" : "; ") + signs[i].text.en;
    finding.summary.zh += (i == 0 ? "" : "；") + signs[i].text.zh;
    finding.evidence.push_back(std::move(signs[i].evidence));
  }
  finding.summary.en += ".";
  finding.summary.zh += "。";
  finding.explanation =
      Say("Page cache that gives way is counted as free. Waiting and faults are of steady steps.",
          "可回收的页缓存视为空闲。等待和缺页只统计稳定的步骤。");
  finding.advice = HowToRelieve();
  return finding;
}

Judgement Judge(const Facts& facts) {
  RankFacts whole;
  const std::vector<model::Interval> judged = JudgedTime(ClockOf(facts, &whole));
  std::vector<Sign> signs;
  bool any = AddFull(facts, &signs);
  any = AddWaiting(facts, judged, &signs) || any;
  any = AddSwap(facts, judged, &signs) || any;
  AddKills(facts, &signs);
  AddHeld(facts, judged, &signs);
  Judgement judgement;
  if (!signs.empty()) judgement.findings.push_back(Told(std::move(signs)));
  if (any || !judgement.findings.empty()) return judgement;
  return NotApplicable(
      Say("neither memory of the host or its cgroup nor waiting for it was recorded",
          "没有记录主机或 cgroup 的内存，也没有记录等待内存的时间"));
}

}  // namespace

namespace rules {

const RuleDef kHostMemoryPressure = {
    .id = "host_memory_pressure",
    .Title = [] { return Say("Host memory is short", "主机内存紧张"); },
    .Judge = Judge};

}  // namespace rules
}  // namespace epochmeter::diagnose
