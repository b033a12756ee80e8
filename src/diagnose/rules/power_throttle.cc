// SPDX-License-Identifier: Apache-2.0
// The power limit, or the hardware's power brake, holds the clocks down. Needs the driver's counter
// of the power cap or the reason mask.
//
// A GPU at full load runs at its power limit: that is normal, and info. It is a warning only where
// the clock falls far for much of the steady time, or where the hardware itself brakes (supply or
// board trouble). False positives: clocks that are low because there is little to do, clocks that
// somebody set (application clocks), the thermal slowdown (thermal_throttle).
#include <algorithm>

#include "diagnose/rules/all.h"
#include "diagnose/say.h"
#include "diagnose/throttling.h"

namespace epochmeter::diagnose {
namespace {

using model::Finding;
using model::Severity;

struct Capped {
  const JudgedGpu* gpu = nullptr;
  Held held;
  bool brake = false;  // the hardware does it, not the power limit
  Clocks clocks;
  Severity severity = Severity::kInfo;

  double LostSeconds() const { return std::min(held.ratio, clocks.LostRatio()) * gpu->seconds; }
};

// Nothing: the GPU tells none of it, or too little of it to speak of.
struct Looked {
  bool told = false;
  std::optional<Capped> capped;
};

Looked LookAt(const Facts& facts, const JudgedGpu& gpu) {
  const Limits& limits = facts.limits();
  Looked looked;
  const auto cap = HeldDown(facts, gpu, "throttle_power_cap_s", kReasonPowerCap);
  const auto brake = HeldDown(facts, gpu, {}, kReasonPowerBrake);
  // The hardware's slowdown without its thermal bit.
  const auto hardware = HeldDown(facts, gpu, {}, kReasonHardware);
  const auto thermal = HeldDown(facts, gpu, {}, kReasonHardwareThermal);
  looked.told = cap.has_value() || brake.has_value();
  double braked = brake ? brake->ratio : 0;
  if (hardware) braked = std::max(braked, hardware->ratio - (thermal ? thermal->ratio : 0));
  Capped capped{.gpu = &gpu, .held = {}, .clocks = ClocksOf(facts, gpu)};
  if (braked >= limits["power_throttle.brake_ratio"]) {
    capped.held = {.ratio = braked, .series = hardware->series};
    capped.brake = true;
    capped.severity = Severity::kWarning;
    looked.capped = std::move(capped);
  } else if (cap && cap->ratio >= limits["power_throttle.info_ratio"]) {
    capped.held = *cap;
    const bool much = cap->ratio >= limits["power_throttle.warning_ratio"] &&
                      capped.clocks.LostRatio() > limits["power_throttle.clock_lost_ratio"];
    if (much) capped.severity = Severity::kWarning;
    looked.capped = std::move(capped);
  }
  return looked;
}

model::Evidence EvidenceOf(const Facts& facts, const Capped& capped) {
  model::Evidence evidence{.series = capped.held.series,
                           .interval = capped.gpu->Span(),
                           .values = {{"throttled_ratio", capped.held.ratio}},
                           .note = {},
                           .steps = {}};
  if (capped.clocks.mean_hz) evidence.values.emplace_back("sm_clock_hz", *capped.clocks.mean_hz);
  if (capped.clocks.max_hz) evidence.values.emplace_back("sm_clock_max_hz", *capped.clocks.max_hz);
  for (const std::string_view field :
       {"power_w", "power_limit_w", "power_limit_default_w", "temperature_c"}) {
    const auto highest = HighestOf(facts, *capped.gpu, field);
    if (highest) evidence.values.emplace_back(field, *highest);
  }
  return evidence;
}

std::vector<model::Advice> AdviceOf(const Facts& facts, const Capped& capped) {
  const int32_t gpu = capped.gpu->gpu;
  if (capped.brake) {
    return {{.framework = "",
             .text = Say("Have power supply, cables and board of the node checked: the hardware "
                         "brakes by itself.",
                         "检查节点的电源、线缆和板卡：硬件正在自行降频。"),
             .code = fmt::format("nvidia-smi -q -d PERFORMANCE,POWER -i {}", gpu)}};
  }
  const auto limit = HighestOf(facts, *capped.gpu, "power_limit_w");
  const auto usual = HighestOf(facts, *capped.gpu, "power_limit_default_w");
  if (limit && usual && *limit < 0.99 * *usual) {
    return {
        {.framework = "",
         .text = Say("The limit was set to {:.0f} W; the board's own is {:.0f} W. Raise it where "
                     "power and cooling allow.",
                     "功率上限被设为 {:.0f} W，而板卡默认值为 {:.0f} W。在供电和散热允许时调高。",
                     *limit, *usual),
         .code = fmt::format("nvidia-smi -i {} -pl {:.0f}", gpu, *usual)}};
  }
  return {{.framework = "",
           .text = Say("The GPU works at its power limit, as a loaded one does: lower precision "
                       "(bf16, fp8) does more work per watt; raise the limit only where the board "
                       "allows it.",
                       "GPU 运行在功率上限，满载时属正常现象：更低精度（bf16、fp8）可提高每瓦算力；"
                       "仅在板卡允许时调高上限。"),
           .code = {}}};
}

model::Message Summary(const std::vector<Capped>& list) {
  const Capped& worst = list.front();
  const model::Message gpus = SayGpus(list.size(), worst.gpu->gpu);
  const std::string part = SayPercent(worst.held.ratio);
  model::Message text =
      worst.brake ? Say("{} was braked by its hardware (power brake or slowdown) in {} of the time",
                        "", gpus.en, part)
                  : Say("{} ran at its power limit in {} of the time", "", gpus.en, part);
  text.zh = worst.brake ? fmt::format("{} 在 {} 的时间内被硬件强制降频（power brake 或 slowdown）",
                                      gpus.zh, part)
                        : fmt::format("{} 在 {} 的时间内达到功率上限", gpus.zh, part);
  if (worst.clocks.mean_hz && worst.clocks.max_hz) {
    const model::Message clock =
        Say(", with a clock of {:.0f} MHz on average ({} below the highest)",
            "，平均时钟 {:.0f} MHz（比最高值低 {}）", *worst.clocks.mean_hz / 1e6,
            SayPercent(worst.clocks.LostRatio()));
    text.en += clock.en;
    text.zh += clock.zh;
  }
  text.en += ".";
  text.zh += "。";
  return text;
}

Finding Told(const Facts& facts, const std::vector<Capped>& list) {
  const Capped& worst = list.front();
  Finding finding;
  finding.severity = worst.severity;
  if (list.size() == 1) finding.gpu = worst.gpu->gpu;
  finding.confidence = worst.gpu->steady ? 0.9 : 0.7;
  finding.summary = Summary(list);
  finding.explanation =
      worst.brake
          ? Say("The reason mask of the driver says so while the training worked.",
                "训练期间驱动的降频原因掩码如此显示。")
          : Say("At full load this is normal; it costs speed only as far as the clock falls. "
                "Judged over the steady steps.",
                "满载时属正常现象，仅在时钟明显下降时才影响速度。按稳定的步骤期间判断。");
  finding.advice = AdviceOf(facts, worst);
  if (worst.severity == Severity::kWarning) {
    double lost_s = 0;
    for (const Capped& one : list) lost_s += one.LostSeconds();
    if (lost_s > 0) finding.lost_gpu_s = lost_s;
    if (lost_s > 0 && facts.duration_s() > 0) {
      finding.gain_ratio = std::min(1.0, worst.LostSeconds() / facts.duration_s());
    }
  }
  for (size_t i = 0; i < std::min<size_t>(list.size(), 3); ++i) {
    finding.evidence.push_back(EvidenceOf(facts, list[i]));
  }
  return finding;
}

Judgement Judge(const Facts& facts) {
  const std::vector<JudgedGpu> gpus = JudgedGpus(facts);
  std::vector<Capped> braked;
  std::vector<Capped> slow;
  std::vector<Capped> normal;
  bool any = false;
  for (const JudgedGpu& gpu : gpus) {
    Looked looked = LookAt(facts, gpu);
    any = any || looked.told;
    if (!looked.capped) continue;
    const bool warning = looked.capped->severity == Severity::kWarning;
    auto& list = looked.capped->brake ? braked : warning ? slow : normal;
    list.push_back(std::move(*looked.capped));
  }
  if (!any) {
    return NotApplicable(
        Say("no GPU of the job tells why its clocks are held down", "作业的 GPU 均未提供降频原因"));
  }
  Judgement judgement;
  for (auto* list : {&braked, &slow, &normal}) {
    std::stable_sort(list->begin(), list->end(),
                     [](const Capped& a, const Capped& b) { return a.held.ratio > b.held.ratio; });
    if (!list->empty()) judgement.findings.push_back(Told(facts, *list));
  }
  return judgement;
}

}  // namespace

namespace rules {

const RuleDef kPowerThrottle = {
    .id = "power_throttle",
    .Title = [] { return Say("Power holds the GPU's clocks down", "GPU 因功率限制而降频"); },
    .Judge = Judge};

}  // namespace rules
}  // namespace epochmeter::diagnose
