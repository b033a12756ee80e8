// SPDX-License-Identifier: Apache-2.0
// Heat holds the clocks down. Needs the driver's counter of thermal throttling or the reason mask.
//
// Judged over the steady time of the GPU's rank, in which a short dip is not worth a word. The bit
// for a hardware slowdown counts only together with the thermal one: alone it may be the power
// brake (power_throttle). An idle GPU and "low utilisation" are no throttling.
#include <algorithm>

#include "diagnose/rules/all.h"
#include "diagnose/say.h"
#include "diagnose/throttling.h"

namespace epochmeter::diagnose {
namespace {

using model::Finding;
using model::Severity;

struct Hot {
  const JudgedGpu* gpu = nullptr;
  Held held;
  double hardware_ratio = 0;  // of the time the hardware's own limit held
  Clocks clocks;

  // What the lower clock cost at most, in seconds of this GPU.
  double LostSeconds() const { return std::min(held.ratio, clocks.LostRatio()) * gpu->seconds; }
};

model::Evidence EvidenceOf(const Facts& facts, const Hot& hot) {
  model::Evidence evidence{.series = hot.held.series,
                           .interval = hot.gpu->Span(),
                           .values = {{"throttled_ratio", hot.held.ratio},
                                      {"hardware_throttled_ratio", hot.hardware_ratio}},
                           .note = {},
                           .steps = {}};
  if (hot.clocks.mean_hz) evidence.values.emplace_back("sm_clock_hz", *hot.clocks.mean_hz);
  if (hot.clocks.max_hz) evidence.values.emplace_back("sm_clock_max_hz", *hot.clocks.max_hz);
  for (const std::string_view field :
       {"temperature_c", "memory_temperature_c", "temperature_slowdown_c", "fan_speed_ratio"}) {
    const auto highest = HighestOf(facts, *hot.gpu, field);
    if (highest) evidence.values.emplace_back(field, *highest);
  }
  return evidence;
}

Finding Told(const Facts& facts, const std::vector<Hot>& hot, Severity severity) {
  const Hot& worst = hot.front();
  Finding finding;
  finding.severity = severity;
  if (hot.size() == 1) finding.gpu = worst.gpu->gpu;
  finding.confidence = worst.gpu->steady ? 0.95 : 0.8;
  const model::Message gpus = SayGpus(hot.size(), worst.gpu->gpu);
  const auto celsius = HighestOf(facts, *worst.gpu, "temperature_c");
  finding.summary = {
      .en = fmt::format("{} ran with clocks lowered by heat in {} of the {}time", gpus.en,
                        SayPercent(worst.held.ratio), worst.gpu->steady ? "training " : ""),
      .zh = fmt::format("{} 在 {} 的{}时间内因过热而降频", gpus.zh, SayPercent(worst.held.ratio),
                        worst.gpu->steady ? "训练" : "")};
  if (celsius) {
    const model::Message heat = Say(", at up to {:.0f} °C", "，温度最高 {:.0f} °C", *celsius);
    finding.summary.en += heat.en;
    finding.summary.zh += heat.zh;
  }
  if (worst.clocks.LostRatio() > 0) {
    const model::Message clock =
        Say("; the clock was {} below the highest on average", "；平均时钟比最高值低 {}",
            SayPercent(worst.clocks.LostRatio()));
    finding.summary.en += clock.en;
    finding.summary.zh += clock.zh;
  }
  finding.summary.en += ".";
  finding.summary.zh += "。";
  finding.explanation =
      Say("Counted by the driver over the steady steps. What it cost is taken from the clock: a "
          "training that waits for memory or data loses less.",
          "由驱动在稳定的步骤期间计数。损失按时钟估算：受显存或数据限制的训练损失更小。");
  finding.advice.push_back(
      {.framework = "",
       .text = Say("Have air flow and fans of the node checked (dust, blanking panels, inlet "
                   "temperature). Until then a lower power limit gives steadier clocks.",
                   "检查节点的风道和风扇（积灰、挡板、进风温度）。在此之前，降低功率上限可使时钟更"
                   "稳定。"),
       .code = fmt::format("nvidia-smi -q -d TEMPERATURE,PERFORMANCE -i {}", worst.gpu->gpu)});
  double lost_s = 0;
  for (const Hot& one : hot) lost_s += one.LostSeconds();
  if (lost_s > 0) finding.lost_gpu_s = lost_s;
  if (lost_s > 0 && facts.duration_s() > 0) {
    finding.gain_ratio = std::min(1.0, worst.LostSeconds() / facts.duration_s());
  }
  for (size_t i = 0; i < std::min<size_t>(hot.size(), 3); ++i) {
    finding.evidence.push_back(EvidenceOf(facts, hot[i]));
  }
  return finding;
}

Judgement Judge(const Facts& facts) {
  const std::vector<JudgedGpu> gpus = JudgedGpus(facts);
  const Limits& limits = facts.limits();
  std::vector<Hot> hot;
  std::vector<Hot> warm;
  bool any = false;
  for (const JudgedGpu& gpu : gpus) {
    const auto held =
        HeldDown(facts, gpu, "throttle_thermal_s", kReasonSoftwareThermal | kReasonHardwareThermal);
    if (!held) continue;
    any = true;
    const auto hardware = HeldDown(facts, gpu, {}, kReasonHardwareThermal);
    Hot one{.gpu = &gpu,
            .held = *held,
            .hardware_ratio = hardware ? hardware->ratio : 0,
            .clocks = ClocksOf(facts, gpu)};
    const bool much = held->ratio >= limits["thermal_throttle.warning_ratio"] ||
                      one.hardware_ratio >= limits["thermal_throttle.hardware_ratio"];
    if (much) {
      hot.push_back(std::move(one));
    } else if (held->ratio >= limits["thermal_throttle.info_ratio"]) {
      warm.push_back(std::move(one));
    }
  }
  if (!any) {
    return NotApplicable(
        Say("no GPU of the job tells why its clocks are held down", "作业的 GPU 均未提供降频原因"));
  }
  Judgement judgement;
  for (auto* list : {&hot, &warm}) {
    std::stable_sort(list->begin(), list->end(),
                     [](const Hot& a, const Hot& b) { return a.held.ratio > b.held.ratio; });
    if (list->empty()) continue;
    judgement.findings.push_back(
        Told(facts, *list, list == &hot ? Severity::kWarning : Severity::kInfo));
  }
  return judgement;
}

}  // namespace

namespace rules {

const RuleDef kThermalThrottle = {
    .id = "thermal_throttle",
    .Title = [] { return Say("Heat holds the GPU's clocks down", "GPU 因过热而降频"); },
    .Judge = Judge};

}  // namespace rules
}  // namespace epochmeter::diagnose
