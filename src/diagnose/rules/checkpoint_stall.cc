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
#include "diagnose/rules/all.h"
#include "diagnose/say.h"
#include "diagnose/stalls.h"

namespace epochmeter::diagnose {
namespace {

using model::Advice;
using model::Finding;
using model::Interval;
using model::Severity;

constexpr double kShortestPause_s = 0.3;
constexpr double kUsualSteps = 5;  // a pause is so many times the usual step
constexpr size_t kFewestPauses = 3;
constexpr double kLeastWritten_bytes = 16e6;  // in a pause that is taken for a checkpoint
constexpr double kWorksMeanwhile = 0.8;       // utilisation at which the GPU does not wait
constexpr size_t kMostSteps = 20;

struct Saves {
  size_t rank = 0;
  std::vector<Interval> spans;
  std::vector<int64_t> after_steps;
  bool told = true;
  double total_s = 0, wall_s = 0;
  std::optional<double> written_bytes;  // in all spans together
  double Ratio() const { return wall_s > 0 ? total_s / wall_s : 0; }
};

// What the run's processes have written, by every reading.
class Written {
 public:
  explicit Written(const Facts& facts) {
    const model::Curve* curve = facts.TreeCurve("written_bytes_per_s");
    if (curve != nullptr) readings_ = facts.Read(curve->entity, "written_bytes");
  }
  bool known() const { return readings_.t_ns.size() > 1; }
  // Between the last reading before the interval and the first after it, which may be a while off.
  std::optional<double> In(const Interval& interval) const {
    const auto& t_ns = readings_.t_ns;
    const auto after = std::lower_bound(t_ns.begin(), t_ns.end(), interval.end_ns);
    const auto before = std::upper_bound(t_ns.begin(), t_ns.end(), interval.begin_ns);
    if (after == t_ns.end() || before == t_ns.begin()) return {};
    const double growth = readings_.value[static_cast<size_t>(after - t_ns.begin())] -
                          readings_.value[static_cast<size_t>(before - t_ns.begin()) - 1];
    if (!(growth >= 0)) return {};
    return growth;
  }

 private:
  model::SeriesColumn readings_;
};

double WallSeconds(const RankFacts& rank) {
  return base::SecondsFromNs(rank.steps.back().end_ns - rank.steps.front().end_ns);
}

Saves ToldSaves(const Facts& facts, size_t index) {
  const RankFacts& rank = facts.ranks()[index];
  Saves saves{.rank = index, .spans = {}, .after_steps = {}, .wall_s = WallSeconds(rank)};
  const Interval steps{.begin_ns = rank.steps.front().end_ns, .end_ns = rank.steps.back().end_ns};
  saves.spans = Overlap(PhasesNamed(rank, {"checkpoint"}), std::span(&steps, 1));
  size_t at = 0;
  for (const Interval& span : saves.spans) {
    while (at + 1 < rank.steps.size() && rank.steps[at + 1].end_ns <= span.begin_ns) ++at;
    if (rank.steps[at].step != model::kNotKnown) saves.after_steps.push_back(rank.steps[at].step);
  }
  saves.total_s = TotalSeconds(saves.spans);
  return saves;
}

// Long pauses with large writes in them; what they take beyond a usual step counts.
Saves LikelySaves(const Facts& facts, size_t index, const Written& written) {
  const RankFacts& rank = facts.ranks()[index];
  Saves saves{
      .rank = index, .spans = {}, .after_steps = {}, .told = false, .wall_s = WallSeconds(rank)};
  const std::optional<double> usual_s = StepPeriodSeconds(rank);
  if (!usual_s) return saves;
  const std::vector<Interval> excused = PhasesNamed(rank, {"eval", "compile"});
  for (size_t i = 3; i < rank.steps.size(); ++i) {
    const Interval pause{.begin_ns = rank.steps[i - 1].end_ns, .end_ns = rank.steps[i].end_ns};
    const double beyond_s = TotalSeconds(Without(std::span(&pause, 1), excused)) - *usual_s;
    if (beyond_s < std::max(kShortestPause_s, kUsualSteps * *usual_s)) continue;
    if (written.In(pause).value_or(0) < kLeastWritten_bytes) continue;
    saves.spans.push_back(pause);
    if (rank.steps[i - 1].step != model::kNotKnown) {
      saves.after_steps.push_back(rank.steps[i - 1].step);
    }
    saves.total_s += beyond_s;
  }
  if (saves.spans.size() < kFewestPauses) saves.spans.clear();
  if (saves.spans.empty()) saves.total_s = 0;
  return saves;
}

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

std::optional<double> WrittenIn(const Saves& saves, const Written& written) {
  std::optional<double> sum;
  for (const Interval& span : saves.spans) {
    const std::optional<double> bytes = written.In(span);
    if (bytes) sum = sum.value_or(0) + *bytes;
  }
  return sum;
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
  const Written written(facts);
  const bool told =
      std::any_of(facts.ranks().begin(), facts.ranks().end(), [](const RankFacts& rank) {
        return std::any_of(rank.phases.begin(), rank.phases.end(),
                           [](const PhaseSpan& phase) { return phase.name == "checkpoint"; });
      });
  std::optional<Saves> worst;
  bool any = false;
  for (size_t i = 0; i < facts.ranks().size(); ++i) {
    if (facts.ranks()[i].steps.size() < 2 || (!told && !written.known())) continue;
    any = true;
    Saves saves = told ? ToldSaves(facts, i) : LikelySaves(facts, i, written);
    if (!worst || saves.total_s > worst->total_s) worst = std::move(saves);
  }
  if (!any) {
    return NotApplicable(
        Say("the run tells of no checkpoints, and there are not both steps and "
            "what its processes write to find them by",
            "该运行没有报告检查点，也没有可用于推断的步骤和进程写入量"));
  }
  Judgement judgement;
  if (worst->spans.empty() || worst->Ratio() < facts.limits()["checkpoint_stall.info_ratio"]) {
    return judgement;
  }
  worst->written_bytes = WrittenIn(*worst, written);
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
