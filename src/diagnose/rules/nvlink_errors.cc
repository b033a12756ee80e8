// SPDX-License-Identifier: Apache-2.0
// Errors on the NVLinks between GPUs in this run, or links that are down. Needs NVLink's error
// counters or its count of active links.
//
// Only growth during the run counts. Single damaged flow-control units are sent again without
// anybody noticing; a replay or a link that had to be brought up again is what monitoring tools
// call a fault from one on. Fewer active links than there are is remarked on: boards whose bridges
// or switches connect only some of them, and GPUs of one's own partition, look the same.
#include <algorithm>
#include <array>
#include <map>

#include "diagnose/activity.h"
#include "diagnose/counters.h"
#include "diagnose/rules/all.h"
#include "diagnose/say.h"
#include "diagnose/throttling.h"

namespace epochmeter::diagnose {
namespace {

using model::Finding;
using model::Severity;

enum class Kind : uint8_t { kLost, kRecovered, kReplay, kDamaged };

struct Counter {
  std::string_view field;
  Kind kind;
};
constexpr std::array kCounters = {Counter{"nvlink_link_losses", Kind::kLost},
                                  Counter{"nvlink_recovery_errors", Kind::kRecovered},
                                  Counter{"nvlink_link_recoveries", Kind::kRecovered},
                                  Counter{"nvlink_replay_errors", Kind::kReplay},
                                  Counter{"nvlink_discards", Kind::kReplay},
                                  Counter{"nvlink_crc_flit_errors", Kind::kDamaged},
                                  Counter{"nvlink_crc_data_errors", Kind::kDamaged},
                                  Counter{"nvlink_receive_errors", Kind::kDamaged}};

struct Grown {
  int32_t gpu = -1;
  std::string_view field;
  Growth growth;
  double PerSecond() const {
    const double seconds = static_cast<double>(growth.when.end_ns - growth.when.begin_ns) / 1e9;
    return growth.value / std::max(seconds, 1.0);
  }
};

struct Down {
  int32_t gpu = -1;
  double links = 0, active_first = 0, active_last = 0;
};

Severity SeverityOfKind(Kind kind, const std::vector<Grown>& list, const Limits& limits) {
  if (kind == Kind::kLost) return Severity::kCritical;
  if (kind == Kind::kRecovered) return Severity::kWarning;
  double most = 0;
  double per_s = 0;
  for (const Grown& grown : list) {
    most = std::max(most, grown.growth.value);
    per_s = std::max(per_s, grown.PerSecond());
  }
  if (kind == Kind::kReplay) {
    return most >= limits["nvlink_errors.replays"] ? Severity::kWarning : Severity::kInfo;
  }
  return per_s >= limits["nvlink_errors.damaged_per_s"] ? Severity::kWarning : Severity::kInfo;
}

model::Message What(Kind kind, double count) {
  const std::string number = fmt::format("{:.0f}", count);
  switch (kind) {
    case Kind::kLost:
      return Say("NVLinks went down {} times and did not come up again",
                 "NVLink 断开 {} 次且未能恢复", number);
    case Kind::kRecovered:
      return Say("NVLinks had to be brought up again {} times", "NVLink 重新建立连接 {} 次",
                 number);
    case Kind::kReplay:
      return Say("{} packets had to be sent again over NVLink", "NVLink 上有 {} 个数据包需要重发",
                 number);
    case Kind::kDamaged:
      break;
  }
  return Say("{} damaged packets over NVLink", "NVLink 上有 {} 个损坏的数据包", number);
}

model::Advice HowToCheck() {
  return {.framework = "",
          .text = Say("Collectives wait for such a link. Look which link it is, reset the GPUs of "
                      "the node between jobs, and have bridge, switch or board checked when it "
                      "grows again.",
                      "集合通信会等待这样的链路。查明是哪条链路，在作业之间重置该节点的 GPU；若再次"
                      "增长，检查 bridge、switch 或板卡。"),
          .code = "nvidia-smi nvlink -e  # error counters by link\nnvidia-smi nvlink -s  # state"};
}

Finding Told(const Facts& facts, Kind kind, std::vector<Grown> list) {
  std::stable_sort(list.begin(), list.end(),
                   [](const Grown& a, const Grown& b) { return a.growth.value > b.growth.value; });
  double count = 0;
  std::vector<int32_t> gpus;
  for (const Grown& grown : list) {
    count += grown.growth.value;
    if (std::find(gpus.begin(), gpus.end(), grown.gpu) == gpus.end()) gpus.push_back(grown.gpu);
  }
  Finding finding;
  finding.severity = SeverityOfKind(kind, list, facts.limits());
  if (gpus.size() == 1) finding.gpu = gpus.front();
  const model::Message on = SayGpus(gpus.size(), list.front().gpu);
  const model::Message what = What(kind, count);
  finding.summary = {.en = on.en + ": " + what.en + ".", .zh = on.zh + "：" + what.zh + "。"};
  finding.explanation = Say("Growth of the driver's counters during this run.",
                            "仅计入本次运行期间驱动计数器的增长。");
  if (finding.severity != Severity::kInfo) finding.advice.push_back(HowToCheck());
  for (size_t i = 0; i < std::min<size_t>(list.size(), 3); ++i) {
    finding.evidence.push_back({.series = list[i].growth.series,
                                .interval = list[i].growth.when,
                                .values = {{std::string(list[i].field), list[i].growth.value}},
                                .note = {},
                                .steps = {}});
  }
  return finding;
}

Finding ToldDown(const Facts& facts, const std::vector<Down>& list, bool during) {
  const Down& first = list.front();
  Finding finding;
  finding.severity = during ? Severity::kWarning : Severity::kInfo;
  finding.confidence = during ? 0.95 : 0.6;
  if (list.size() == 1) finding.gpu = first.gpu;
  const model::Message on = SayGpus(list.size(), first.gpu);
  finding.summary =
      Say("{}: {:.0f} of {:.0f} NVLinks are up", "", on.en, first.active_last, first.links);
  finding.summary.zh = fmt::format("{}：{:.0f}/{:.0f} 条 NVLink 处于连接状态", on.zh,
                                   first.active_last, first.links);
  const model::Message before =
      during ? Say(", {:.0f} at the beginning", "，开始时为 {:.0f} 条", first.active_first)
             : Say(", since the beginning", "，自开始时即如此");
  finding.summary.en += before.en + ".";
  finding.summary.zh += before.zh + "。";
  finding.explanation =
      during
          ? Say("A link went down during the run: what goes over it takes another way, or waits.",
                "运行期间有链路断开：数据需绕行或等待。")
          : Say("The rest may be without a bridge or switch on purpose.",
                "其余链路可能本来就没有连接 bridge 或 switch。");
  if (during) finding.advice.push_back(HowToCheck());
  finding.evidence.push_back({.series = "gpu" + std::to_string(first.gpu) + " nvlink_active_links",
                              .interval = facts.run().Recorded(),
                              .values = {{"nvlink_links", first.links},
                                         {"active_first", first.active_first},
                                         {"active_last", first.active_last}},
                              .note = {},
                              .steps = {}});
  return finding;
}

Judgement Judge(const Facts& facts) {
  std::map<Kind, std::vector<Grown>> grown;
  std::vector<Down> went_down;
  std::vector<Down> always_down;
  bool any = false;
  for (const int32_t index : GpusOfJob(facts)) {
    const model::EntityDef* gpu = facts.Gpu(index);
    if (gpu == nullptr) continue;
    for (const Counter& counter : kCounters) {
      std::optional<Growth> growth = GrowthInRun(facts, *gpu, counter.field);
      if (!growth) continue;
      any = true;
      if (growth->value <= 0) continue;
      grown[counter.kind].push_back(
          {.gpu = index, .field = counter.field, .growth = std::move(*growth)});
    }
    const auto links = StateInRun(facts, *gpu, "nvlink_links");
    const auto active = StateInRun(facts, *gpu, "nvlink_active_links");
    if (!links || !active) continue;
    any = true;
    const Down down{.gpu = index,
                    .links = links->last,
                    .active_first = active->first,
                    .active_last = active->last};
    if (active->last < active->first) {
      went_down.push_back(down);
    } else if (active->last < links->last) {
      always_down.push_back(down);
    }
  }
  if (!any) {
    return NotApplicable(Say("no GPU of the job has counters of NVLink errors",
                             "作业的 GPU 均没有 NVLink 错误计数"));
  }
  Judgement judgement;
  for (auto& [kind, list] : grown) {
    judgement.findings.push_back(Told(facts, kind, std::move(list)));
  }
  if (!went_down.empty()) judgement.findings.push_back(ToldDown(facts, went_down, true));
  if (!always_down.empty()) judgement.findings.push_back(ToldDown(facts, always_down, false));
  return judgement;
}

}  // namespace

namespace rules {

const RuleDef kNvlinkErrors = {.id = "nvlink_errors",
                               .Title = [] { return Say("NVLink has errors", "NVLink 出现错误"); },
                               .Judge = Judge};

}  // namespace rules
}  // namespace epochmeter::diagnose
