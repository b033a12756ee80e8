// SPDX-License-Identifier: Apache-2.0
// The time from the start of the job to its first step, and what each epoch's first batch costs.
//
// Needs a first step and the start of the recording. That a start takes time is no fault: it is
// remarked on where it is a good part of the run, and a warning only where it takes longer than
// anybody waits for (20 minutes). False positives: a recording that was attached to a training
// under way (its first step is not the training's: then it can't be judged), the first run on a
// cold cache.
#include <algorithm>
#include <cmath>

#include "diagnose/rules/all.h"
#include "diagnose/say.h"

namespace epochmeter::diagnose {
namespace {

using model::Finding;
using model::Severity;

constexpr int64_t kFirstStep = 1;  // frameworks count steps from 0 or 1

struct Start {
  const RankFacts* rank = nullptr;
  double to_training_s = 0;    // from the start of the recording to train_begin
  double to_first_step_s = 0;  // from train_begin to the begin of the first step
  double first_step_s = 0;     // the first step less the median of those after warm-up
  double Total() const { return to_training_s + to_first_step_s + first_step_s; }
};

double MedianStep(const RankFacts& rank) {
  std::vector<double> durations;
  for (const TrainStep& step : rank.steps) {
    if (!step.warm_up && step.duration_s >= 0) durations.push_back(step.duration_s / step.steps);
  }
  if (durations.empty()) return 0;
  const auto middle = durations.begin() + static_cast<std::ptrdiff_t>(durations.size() / 2);
  std::nth_element(durations.begin(), middle, durations.end());
  return *middle;
}

std::optional<Start> StartOf(const Facts& facts, const RankFacts& rank) {
  if (rank.steps.empty()) return {};
  const TrainStep& first = rank.steps.front();
  const bool from_the_start = first.step == model::kNotKnown || first.step <= kFirstStep ||
                              static_cast<double>(first.step) <= first.steps;
  if (!from_the_start) return {};
  const int64_t began = facts.run().Recorded().begin_ns;
  const int64_t training =
      std::clamp(rank.training.begin_ns, began, std::max(began, first.begin_ns));
  Start start{.rank = &rank};
  start.to_training_s = base::SecondsFromNs(training - began);
  start.to_first_step_s =
      std::max(0.0, base::SecondsFromNs(std::max(first.begin_ns, training) - training));
  start.first_step_s =
      std::max(0.0, base::SecondsFromNs(first.end_ns - first.begin_ns) - MedianStep(rank));
  return start;
}

// Waiting for the first batches of all epochs but the first.
double FirstBatchSeconds(const RankFacts& rank, size_t* epochs) {
  double seconds = 0;
  for (size_t i = 1; i < rank.steps.size(); ++i) {
    const TrainStep& step = rank.steps[i];
    if (step.epoch == model::kNotKnown || step.epoch == rank.steps[i - 1].epoch) continue;
    if (!(step.data_wait_s >= 0)) continue;
    seconds += step.data_wait_s;
    ++*epochs;
  }
  return seconds;
}

std::vector<model::Advice> HowToStart(bool compiles) {
  std::vector<model::Advice> advice = {
      {.framework = "",
       .text =
           Say("Build the index of the data set once and keep it in a file, load the checkpoint "
               "from a local disk, and start all ranks at the same time.",
               "只构建一次数据集索引并保存为文件，从本地磁盘加载检查点，并同时启动所有 rank。"),
       .code = ""}};
  if (!compiles) return advice;
  advice.push_back(
      {.framework = "paddle",
       .text = Say("Keep the compiled programs, and give shapes that do not change.",
                   "保留已编译的程序，并使用不变的形状。"),
       .code = "paddle.jit.to_static(net, input_spec=[InputSpec([None, 3, 224, 224])])"});
  advice.push_back({.framework = "tensorflow",
                    .text = Say("Trace once: give input signatures.", "只追踪一次：给出输入签名。"),
                    .code = "@tf.function(input_signature=[...], reduce_retracing=True)"});
  advice.push_back(
      {.framework = "pytorch",
       .text = Say("Keep the compiled kernels between runs.", "在多次运行之间保留已编译的内核。"),
       .code = "TORCHINDUCTOR_FX_GRAPH_CACHE=1 TORCHINDUCTOR_CACHE_DIR=/local/cache"});
  return advice;
}

Finding FindingOf(const Facts& facts, const Start& start) {
  const double total = start.Total();
  const double share = facts.duration_s() > 0 ? std::min(1.0, total / facts.duration_s()) : 0;
  Finding finding;
  finding.severity =
      total >= facts.limits()["slow_start.warning_s"] ? Severity::kWarning : Severity::kInfo;
  finding.summary =
      Say("The first step ended {} after the start: {} of the run ({} to the training, "
          "{} to its first batch, {} in the first step beyond the usual).",
          "第一个步骤在启动后 {} 才结束：占整个运行的 {}（到训练开始 {}，"
          "到第一个批次 {}，第一个步骤比平常多 {}）。",
          SaySeconds(total), SayPercent(share), SaySeconds(start.to_training_s),
          SaySeconds(start.to_first_step_s), SaySeconds(start.first_step_s));
  finding.explanation =
      Say("A start counts once; it matters where runs are short or restart often.",
          "启动只发生一次；在运行较短或经常重启时才重要。");
  finding.advice = HowToStart(start.first_step_s > total / 3);
  finding.lost_gpu_s = total * static_cast<double>(std::max<size_t>(facts.job_gpus(), 1));
  const int64_t began = facts.run().Recorded().begin_ns;
  finding.evidence.push_back(
      {.series = start.rank->name + " duration_s",
       .interval = {.begin_ns = began, .end_ns = start.rank->steps.front().end_ns},
       .values = {{"start_total_s", total},
                  {"to_training_s", start.to_training_s},
                  {"to_first_step_s", start.to_first_step_s},
                  {"first_step_excess_s", start.first_step_s}},
       .note = {},
       .steps = {}});
  size_t epochs = 0;
  const double first_batches = FirstBatchSeconds(*start.rank, &epochs);
  if (epochs > 0 && first_batches >= 0.01 * facts.duration_s()) {
    finding.evidence.push_back(
        {.series = start.rank->name + " data_wait_s",
         .interval = start.rank->training,
         .values = {{"first_batches_total_s", first_batches},
                    {"epochs", static_cast<double>(epochs)}},
         .note = Say("what the first batches of the later epochs were waited for; workers that "
                     "stay alive between epochs save it",
                     "后续各轮第一个批次的等待时间；在各轮之间保留加载进程可以避免"),
         .steps = {}});
  }
  return finding;
}

Judgement Judge(const Facts& facts) {
  std::optional<Start> slowest;
  for (const RankFacts& rank : facts.ranks()) {
    const std::optional<Start> start = StartOf(facts, rank);
    if (start && (!slowest || start->Total() > slowest->Total())) slowest = start;
  }
  if (!slowest) {
    return NotApplicable(Say("no rank's first step was recorded from its start",
                             "没有记录到任何 rank 从启动到第一个步骤的过程"));
  }
  Judgement judgement;
  const double total = slowest->Total();
  const bool long_enough = total >= facts.limits()["slow_start.info_s"] &&
                           total >= facts.limits()["slow_start.info_ratio"] * facts.duration_s();
  if (long_enough || total >= facts.limits()["slow_start.warning_s"]) {
    judgement.findings.push_back(FindingOf(facts, *slowest));
  }
  return judgement;
}

}  // namespace

namespace rules {

const RuleDef kSlowStart = {
    .id = "slow_start",
    .Title = [] { return Say("It takes long until the first step", "到第一个步骤的时间很长"); },
    .Judge = Judge};

}  // namespace rules
}  // namespace epochmeter::diagnose
