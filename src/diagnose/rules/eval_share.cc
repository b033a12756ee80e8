// SPDX-License-Identifier: Apache-2.0
// Evaluation takes a large part of the training's time.
//
// Needs phases named eval between steps. The share is of the time from the first step to the end of
// the last step or evaluation. A single evaluation after the last step is the test of the finished
// model and does not count. False positives: small data sets, where a fixed evaluation set weighs
// much; trainings that mostly evaluate on purpose.
#include <algorithm>
#include <cmath>

#include "diagnose/activity.h"
#include "diagnose/rules/all.h"
#include "diagnose/say.h"

namespace epochmeter::diagnose {
namespace {

using model::Advice;
using model::Finding;
using model::Interval;
using model::Severity;

struct Evals {
  size_t rank = 0;
  std::vector<Interval> spans;
  double total_s = 0, wall_s = 0;
  double Ratio() const { return wall_s > 0 ? total_s / wall_s : 0; }
};

Evals EvalsOf(const Facts& facts, size_t index) {
  const RankFacts& rank = facts.ranks()[index];
  Evals evals{.rank = index, .spans = {}};
  const int64_t first_ns = rank.steps.front().end_ns;
  const int64_t last_ns = rank.steps.back().end_ns;
  for (const Interval& span : PhasesNamed(rank, {"eval", "validation"})) {
    if (span.end_ns <= first_ns || span.begin_ns > rank.training.end_ns) continue;
    evals.spans.push_back({.begin_ns = std::max(span.begin_ns, first_ns),
                           .end_ns = std::min(span.end_ns, rank.training.end_ns)});
  }
  if (evals.spans.size() == 1 && evals.spans.front().begin_ns >= last_ns) evals.spans.clear();
  evals.total_s = TotalSeconds(evals.spans);
  const int64_t end_ns =
      evals.spans.empty() ? last_ns : std::max(last_ns, evals.spans.back().end_ns);
  evals.wall_s = base::SecondsFromNs(end_ns - first_ns);
  return evals;
}

std::vector<Advice> HowToEvaluate() {
  const auto text =
      Say("Evaluate less often or on a part of the set, in larger batches and without "
          "gradients, and load its data with as many workers as the training's.",
          "降低评估频率或只评估部分数据，使用更大的批次且不计算梯度，"
          "并使用与训练相同数量的数据加载进程。");
  return {{.framework = "paddle",
           .text = text,
           .code = "with paddle.no_grad(): ...\nmodel.fit(..., eval_freq=5)"},
          {.framework = "tensorflow",
           .text = text,
           .code = "model.fit(..., validation_freq=5, validation_steps=100, "
                   "validation_batch_size=4 * batch_size)"},
          {.framework = "pytorch",
           .text = text,
           .code = "with torch.inference_mode(): ...\n"
                   "# Lightning: Trainer(check_val_every_n_epoch=5)"}};
}

Finding FindingOf(const Facts& facts, const Evals& evals) {
  const RankFacts& rank = facts.ranks()[evals.rank];
  const auto eval_busy = MeanOver(facts, rank.gpus, "utilization_ratio", evals.spans);
  const auto train_busy = MeanOver(facts, rank.gpus, "utilization_ratio", SteadySpans(rank));
  const bool idler = eval_busy && train_busy &&
                     *eval_busy < facts.limits()["eval_share.idler_ratio"] * *train_busy;
  const bool much = evals.Ratio() >= facts.limits()["eval_share.warning_ratio"];
  Finding finding;
  finding.severity = much || idler ? Severity::kWarning : Severity::kInfo;
  if (facts.ranks().size() > 1) finding.rank = rank.rank;
  finding.confidence = 0.95;
  finding.summary =
      Say("{} of the time since the first step goes into evaluation: {} times {}.",
          "首步以来有 {} 的时间用于评估：{} 次，每次 {}。", SayPercent(evals.Ratio()),
          evals.spans.size(), SaySeconds(evals.total_s / static_cast<double>(evals.spans.size())));
  if (eval_busy && train_busy) {
    finding.explanation =
        idler ? Say("The GPU is {} busy in it, {} in training steps: the evaluation is slow for "
                    "want of work for the GPU.",
                    "评估时 GPU 利用率为 {}，训练步骤中为 {}：评估没有让 GPU 充分工作。",
                    SayPercent(*eval_busy), SayPercent(*train_busy))
              : Say("The GPU is {} busy in it, {} in training steps.",
                    "评估时 GPU 利用率为 {}，训练步骤中为 {}。", SayPercent(*eval_busy),
                    SayPercent(*train_busy));
  } else {
    finding.explanation = Say("As the training told it; a test after the last step is not counted.",
                              "由训练程序报告；不含最后一步之后的测试。");
  }
  finding.advice = HowToEvaluate();
  finding.lost_gpu_s = evals.total_s * static_cast<double>(std::max<size_t>(facts.job_gpus(), 1));
  model::Evidence evidence{
      .series = rank.name + " eval",
      .interval = {.begin_ns = evals.spans.front().begin_ns, .end_ns = evals.spans.back().end_ns},
      .values = {{"eval_total_s", evals.total_s},
                 {"eval_ratio", evals.Ratio()},
                 {"evaluations", static_cast<double>(evals.spans.size())}},
      .note = {},
      .steps = {}};
  if (eval_busy) evidence.values.emplace_back("eval_utilization_ratio", *eval_busy);
  if (train_busy) evidence.values.emplace_back("train_utilization_ratio", *train_busy);
  finding.evidence.push_back(std::move(evidence));
  return finding;
}

Judgement Judge(const Facts& facts) {
  std::optional<Evals> worst;
  bool told = false;
  for (size_t i = 0; i < facts.ranks().size(); ++i) {
    const RankFacts& rank = facts.ranks()[i];
    if (rank.steps.size() < 2 || PhasesNamed(rank, {"eval", "validation"}).empty()) continue;
    told = true;
    Evals evals = EvalsOf(facts, i);
    if (!worst || evals.total_s > worst->total_s) worst = std::move(evals);
  }
  if (!told) {
    return NotApplicable(Say("no rank tells both its steps and its evaluations",
                             "没有任何 rank 同时报告步骤和评估"));
  }
  Judgement judgement;
  if (worst->spans.empty() || worst->Ratio() < facts.limits()["eval_share.info_ratio"]) {
    return judgement;
  }
  judgement.findings.push_back(FindingOf(facts, *worst));
  return judgement;
}

}  // namespace

namespace rules {

const RuleDef kEvalShare = {
    .id = "eval_share",
    .Title = [] { return Say("Evaluation takes much of the time", "评估占用了大量时间"); },
    .Judge = Judge};

}  // namespace rules
}  // namespace epochmeter::diagnose
