// SPDX-License-Identifier: Apache-2.0
// The loss jumped up. Needs a loss told at some sixty steps or more.
//
// Each value is compared with an exponentially weighted mean of those before it: it is a jump when
// several values in a row lie many scaled MADs above that, half of the mean above it, and by a part
// of the level at which the training began (so that noise around a loss of nearly 0 is none).
// The beginning of the training is left out. False positives: single bad batches (one value), noisy
// losses, warm restarts (the learning rate rose by as much: info), losses of adversaries, which
// swing by nature (info), a curriculum that becomes harder (a new level: said so).
#include <algorithm>
#include <cmath>
#include <deque>
#include <utility>

#include "diagnose/rules/all.h"
#include "diagnose/say.h"
#include "diagnose/scalars.h"

namespace epochmeter::diagnose {
namespace {

using model::Finding;
using model::Severity;

constexpr size_t kFewestValues = 60;
constexpr size_t kFirstValues = 10;  // whose median is the level of the beginning
constexpr size_t kWindow = 64;       // of residuals for the MAD
constexpr double kMeanWeight = 2.0 / 51;
constexpr double kMadToSigma = 1.4826;
constexpr size_t kToSettle = 20;    // values after a jump that tell how it went on
constexpr size_t kNewLevel = 1000;  // values after which a level is what the training has now
constexpr double kFarRatio = 10;    // times the mean: worth a warning even right at the end

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

struct Jump {
  size_t first = 0, last = 0;  // places of its first value and of the last above the mean
  double mean = 0, scale = 0, peak = 0;
  bool recovered = false;
};

// Walks over the finite values of a loss.
class JumpFinder {
 public:
  JumpFinder(const std::vector<ScalarPoint>& points, const Limits& limits)
      : points_(points),
        deviations_(limits["loss_spike.deviations"]),
        values_(static_cast<size_t>(std::max(limits["loss_spike.values"], 1.0))),
        mean_ratio_(limits["loss_spike.mean_ratio"]),
        first_ratio_(limits["loss_spike.first_ratio"]) {
    std::vector<double> first;
    for (size_t i = 0; i < std::min(kFirstValues, points.size()); ++i) {
      first.push_back(points[i].value);
    }
    first_level_ = std::fabs(Median(std::move(first)));
  }

  std::vector<Jump> Find() {
    const size_t from = std::max(kFewestValues - kFirstValues, points_.size() / 10);
    for (size_t i = 0; i < points_.size(); ++i) {
      if (i == 0) mean_ = points_[0].value;
      if (open_) {
        Follow(i);
      } else if (i >= from && IsHigh(points_[i].value)) {
        if (++high_ == values_) Open(i);
      } else {
        high_ = 0;
        Accept(points_[i].value);
      }
    }
    if (open_) jumps_.push_back(jump_);
    return std::move(jumps_);
  }

 private:
  bool IsHigh(double value) const {
    const double rise = value - mean_;
    const bool far = rise > mean_ratio_ * std::fabs(mean_) && rise > first_ratio_ * first_level_;
    return far && rise > deviations_ * Scale();
  }
  double Scale() const {
    std::vector<double> sizes;
    sizes.reserve(residuals_.size());
    for (const double residual : residuals_) sizes.push_back(std::fabs(residual));
    return kMadToSigma * Median(std::move(sizes));
  }
  void Accept(double value) {
    residuals_.push_back(value - mean_);
    if (residuals_.size() > kWindow) residuals_.pop_front();
    mean_ += kMeanWeight * (value - mean_);
  }
  void Open(size_t i) {
    open_ = true;
    low_ = 0;
    jump_ = {.first = i + 1 - values_, .last = i, .mean = mean_, .scale = Scale()};
    for (size_t at = jump_.first; at <= i; ++at) {
      jump_.peak = std::max(jump_.peak, points_[at].value);
    }
  }
  // It is over when as many values in a row as began it are back near the mean.
  void Follow(size_t i) {
    const double value = points_[i].value;
    jump_.peak = std::max(jump_.peak, value);
    const double half = (jump_.peak - jump_.mean) / 4;
    const bool low = value - jump_.mean < std::max(half, deviations_ * jump_.scale);
    low_ = low ? low_ + 1 : 0;
    if (!low) jump_.last = i;
    jump_.recovered = low_ >= values_;
    if (!jump_.recovered && i - jump_.first < kNewLevel) return;
    jumps_.push_back(jump_);
    open_ = false;
    high_ = 0;
    if (!jump_.recovered) {
      mean_ = value;
      residuals_.clear();
    }
  }

  const std::vector<ScalarPoint>& points_;
  const double deviations_;
  const size_t values_;
  const double mean_ratio_, first_ratio_;
  double first_level_ = 0, mean_ = 0;
  std::deque<double> residuals_;
  size_t high_ = 0, low_ = 0;
  bool open_ = false;
  Jump jump_;
  std::vector<Jump> jumps_;
};

struct Story {
  const RankFacts* rank = nullptr;
  std::string name;
  std::vector<ScalarPoint> points;  // the finite ones
  std::vector<Jump> jumps;
  size_t worst = 0;
  Severity severity = Severity::kInfo;
  std::optional<double> rate_before, rate_after;  // of learning, around the worst jump

  const Jump& Worst() const { return jumps[worst]; }
  bool RateRose() const { return rate_before && *rate_after > 3 * *rate_before; }
  bool NearTheEnd() const { return points.size() - Worst().first < kToSettle; }
};

// The learning rate at the last step before and the highest soon after.
void AddRates(const std::vector<ScalarSeries>& all, Story* story) {
  const int64_t t_ns = story->points[story->Worst().first].t_ns;
  for (const ScalarSeries& series : all) {
    if (!IsLearningRate(series.name)) continue;
    const auto at = std::partition_point(series.points.begin(), series.points.end(),
                                         [t_ns](const ScalarPoint& p) { return p.t_ns < t_ns; });
    const auto place = static_cast<size_t>(at - series.points.begin());
    // A warm restart takes some steps until the loss shows it.
    const size_t back = std::min(place, kToSettle);
    if (back == 0) continue;
    double highest = 0;
    for (size_t i = place - back; i < std::min(place + kToSettle, series.points.size()); ++i) {
      if (std::isfinite(series.points[i].value))
        highest = std::max(highest, series.points[i].value);
    }
    const double before = series.points[place - back].value;
    if (!(before > 0)) continue;
    story->rate_before = before;
    story->rate_after = highest;
    return;
  }
}

bool IsOfAdversaries(std::string_view name, const std::vector<ScalarSeries>& all) {
  const auto of_one = [](std::string_view text) {
    for (const std::string_view word : {"disc", "gen", "critic", "adv", "gan", "_d", "_g", "d_",
                                        "g_", "lossD", "lossG", "netD", "netG"}) {
      if (text.find(word) != std::string_view::npos) return true;
    }
    return false;
  };
  const auto count = std::count_if(all.begin(), all.end(), [&](const ScalarSeries& series) {
    return IsLoss(series.name) && of_one(series.name);
  });
  return of_one(name) && count >= 2;
}

Severity SeverityOfStory(const Story& story, bool adversaries) {
  const Jump& jump = story.Worst();
  if (jump.recovered || adversaries || story.RateRose()) return Severity::kInfo;
  if (!story.NearTheEnd()) return Severity::kWarning;
  const bool far = jump.peak > kFarRatio * std::fabs(jump.mean) && jump.mean > 0;
  return far ? Severity::kWarning : Severity::kInfo;
}

// The jump that stays counts most, then the highest.
size_t WorstOf(const std::vector<Jump>& jumps) {
  size_t worst = 0;
  for (size_t i = 1; i < jumps.size(); ++i) {
    const bool stays = !jumps[i].recovered && jumps[worst].recovered;
    const bool alike = jumps[i].recovered == jumps[worst].recovered;
    if (stays || (alike && jumps[i].peak - jumps[i].mean > jumps[worst].peak - jumps[worst].mean)) {
      worst = i;
    }
  }
  return worst;
}

void AddStories(const Facts& facts, const RankFacts& rank, bool* any, std::vector<Story>* stories) {
  std::vector<ScalarSeries> all = ScalarsOf(rank);
  for (ScalarSeries& series : all) {
    const bool often =
        series.told_by == model::EventKind::kStep || series.told_by == model::EventKind::kScalar;
    if (!often || !IsLoss(series.name) || IsOfEvaluation(series)) continue;
    Story story{.rank = &rank, .name = series.name};
    story.points = std::move(series.points);  // of millions of steps a copy is much
    std::erase_if(story.points, [](const ScalarPoint& p) { return !std::isfinite(p.value); });
    if (story.points.size() < kFewestValues) continue;
    *any = true;
    story.jumps = JumpFinder(story.points, facts.limits()).Find();
    if (story.jumps.empty()) continue;
    story.worst = WorstOf(story.jumps);
    AddRates(all, &story);
    story.severity = SeverityOfStory(story, IsOfAdversaries(series.name, all));
    stories->push_back(std::move(story));
  }
}

model::Message Summary(const Facts& facts, const Story& story, size_t ranks) {
  const Jump& jump = story.Worst();
  const model::Message place = PlaceOf(story.points[jump.first], facts.run());
  model::Message course = Say(" and did not come down again", "，之后没有恢复");
  if (jump.recovered) {
    course = Say(" and came down again after {} values", "，{} 个值之后恢复",
                 jump.last - jump.first + 1);
  } else if (story.NearTheEnd()) {
    course = Say(" and the run ended soon afterwards", "，随后运行结束");
  }
  model::Message text;
  text.en = fmt::format("{}: {} jumped from {} to {} at {}{}", story.rank->name, story.name,
                        SayNumber(jump.mean), SayNumber(jump.peak), place.en, course.en);
  text.zh = fmt::format("{}：{} 在 {} 从 {} 跳升至 {}{}", story.rank->name, story.name, place.zh,
                        SayNumber(jump.mean), SayNumber(jump.peak), course.zh);
  if (story.jumps.size() > 1) {
    text.en += fmt::format("; {} jumps in all", story.jumps.size());
    text.zh += fmt::format("；共 {} 次跳升", story.jumps.size());
  }
  if (story.RateRose()) {
    text.en += fmt::format("; the learning rate rose from {} to {}", SayNumber(*story.rate_before),
                           SayNumber(*story.rate_after));
    text.zh += fmt::format("；学习率由 {} 升至 {}", SayNumber(*story.rate_before),
                           SayNumber(*story.rate_after));
  }
  if (ranks > 1) {
    text.en += fmt::format("; {} of {} ranks have it", ranks, facts.ranks().size());
    text.zh += fmt::format("；{}/{} 个 rank 出现该情况", ranks, facts.ranks().size());
  }
  text.en += ".";
  text.zh += "。";
  return text;
}

std::vector<model::Advice> HowToCalm() {
  return {
      {.framework = "paddle",
       .text = Say("Clip gradients, and let the learning rate rise slowly at the start.",
                   "裁剪梯度，并在开始时缓慢提高学习率。"),
       .code = "lr = paddle.optimizer.lr.LinearWarmup(lr, warmup_steps=1000, start_lr=0., "
               "end_lr=lr)\n"
               "opt = paddle.optimizer.AdamW(lr, parameters=model.parameters(), "
               "grad_clip=paddle.nn.ClipGradByGlobalNorm(1.0))"},
      {.framework = "tensorflow",
       .text = Say("Clip gradients, and let the learning rate rise slowly at the start.",
                   "裁剪梯度，并在开始时缓慢提高学习率。"),
       .code = "lr = keras.optimizers.schedules.CosineDecay(0., steps, warmup_target=lr, "
               "warmup_steps=1000)\n"
               "opt = keras.optimizers.AdamW(lr, global_clipnorm=1.0)"},
      {.framework = "pytorch",
       .text = Say("Clip gradients, and let the learning rate rise slowly at the start.",
                   "裁剪梯度，并在开始时缓慢提高学习率。"),
       .code = "torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n"
               "torch.optim.lr_scheduler.LinearLR(opt, start_factor=0.01, total_iters=1000)"},
      {.framework = "",
       .text = Say("Look at the batches of these steps; where the loss does not come down, go back "
                   "to the checkpoint before and leave them out.",
                   "检查这些步骤的批次数据；若 loss 不再下降，回到之前的检查点并跳过这些批次。"),
       .code = {}},
  };
}

Finding Told(const Facts& facts, const Story& story, size_t ranks) {
  const Jump& jump = story.Worst();
  Finding finding;
  finding.severity = story.severity;
  if (ranks == 1) {
    finding.rank = story.rank->rank;
    finding.pid = story.rank->pid;
  }
  finding.confidence = jump.recovered ? 0.9 : 0.75;
  finding.summary = Summary(facts, story, ranks);
  finding.explanation =
      Say("Compared with a weighted mean of the values before, {} scaled deviations above it and "
          "more for {} values in a row. A curriculum or a new data set that is harder looks the "
          "same.",
          "与此前数值的加权平均相比，连续 {1} 个值高出 {0} "
          "倍标准化偏差以上。更难的课程学习阶段或新数据集"
          "也会有类似表现。",
          SayNumber(facts.limits()["loss_spike.deviations"]),
          SayNumber(facts.limits()["loss_spike.values"]));
  if (story.severity == Severity::kWarning) finding.advice = HowToCalm();
  model::Evidence evidence{
      .series = story.rank->name + " " + story.name,
      .interval = {.begin_ns = story.points[jump.first].t_ns,
                   .end_ns = story.points[jump.last].t_ns},
      .values = {{"mean_before", jump.mean}, {"deviation", jump.scale}, {"peak", jump.peak}},
      .note = {},
      .steps = {}};
  if (story.rate_before) {
    evidence.values.emplace_back("learning_rate_before", *story.rate_before);
    evidence.values.emplace_back("learning_rate_after", *story.rate_after);
  }
  for (const Jump& each : story.jumps) {
    const int64_t step = story.points[each.first].step;
    if (step != model::kNotKnown && evidence.steps.size() < 8) evidence.steps.push_back(step);
  }
  finding.evidence.push_back(std::move(evidence));
  return finding;
}

Judgement Judge(const Facts& facts) {
  bool any = false;
  std::vector<Story> stories;
  for (const RankFacts& rank : facts.ranks()) AddStories(facts, rank, &any, &stories);
  if (!any) {
    return NotApplicable(Say("no rank tells a loss at {} steps or more",
                             "没有任何 rank 在 {} 个以上步骤中报告 loss", kFewestValues));
  }
  if (stories.empty()) return {};
  const auto worst =
      std::max_element(stories.begin(), stories.end(), [](const Story& a, const Story& b) {
        if (a.severity != b.severity) return a.severity < b.severity;
        return a.points[a.Worst().first].t_ns > b.points[b.Worst().first].t_ns;
      });
  std::vector<const RankFacts*> ranks;
  for (const Story& story : stories) {
    if (ranks.empty() || ranks.back() != story.rank) ranks.push_back(story.rank);
  }
  Judgement judgement;
  judgement.findings.push_back(Told(facts, *worst, ranks.size()));
  return judgement;
}

}  // namespace

namespace rules {

const RuleDef kLossSpike = {.id = "loss_spike",
                            .Title = [] { return Say("The loss jumped up", "loss 突然跳升"); },
                            .Judge = Judge};

}  // namespace rules
}  // namespace epochmeter::diagnose
