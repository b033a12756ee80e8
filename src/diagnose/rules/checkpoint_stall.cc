// SPDX-License-Identifier: Apache-2.0
// Saving checkpoints stops the training.
//
// Needs phases named checkpoint, or, where nobody tells them, steps and what the run's processes
// write: then long pauses between steps in which much was written are taken for checkpoints. The
// share is of the time from the first step to the last; the final save does not count. False
// positives: without told phases, other large writes such as dumps of predictions; a save on
// purpose at the end of every long epoch is rare enough to stay below the limit.
#include <algorithm>
#include <cmath>

#include "diagnose/activity.h"
#include "diagnose/checkpoints.h"
#include "diagnose/rules/all.h"
#include "diagnose/say.h"

namespace epochmeter::diagnose {
namespace {

using model::Advice;
using model::Finding;
using model::Interval;
using model::Severity;

constexpr double kWorksMeanwhile = 0.8;  // utilisation at which the GPU does not wait
constexpr size_t kMostSteps = 20;

std::vector<Advice> HowToSave() {
  const auto text =
      Say("Save in the background or from all ranks at once, to a local disk first, "
          "and less often.",
          "在后台保存或由所有 rank 分片保存，先写入本地磁盘，并降低保存频率。");
  return {{.framework = "paddle",
           .text = text,
           .code = "paddle.distributed.save_state_dict(state, path, async_save=True)"},
          {.framework = "tensorflow",
           .text = text,
           .code = "options = tf.train.CheckpointOptions(enable_async=True)\n"
                   "checkpoint.save(path, options=options)"},
          {.framework = "pytorch",
           .text = text,
           .code = "torch.distributed.checkpoint.async_save(state, checkpoint_id=path)"}};
}

void Summarize(const RankFacts& rank, const Saves& saves, Finding* finding) {
  const auto count = static_cast<double>(saves.spans.size());
  finding->summary =
      Say("{} stopped for {} checkpoints: {} each, {} of the time from its first step to its last.",
          "{} 因保存 {} 次检查点而停顿：每次 {}，占首步到末步时间的 {}。", rank.name,
          saves.spans.size(), SaySeconds(saves.total_s / count), SayPercent(saves.Ratio()));
  finding->explanation =
      saves.told ? Say("As the training told it; the final save is not counted.",
                       "由训练程序报告；不含最后一次保存。")
                 : Say("Nobody told of checkpoints: these are long pauses between steps in which "
                       "the run's processes wrote much.",
                       "训练程序没有报告检查点：这些是步骤之间的长停顿，期间进程写入了大量数据。");
  if (saves.written_bytes && *saves.written_bytes > 0) {
    const auto size = Say(" Each wrote about {}, at {}/s.", "每次约写入 {}，速度 {}/s。",
                          SayBytes(*saves.written_bytes / count),
                          SayBytes(*saves.written_bytes / std::max(saves.total_s, 1e-9)));
    finding->explanation.en += size.en;
    finding->explanation.zh += size.zh;
  }
}

Finding FindingOf(const Facts& facts, const Saves& saves) {
  const RankFacts& rank = facts.ranks()[saves.rank];
  const std::optional<double> busy = MeanOver(facts, rank.gpus, "utilization_ratio", saves.spans);
  const bool much = saves.Ratio() >= facts.limits()["checkpoint_stall.warning_ratio"] &&
                    busy.value_or(0) < kWorksMeanwhile;
  Finding finding;
  finding.severity = much ? Severity::kWarning : Severity::kInfo;
  if (facts.ranks().size() > 1) finding.rank = rank.rank;
  finding.confidence = saves.told ? 0.95 : 0.7;
  Summarize(rank, saves, &finding);
  finding.advice = HowToSave();
  if (busy.value_or(0) < kWorksMeanwhile) {
    finding.lost_gpu_s = saves.total_s * static_cast<double>(std::max<size_t>(facts.job_gpus(), 1));
    finding.gain_ratio = std::min(1.0, saves.total_s / std::max(facts.duration_s(), 1e-9));
  }
  model::Evidence evidence{
      .series = rank.name + " checkpoint",
      .interval = {.begin_ns = saves.spans.front().begin_ns, .end_ns = saves.spans.back().end_ns},
      .values = {{"checkpoint_total_s", saves.total_s},
                 {"checkpoint_ratio", saves.Ratio()},
                 {"checkpoints", static_cast<double>(saves.spans.size())}},
      .note = {},
      .steps = saves.after_steps};
  if (evidence.steps.size() > kMostSteps) evidence.steps.resize(kMostSteps);
  if (saves.written_bytes) evidence.values.emplace_back("written_bytes", *saves.written_bytes);
  if (busy) evidence.values.emplace_back("utilization_ratio", *busy);
  finding.evidence.push_back(std::move(evidence));
  return finding;
}

Judgement Judge(const Facts& facts) {
  const std::vector<Saves> found = FindSaves(facts);
  const auto worst =
      std::max_element(found.begin(), found.end(),
                       [](const Saves& a, const Saves& b) { return a.total_s < b.total_s; });
  if (found.empty()) {
    return NotApplicable(
        Say("the run tells of no checkpoints, and there are not both steps and "
            "what its processes write to find them by",
            "该运行没有报告检查点，也没有可用于推断的步骤和进程写入量"));
  }
  Judgement judgement;
  if (worst->spans.empty() || worst->Ratio() < facts.limits()["checkpoint_stall.info_ratio"]) {
    return judgement;
  }
  judgement.findings.push_back(FindingOf(facts, *worst));
  return judgement;
}

}  // namespace

namespace rules {

const RuleDef kCheckpointStall = {
    .id = "checkpoint_stall",
    .Title = [] { return Say("Saving checkpoints stops the training", "保存检查点使训练停顿"); },
    .Judge = Judge};

}  // namespace rules
}  // namespace epochmeter::diagnose
