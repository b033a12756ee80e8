// SPDX-License-Identifier: Apache-2.0
// A loss became NaN or infinite. Needs scalars of the client (steps, epoch ends, scalar events).
//
// Judged by whether it stays so: weights that took a NaN never give a finite loss again, so a loss
// that recovers was skipped or came from one bad batch. False positives that are told apart: a
// value that is not computed yet (not finite only at the beginning), losses told at some steps only
// with NaN between them, the overflows of a mixed-precision loss scale, perplexity that overflows
// while its loss is finite, validation losses of an empty set, and all scalars that are no loss.
#include <algorithm>
#include <cmath>
#include <set>

#include "base/clock.h"
#include "diagnose/rules/all.h"
#include "diagnose/say.h"
#include "diagnose/scalars.h"

namespace epochmeter::diagnose {
namespace {

using model::Evidence;
using model::Finding;
using model::Interval;
using model::Severity;

constexpr size_t kStepsBefore = 20;  // that say what led to it
constexpr size_t kMostNamed = 3;     // losses and ranks that are named one by one
constexpr int64_t kGpuBeforeNs = 10 * base::kNsPerSecond;
constexpr int64_t kGpuAfterNs = 5 * base::kNsPerSecond;
constexpr int64_t kHardwareBeforeNs = 300 * base::kNsPerSecond;

bool IsBad(const ScalarPoint& point) { return !std::isfinite(point.value); }

enum class Course : uint8_t { kFine, kOnlyAtFirst, kBetween, kRecovered, kStays };

// How one scalar of one rank went.
struct Story {
  const RankFacts* rank = nullptr;
  ScalarSeries series;
  Course course = Course::kFine;
  size_t first = 0;    // place of the first that is not finite
  size_t bad = 0;      // how many are not
  size_t longest = 0;  // in a row, but for those at the end
  size_t at_end = 0;   // in a row, up to the last
  Severity severity = Severity::kInfo;

  const ScalarPoint& First() const { return series.points[first]; }
};

void FindCourse(Story* story) {
  const std::vector<ScalarPoint>& points = story->series.points;
  size_t row = 0;
  size_t rows = 0;
  for (size_t i = 0; i < points.size(); ++i) {
    if (!IsBad(points[i])) {
      story->longest = std::max(story->longest, row);
      row = 0;
      continue;
    }
    if (story->bad == 0) story->first = i;
    ++story->bad;
    if (++row == 1) ++rows;
  }
  story->at_end = row;
  if (story->bad == 0) return;
  // Rows like those before it that were left again say nothing when they end the run.
  const bool stays = row > 0 && (rows <= 2 ? row > story->longest : row > 2 * story->longest);
  if (stays) {
    story->course = Course::kStays;
  } else if (rows == 1 && story->first == 0) {
    story->course = Course::kOnlyAtFirst;
  } else {
    const bool mostly = 2 * story->bad > points.size();
    story->course = mostly && rows > 3 ? Course::kBetween : Course::kRecovered;
  }
}

// What is known of the rank beside the scalar itself.
struct Beside {
  bool loss_scale = false;   // it trains with a scaled loss
  bool finite_loss = false;  // another loss of the training was finite throughout
};

Severity SeverityOfStory(const Story& story, const Beside& beside) {
  if (!IsLoss(story.series.name)) return Severity::kInfo;
  if (story.course == Course::kOnlyAtFirst || story.course == Course::kBetween) {
    return Severity::kInfo;
  }
  const bool stays = story.course == Course::kStays;
  const bool derived = story.series.name.find("perplexity") != std::string::npos ||
                       story.series.name.find("ppl") != std::string::npos;
  if (derived && beside.finite_loss) return Severity::kInfo;
  if (IsOfEvaluation(story.series)) return stays ? Severity::kWarning : Severity::kInfo;
  if (stays) return Severity::kCritical;
  // A scaled loss overflows now and then by design: the step is skipped and the scale lowered.
  return beside.loss_scale && story.longest <= 2 ? Severity::kInfo : Severity::kWarning;
}

// The stories of a rank in which something was not finite. The mean of an epoch is left out where
// its steps tell the same.
std::vector<Story> StoriesOf(const RankFacts& rank, bool* any) {
  std::vector<Story> stories;
  std::set<std::string> bad_steps;
  Beside beside;
  for (ScalarSeries& series : ScalarsOf(rank)) {
    *any = true;
    beside.loss_scale = beside.loss_scale || IsLossScale(series.name);
    const bool training_loss = IsLoss(series.name) && !IsOfEvaluation(series);
    Story story{.rank = &rank, .series = std::move(series)};
    FindCourse(&story);
    if (story.course == Course::kFine) {
      beside.finite_loss = beside.finite_loss || training_loss;
      continue;
    }
    if (story.series.told_by == model::EventKind::kStep) bad_steps.insert(story.series.name);
    const bool told = story.series.told_by != model::EventKind::kStep;
    if (told && bad_steps.count(story.series.name) > 0) continue;
    stories.push_back(std::move(story));
  }
  for (Story& story : stories) story.severity = SeverityOfStory(story, beside);
  return stories;
}

bool IsEarlier(const ScalarPoint& a, const ScalarPoint& b) {
  const bool steps = a.step != model::kNotKnown && b.step != model::kNotKnown;
  if (steps && a.step != b.step) return a.step < b.step;
  return a.t_ns < b.t_ns;
}

std::string SayValue(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return SayNumber(value);
}

// The last finite values before it turned.
Evidence BeforeEvidence(const Story& story) {
  const std::vector<ScalarPoint>& points = story.series.points;
  Evidence evidence{.series = story.rank->name + " " + story.series.name,
                    .interval = {.begin_ns = story.First().t_ns, .end_ns = points.back().t_ns},
                    .values = {},
                    .note = {},
                    .steps = {}};
  const size_t from = story.first > kStepsBefore ? story.first - kStepsBefore : 0;
  if (from < story.first) {
    const auto [low, high] = std::minmax_element(
        points.begin() + static_cast<ptrdiff_t>(from),
        points.begin() + static_cast<ptrdiff_t>(story.first),
        [](const ScalarPoint& a, const ScalarPoint& b) { return a.value < b.value; });
    evidence.interval.begin_ns = points[from].t_ns;
    evidence.values = {{"before_first", points[from].value},
                       {"before_min", low->value},
                       {"before_max", high->value},
                       {"before_last", points[story.first - 1].value}};
    evidence.note =
        Say("in the {} values before it, from {} to {}, the last was {}",
            "此前 {} 个值介于 {} 和 {} 之间，最后一个为 {}", story.first - from,
            SayValue(low->value), SayValue(high->value), SayValue(points[story.first - 1].value));
  }
  evidence.values.emplace_back("not_finite_values", static_cast<double>(story.bad));
  evidence.values.emplace_back("values", static_cast<double>(points.size()));
  if (story.First().step != model::kNotKnown) evidence.steps = {story.First().step};
  return evidence;
}

// What the rank's GPU did around the step: power, heat, load, memory.
void AddGpuEvidence(const Facts& facts, const Story& story, Finding* finding) {
  if (story.rank->gpus.empty()) return;
  const int32_t index = story.rank->gpus.front();
  const model::EntityDef* gpu = facts.Gpu(index);
  const model::Curve* power = facts.GpuCurve(index, "power_w");
  if (gpu == nullptr || power == nullptr) return;
  const Interval recorded = facts.run().Recorded();
  const Interval around{.begin_ns = std::max(story.First().t_ns - kGpuBeforeNs, recorded.begin_ns),
                        .end_ns = std::min(story.First().t_ns + kGpuAfterNs, recorded.end_ns)};
  if (around.end_ns <= around.begin_ns) return;
  Evidence evidence{.series = facts.SeriesName(*power), .interval = around};
  for (const std::string_view field :
       {"power_w", "temperature_c", "utilization_ratio", "memory_used_bytes"}) {
    const auto mean = facts.Over(gpu->id, field, std::span(&around, 1)).Mean();
    if (mean) evidence.values.emplace_back(field, *mean);
  }
  evidence.note = Say("the GPU around that moment", "该时刻前后的 GPU 状态");
  if (!evidence.values.empty()) finding->evidence.push_back(std::move(evidence));
}

// The first trouble of the GPU shortly before: then the numbers may be its fault.
const model::Incident* HardwareBefore(const Facts& facts, const Story& story) {
  for (const model::Incident& incident : facts.report().incidents) {
    const bool gpu = incident.kind.compare(0, 4, "gpu.") == 0 && incident.kind != "gpu.others";
    const int64_t before_ns = story.First().t_ns - incident.t_ns;
    if (gpu && before_ns >= 0 && before_ns <= kHardwareBeforeNs) return &incident;
  }
  return nullptr;
}

std::vector<model::Advice> HowToStayFinite() {
  return {
      {.framework = "paddle",
       .text = Say("Clip gradients, lower the learning rate, and let the checker name the layer.",
                   "裁剪梯度、降低学习率，并用检查器找出出错的层。"),
       .code = "opt = paddle.optimizer.AdamW(lr, parameters=model.parameters(), "
               "grad_clip=paddle.nn.ClipGradByGlobalNorm(1.0))\n"
               "paddle.set_flags({\"FLAGS_check_nan_inf\": 1})  # one short run, it is slow"},
      {.framework = "tensorflow",
       .text = Say("Clip gradients, lower the learning rate, and stop at the first NaN.",
                   "裁剪梯度、降低学习率，并在第一个 NaN 处停止训练。"),
       .code = "opt = keras.optimizers.Adam(lr, clipnorm=1.0)\n"
               "model.fit(..., callbacks=[keras.callbacks.TerminateOnNaN()])\n"
               "tf.debugging.enable_check_numerics()  # one short run, it is slow"},
      {.framework = "pytorch",
       .text = Say("Clip gradients, lower the learning rate, and let anomaly mode name the layer.",
                   "裁剪梯度、降低学习率，并用异常检测找出出错的层。"),
       .code = "torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n"
               "torch.autograd.set_detect_anomaly(True)  # one short run, it is slow"},
      {.framework = "",
       .text = Say("Go back to the last checkpoint before it, look at that batch, and stop a run "
                   "whose loss is not finite: the rest of it is lost.",
                   "回到此前最后一个检查点，检查该批次的数据；loss 不再有限时应立即停止训练，"
                   "此后的计算没有意义。"),
       .code = ""},
  };
}

// All stories of one kind (losses, or other scalars) over all ranks, the worst first.
struct Group {
  std::vector<const Story*> stories;
  size_t ranks = 0;     // that have one
  size_t of_ranks = 0;  // of the run
  // Other ranks turned at the same step: none of them is meant.
  bool together = false;
  const Story& Worst() const { return *stories.front(); }
};

Group Sorted(const std::vector<Story>& all, bool losses, size_t of_ranks) {
  Group group{.stories = {}, .of_ranks = of_ranks};
  std::set<const RankFacts*> ranks;
  for (const Story& story : all) {
    if (IsLoss(story.series.name) != losses) continue;
    group.stories.push_back(&story);
    ranks.insert(story.rank);
  }
  group.ranks = ranks.size();
  std::stable_sort(group.stories.begin(), group.stories.end(), [](const Story* a, const Story* b) {
    if (a->severity != b->severity) return a->severity > b->severity;
    return IsEarlier(a->First(), b->First());
  });
  for (const Story* story : group.stories) {
    const bool same_step = story->First().step == group.Worst().First().step;
    if (story->rank != group.Worst().rank && same_step) group.together = true;
  }
  return group;
}

model::Message CourseWords(const Story& story) {
  const size_t values = story.series.points.size();
  switch (story.course) {
    case Course::kStays:
      return Say("and stays so to the end", "并一直持续到结束");
    case Course::kOnlyAtFirst:
      return Say("and finite from the value number {} on: perhaps it was not computed before",
                 "从第 {} 个值起恢复有限：之前可能尚未计算", story.bad + 1);
    case Course::kBetween:
      return Say(
          "in {} of {} values with finite ones between them: perhaps it is not computed "
          "at each step",
          "共 {}/{} 个值，其间有有限值：可能并非每步都计算", story.bad, values);
    default:
      return Say("in {} of {} values, and finite again afterwards", "共 {}/{} 个值，之后恢复有限",
                 story.bad, values);
  }
}

model::Message Summary(const Group& group, const model::Run& run) {
  const Story& story = group.Worst();
  const model::Message place = PlaceOf(story.First(), run);
  const model::Message course = CourseWords(story);
  const std::string value = SayValue(story.First().value);
  model::Message text;
  text.en = story.rank->name + ": " + story.series.name + " is " + value + " at " + place.en +
            ", " + course.en;
  text.zh = story.rank->name + "：" + story.series.name + " 在" + place.zh + "变为 " + value +
            "，" + course.zh;
  if (group.ranks > 1) {
    const model::Message more =
        Say("; {} of {} ranks have it", "；{}/{} 个 rank 出现该情况", group.ranks, group.of_ranks);
    text.en += more.en;
    text.zh += more.zh;
  }
  std::vector<std::string> names;
  for (const Story* other : group.stories) {
    const std::string& name = other->series.name;
    const bool known =
        name == story.series.name || std::find(names.begin(), names.end(), name) != names.end();
    if (!known && names.size() < kMostNamed) names.push_back(name);
  }
  for (const std::string& name : names) {
    text.en += (&name == &names.front() ? "; also " : ", ") + name;
    text.zh += (&name == &names.front() ? "；另有 " : "、") + name;
  }
  text.en += ".";
  text.zh += "。";
  return text;
}

model::Message Explanation(const Facts& facts, const Story& story) {
  if (const model::Incident* incident = HardwareBefore(facts, story)) {
    return Say("Shortly before it a GPU had trouble ({}): wrong numbers may come from there.",
               "此前不久 GPU 出现故障（{}）：数值错误可能由此引起。", incident->text);
  }
  switch (story.course) {
    case Course::kStays:
      return Say(
          "Weights that took a NaN give no finite loss again: what was trained after this "
          "step is worthless. Usual causes are a learning rate that is too high, an "
          "overflow in half precision, a logarithm or division of 0, or bad data.",
          "权重一旦变为 NaN 就不会再得到有限的 loss：此后的训练没有意义。常见原因：学习率"
          "过高、半精度溢出、对 0 取对数或除以 0、数据有误。");
    case Course::kRecovered:
      return Say(
          "It recovered, so the weights did not take it: the step was skipped, or one "
          "batch is bad. With a mixed-precision loss scale a skipped step now and then "
          "is normal.",
          "之后恢复正常，说明权重未受影响：该步被跳过，或某个批次的数据有误。使用混合精度 "
          "loss scale 时偶尔跳过一步属正常现象。");
    default:
      return Say("Finite values follow, so the weights are well.", "之后的值有限，权重正常。");
  }
}

Finding Told(const Facts& facts, const Group& group) {
  const Story& worst = group.Worst();
  Finding finding;
  finding.severity = worst.severity;
  if (group.of_ranks == 1 || !group.together) {
    finding.rank = worst.rank->rank;
    finding.pid = worst.rank->pid;
  }
  finding.confidence = worst.course == Course::kStays && worst.at_end < 3 ? 0.8 : 0.97;
  finding.summary = Summary(group, facts.run());
  finding.explanation = Explanation(facts, worst);
  if (worst.severity != Severity::kInfo) finding.advice = HowToStayFinite();
  for (size_t i = 0; i < std::min(group.stories.size(), kMostNamed); ++i) {
    finding.evidence.push_back(BeforeEvidence(*group.stories[i]));
  }
  AddGpuEvidence(facts, worst, &finding);
  if (worst.severity != Severity::kCritical) return finding;
  double lost_gpu_s = 0;
  std::set<const RankFacts*> counted;
  for (const Story* story : group.stories) {
    if (story->severity != Severity::kCritical || !counted.insert(story->rank).second) continue;
    const int64_t lost_ns = story->rank->training.end_ns - story->First().t_ns;
    lost_gpu_s += base::SecondsFromNs(std::max<int64_t>(lost_ns, 0)) *
                  static_cast<double>(std::max<size_t>(story->rank->gpus.size(), 1));
  }
  finding.lost_gpu_s = lost_gpu_s;
  const double after_s = base::SecondsFromNs(worst.rank->training.end_ns - worst.First().t_ns);
  if (facts.duration_s() > 0) finding.gain_ratio = std::clamp(after_s / facts.duration_s(), 0., 1.);
  return finding;
}

Judgement Judge(const Facts& facts) {
  bool any = false;
  std::vector<Story> stories;
  for (const RankFacts& rank : facts.ranks()) {
    for (Story& story : StoriesOf(rank, &any)) stories.push_back(std::move(story));
  }
  if (!any) {
    return NotApplicable(
        Say("no rank tells a loss or another scalar", "没有任何 rank 报告 loss 或其他标量"));
  }
  Judgement judgement;
  for (const bool losses : {true, false}) {
    const Group group = Sorted(stories, losses, facts.ranks().size());
    if (!group.stories.empty()) judgement.findings.push_back(Told(facts, group));
  }
  return judgement;
}

}  // namespace

namespace rules {

const RuleDef kLossNotFinite = {
    .id = "loss_not_finite",
    .Title = [] { return Say("The loss is not a finite number", "loss 不是有限数"); },
    .Judge = Judge};

}  // namespace rules
}  // namespace epochmeter::diagnose
