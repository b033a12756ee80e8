// SPDX-License-Identifier: Apache-2.0
// The GPU works in bursts with lulls between them while steps are taken.
//
// Needs twenty samples of utilisation over steady steps. Bursts and lulls must both make up a part
// of the samples: a tool that looks at a busy GPU now and then meets a lull by chance. Where
// data_starvation or low_sm_activity give the reason it only remarks. False positives: steps of
// many seconds with a phase on the CPU by design, such as reinforcement learning.
#include <algorithm>

#include "diagnose/activity.h"
#include "diagnose/rules/all.h"
#include "diagnose/say.h"
#include "diagnose/statistics.h"

namespace epochmeter::diagnose {
namespace {

using model::Advice;
using model::Finding;
using model::Interval;
using model::Severity;

constexpr size_t kFewestSamples = 20;
// A sample speaks for up to a second before it: what is judged begins so much later.
constexpr int64_t kWindowNs = 1'000'000'000;

struct Bursts {
  int32_t gpu = -1;
  size_t samples = 0;
  double low = 0, high = 0;  // parts of the samples
  double p5 = 0, p95 = 0;
};

std::optional<Bursts> BurstsOf(const Facts& facts, int32_t gpu, std::span<const Interval> judged) {
  const model::Curve* curve = facts.GpuCurve(gpu, "utilization_ratio");
  if (curve == nullptr || judged.empty()) return {};
  const model::SeriesColumn column =
      facts.Read(curve->entity, "utilization_ratio",
                 {.begin_ns = judged.front().begin_ns, .end_ns = judged.back().end_ns});
  std::vector<double> values;
  size_t at = 0;
  for (size_t i = 0; i < column.t_ns.size(); ++i) {
    while (at < judged.size() && judged[at].end_ns < column.t_ns[i]) ++at;
    if (at == judged.size()) break;
    if (judged[at].begin_ns + kWindowNs <= column.t_ns[i] && column.value[i] >= 0) {
      values.push_back(column.value[i]);
    }
  }
  if (values.size() < kFewestSamples) return {};
  std::sort(values.begin(), values.end());
  const auto count = static_cast<double>(values.size());
  const auto below =
      std::lower_bound(values.begin(), values.end(), facts.limits()["bursty_gpu.low_ratio"]);
  const auto above =
      std::lower_bound(values.begin(), values.end(), facts.limits()["bursty_gpu.high_ratio"]);
  return Bursts{.gpu = gpu,
                .samples = values.size(),
                .low = static_cast<double>(below - values.begin()) / count,
                .high = static_cast<double>(values.end() - above) / count,
                .p5 = Percentile(values, 0.05).value_or(0),
                .p95 = Percentile(values, 0.95).value_or(0)};
}

std::vector<Advice> HowToSmooth() {
  return {{.framework = {},
           .text = Say("Let the CPU prepare the next steps while the GPU works: prefetch batches, "
                       "copy asynchronously from pinned memory, and log, save and evaluate metrics "
                       "only every some steps.",
                       "让 CPU 在 GPU 计算时准备后续步骤：预取批次、从锁页内存异步拷贝，"
                       "并且每隔若干步才记录日志、保存和计算指标。"),
           .code = {}}};
}

Finding FindingOf(const Facts& facts, const Bursts& bursts, std::span<const Interval> judged) {
  const model::Message why = WhyLittleWork(facts);
  const bool much = bursts.low >= facts.limits()["bursty_gpu.share_warning"] && why.empty();
  Finding finding;
  finding.severity = much ? Severity::kWarning : Severity::kInfo;
  if (GpusOfJob(facts).size() == 1) finding.gpu = bursts.gpu;
  finding.confidence = 0.8;
  finding.summary =
      Say("While steps are taken, GPU {} is at rest in {} of the samples and busy in "
          "{}.",
          "训练步骤进行中，GPU {} 有 {} 的采样处于空闲，{} 处于繁忙。", bursts.gpu,
          SayPercent(bursts.low), SayPercent(bursts.high));
  finding.explanation =
      why.empty() ? Say("Something on the CPU holds it up again and again; evaluation, checkpoints "
                        "and idle stretches are left out.",
                        "CPU 上的某些工作反复让它停下；评估、检查点和空闲时段已排除。")
                  : why;
  finding.advice = HowToSmooth();
  finding.evidence.push_back(
      {.series = "gpu" + std::to_string(bursts.gpu) + " utilization_ratio",
       .interval = {.begin_ns = judged.front().begin_ns, .end_ns = judged.back().end_ns},
       .values = {{"low_share_ratio", bursts.low},
                  {"high_share_ratio", bursts.high},
                  {"p5_ratio", bursts.p5},
                  {"p95_ratio", bursts.p95},
                  {"samples", static_cast<double>(bursts.samples)}},
       .note = {},
       .steps = {}});
  return finding;
}

Judgement Judge(const Facts& facts) {
  const std::vector<Interval> judged = WorkingTime(facts);
  const double least = facts.limits()["bursty_gpu.share_info"];
  std::optional<Bursts> worst;
  bool any = false;
  for (const int32_t gpu : GpusOfJob(facts)) {
    const std::optional<Bursts> bursts = BurstsOf(facts, gpu, judged);
    any = any || bursts.has_value();
    if (!bursts || bursts->low < least || bursts->high < least) continue;
    if (!worst || bursts->low > worst->low) worst = bursts;
  }
  if (!any) {
    return NotApplicable(Say("fewer than {} samples of utilisation over steady steps",
                             "稳定步骤期间的利用率采样少于 {} 个", kFewestSamples));
  }
  Judgement judgement;
  if (worst) judgement.findings.push_back(FindingOf(facts, *worst, judged));
  return judgement;
}

}  // namespace

namespace rules {

const RuleDef kBurstyGpu = {.id = "bursty_gpu",
                            .Title = [] { return Say("The GPU works in bursts", "GPU 时忙时闲"); },
                            .Judge = Judge};

}  // namespace rules
}  // namespace epochmeter::diagnose
