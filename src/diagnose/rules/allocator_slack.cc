// SPDX-License-Identifier: Apache-2.0
// The allocator keeps far more device memory than the steps need at their highest: fragmentation,
// or a cache.
//
// Reserved less allocated alone says little: between steps a healthy allocator keeps all that the
// next step's activations need. So what a step needs (memory.h) is taken off as well, and what is
// left over must be much of what is reserved and of the device, in a third of the steps, all
// through the training. It is fragmentation where the allocator had to retry, still takes more, or
// what outlives a step swings by much of it; else a cache, or a pool that was taken at the start
// (TensorFlow, Paddle with a fraction): worth knowing only. So is what one odd step left behind,
// which memory_spike speaks of. False positives: a training whose steps hold far more at times,
// such as reinforcement learning between roll-outs.
#include <algorithm>
#include <array>
#include <cmath>

#include "diagnose/memory_spikes.h"
#include "diagnose/rules/all.h"
#include "diagnose/say.h"
#include "diagnose/statistics.h"

namespace epochmeter::diagnose {
namespace {

using model::Finding;
using model::Severity;

constexpr size_t kFewestPoints = 6;  // two of each third
constexpr size_t kManyPoints = 24;   // from here on the share of the steps is certain
constexpr size_t kFewestAfterSpike = 3;
constexpr size_t kFewestEpochs = 2;    // where epochs are told
constexpr double kQuantile = 2.0 / 3;  // a third of the steps has more

enum class Kind : uint8_t { kFragmented, kCache, kPool, kAfterSpike };

struct Slack {
  double unused_bytes = 0;    // in a third of the steps at least
  double reserved_bytes = 0;  // the median
  double held_bytes = 0, held_low_bytes = 0, held_high_bytes = 0;
  double need_bytes = 0;
  double retries = 0;
  double grown_bytes = 0;                 // of reserved, after warm-up
  int64_t spike_step = model::kNotKnown;  // judged are the points after it
  double Ratio() const { return unused_bytes / reserved_bytes; }
  double Swing() const { return held_high_bytes - held_low_bytes; }
};

double QuantileOf(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  return Percentile(values, q).value_or(0);
}

std::vector<AllocatorPoint> SteadyPoints(std::span<const AllocatorPoint> points) {
  std::vector<AllocatorPoint> steady;
  for (const AllocatorPoint& point : points) {
    if (point.steady && std::isfinite(point.reserved) && point.reserved > 0) {
      steady.push_back(point);
    }
  }
  return steady;
}

std::vector<double> UnusedIn(std::span<const AllocatorPoint> points, double need) {
  std::vector<double> unused;
  for (const AllocatorPoint& point : points) {
    unused.push_back(std::max(0.0, point.reserved - point.allocated - need));
  }
  return unused;
}

// In each third of the training: what comes and goes is no slack.
double LeastOfThirds(std::span<const AllocatorPoint> points, double need) {
  double least = INFINITY;
  for (size_t third = 0; third < 3; ++third) {
    const size_t begin = points.size() * third / 3, end = points.size() * (third + 1) / 3;
    least =
        std::min(least, QuantileOf(UnusedIn(points.subspan(begin, end - begin), need), kQuantile));
  }
  return least;
}

Slack Measure(const Facts& facts, const RankFacts& rank, std::span<const AllocatorPoint> points,
              double need) {
  std::vector<double> held, reserved;
  for (const AllocatorPoint& point : points) {
    held.push_back(point.allocated);
    reserved.push_back(point.reserved);
  }
  Slack slack{.unused_bytes = LeastOfThirds(points, need),
              .reserved_bytes = QuantileOf(reserved, 0.5),
              .held_bytes = QuantileOf(held, 0.5),
              .held_low_bytes = QuantileOf(held, 0.05),
              .held_high_bytes = QuantileOf(held, 0.95),
              .need_bytes = need,
              .grown_bytes = reserved.back() - reserved.front()};
  const model::Curve* retries = facts.FrameworkCurve(rank, "alloc_retries_per_s");
  if (retries != nullptr) {
    const auto column = facts.Read(retries->entity, "alloc_retries");
    if (!column.value.empty()) slack.retries = column.value.back() - column.value.front();
  }
  return slack;
}

Kind KindOf(const Slack& slack, const std::optional<DeviceRoom>& room, const Limits& limits) {
  if (slack.spike_step != model::kNotKnown) return Kind::kAfterSpike;
  const double swing = limits["allocator_slack.swing_ratio"] * slack.reserved_bytes;
  if (slack.retries > 0 || slack.grown_bytes >= swing || slack.Swing() >= swing) {
    return Kind::kFragmented;
  }
  const bool most =
      room && slack.reserved_bytes >= limits["allocator_slack.pool_ratio"] * room->limit_bytes;
  return most ? Kind::kPool : Kind::kCache;
}

std::vector<model::Advice> AdviceFor(Kind kind) {
  const model::Message text =
      kind == Kind::kFragmented
          ? Say("Let blocks grow instead of being split, and pad or bucket shapes so that freed "
                "blocks fit again.",
                "让内存段可扩展而不是被切分；对形状做填充或分桶，使释放的块能再次被使用。")
          : Say("Nothing is lost unless others need the device; then let the allocator grow with "
                "the need.",
                "除非其他任务需要该设备，否则没有损失；需要时让分配器按需增长。");
  return {{.framework = "paddle",
           .text = text,
           .code = "FLAGS_allocator_strategy=auto_growth\nFLAGS_fraction_of_gpu_memory_to_use=0"},
          {.framework = "tensorflow",
           .text = text,
           .code = "TF_FORCE_GPU_ALLOW_GROWTH=true\nTF_GPU_ALLOCATOR=cuda_malloc_async"},
          {.framework = "pytorch",
           .text = text,
           .code = "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"}};
}

model::Message Why(Kind kind, const Slack& slack) {
  if (kind == Kind::kCache) {
    return Say("It does not grow and nothing had to be retried: a cache of what was once needed.",
               "它没有增长，也没有重试：这是曾经需要过的显存缓存。");
  }
  if (kind == Kind::kAfterSpike) {
    return Say(
        "It is what step {} took, far more than the others need (memory_spike); nothing "
        "gave it back.",
        "这是第 {} 步取得的，远多于其他步骤的需求（memory_spike）；之后没有归还。",
        slack.spike_step);
  }
  if (kind == Kind::kPool) {
    return Say(
        "It is most of the device and does not change: a pool that the framework takes at "
        "the start.",
        "它占设备的大部分且不变化：这是框架启动时预先取得的显存池。");
  }
  if (slack.retries > 0) {
    return Say("The allocator had to free its cache and try again {} times: it is fragmented.",
               "分配器不得不清空缓存并重试 {} 次：显存碎片化。", SayNumber(slack.retries));
  }
  return Say(
      "What outlives a step swings between {} and {}, in blocks of mixed sizes: freed ones "
      "do not fit what comes next, so more is taken from the device ({} after warm-up).",
      "步骤之后仍被占用的显存在 {} 与 {} 之间摆动，块大小混杂：释放的块不适合后续申请，"
      "因此向设备申请了更多（预热后 {}）。",
      SayBytes(slack.held_low_bytes), SayBytes(slack.held_high_bytes),
      SayBytes(std::max(0.0, slack.grown_bytes)));
}

Finding Found(const Facts& facts, const RankFacts& rank, const Slack& slack,
              std::span<const AllocatorPoint> points) {
  const auto gpu = AllocatorGpu(facts, rank);
  const auto room = gpu ? RoomOf(facts, *gpu) : std::nullopt;
  const Kind kind = KindOf(slack, room, facts.limits());
  Finding finding;
  finding.severity = kind == Kind::kFragmented ? Severity::kWarning : Severity::kInfo;
  finding.rank = rank.rank;
  finding.pid = rank.pid;
  finding.gpu = gpu;
  finding.confidence = points.size() >= kManyPoints ? 0.85 : 0.7;
  finding.summary =
      Say("{} keeps {} of device memory reserved, and in a third of its steps {} of it ({}) are in "
          "no use even at the step's highest need.",
          "{} 保留了 {} 显存；在三分之一的步骤中，即使在该步需求最高时也有 {}（{}）未被使用。",
          rank.name, SayBytes(slack.reserved_bytes), SayBytes(slack.unused_bytes),
          SayPercent(slack.Ratio()));
  finding.explanation = Why(kind, slack);
  finding.advice = AdviceFor(kind);
  finding.evidence.push_back(
      {.series = rank.name + " reserved_bytes",
       .interval = {.begin_ns = points.front().t_ns, .end_ns = points.back().t_ns},
       .values = {{"unused_bytes", slack.unused_bytes},
                  {"unused_ratio", slack.Ratio()},
                  {"reserved_p50_bytes", slack.reserved_bytes},
                  {"allocated_p50_bytes", slack.held_bytes},
                  {"allocated_p5_bytes", slack.held_low_bytes},
                  {"allocated_p95_bytes", slack.held_high_bytes},
                  {"step_need_bytes", slack.need_bytes},
                  {"alloc_retries", slack.retries}}});
  if (room) finding.evidence.back().values.emplace_back("device_bytes", room->limit_bytes);
  return finding;
}

bool LongEnough(const RankFacts& rank, size_t points) {
  if (points < kFewestPoints) return false;
  const auto epochs = std::count_if(
      rank.rows.begin(), rank.rows.end(),
      [](const model::EpochRow* row) { return row->epoch != model::kNoEpoch && row->complete; });
  const bool told = !rank.rows.empty() && rank.rows.front()->epoch != model::kNoEpoch;
  return !told || static_cast<size_t>(epochs) >= kFewestEpochs;
}

bool Matters(const Facts& facts, const RankFacts& rank, const Slack& slack) {
  const auto gpu = AllocatorGpu(facts, rank);
  const auto room = gpu ? RoomOf(facts, *gpu) : std::nullopt;
  const bool much = !room || slack.unused_bytes >=
                                 facts.limits()["allocator_slack.device_ratio"] * room->limit_bytes;
  return much && slack.Ratio() >= facts.limits()["allocator_slack.unused_ratio"];
}

// One odd step hides in the peak what the others need: what was kept since it, by their need.
std::optional<Finding> AfterSpike(const Facts& facts, const RankFacts& rank,
                                  std::span<const AllocatorPoint> all) {
  const model::Curve* peak = facts.FrameworkCurve(rank, "max_allocated_bytes");
  if (peak == nullptr) return {};
  const std::vector<Spike> spikes = FindSpikes(facts, rank, all, *peak);
  if (spikes.empty()) return {};
  const Spike& last = spikes.back();
  std::vector<AllocatorPoint> points = SteadyPoints(all);
  std::erase_if(points,
                [&](const AllocatorPoint& point) { return point.t_ns <= last.interval.end_ns; });
  if (points.size() < kFewestAfterSpike) return {};
  Slack slack = Measure(facts, rank, points, spikes.front().usual_bytes);
  const size_t at = StepOf(rank, last);
  slack.spike_step = StepNumber(rank.steps[at], at + 1);
  if (!Matters(facts, rank, slack)) return {};
  return Found(facts, rank, slack, points);
}

Judgement Judge(const Facts& facts) {
  Judgement judgement;
  bool any = false;
  for (const RankFacts& rank : facts.ranks()) {
    const std::vector<AllocatorPoint> all = AllocatorPoints(facts, rank);
    const std::vector<AllocatorPoint> points = SteadyPoints(all);
    const auto need = StepNeed(all);
    if (!need || !LongEnough(rank, points.size())) continue;
    any = true;
    const Slack slack = Measure(facts, rank, points, *need);
    if (Matters(facts, rank, slack)) {
      judgement.findings.push_back(Found(facts, rank, slack, points));
    } else if (const auto kept = AfterSpike(facts, rank, all)) {
      judgement.findings.push_back(*kept);
    }
  }
  FoldRanks("unused_bytes", &judgement.findings);
  if (any) return judgement;
  return NotApplicable(
      Say("no rank tells what its allocator has reserved and its peak in at least {} steps after "
          "warm-up, over two epochs",
          "没有任何 rank 在预热之后的至少 {} 步、两轮中报告分配器保留的显存和峰值", kFewestPoints));
}

}  // namespace

namespace rules {

const RuleDef kAllocatorSlack = {.id = "allocator_slack",
                                 .Title =
                                     [] {
                                       return Say(
                                           "The allocator keeps far more memory than is used",
                                           "分配器保留的显存远多于使用量");
                                     },
                                 .Judge = Judge};

}  // namespace rules
}  // namespace epochmeter::diagnose
