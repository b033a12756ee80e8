// SPDX-License-Identifier: Apache-2.0
// The data loader's workers take more and more memory while the process that trains does not.
//
// Needs the workers' memory and number beside the main process's, as a live recording of a rank has
// them: the process tree alone does not tell whose memory grows. Judged is the memory of a worker,
// the mean over those that live, at times with as many of them as there usually are: its floor
// after warm-up must rise for good (trend.h). Resident and private memory of a forked worker count
// the parent's pages from the start, so pages that are copied on write add nothing; what levels off
// or starts anew with an epoch's workers is none. Pages of mapped data sets are resident, too:
// where private memory is told it must grow as well. False positives: a worker that caches what it
// loads.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/strings.h"
#include "diagnose/host_room.h"
#include "diagnose/memory.h"
#include "diagnose/own_gpus.h"
#include "diagnose/rules/all.h"
#include "diagnose/say.h"
#include "diagnose/statistics.h"

namespace epochmeter::diagnose {
namespace {

using model::Curve;
using model::Finding;
using model::Severity;

// The processes of one rank.
struct Loader {
  std::optional<int32_t> rank;
  const Curve* workers = nullptr;  // how many
  const Curve* memory = nullptr;   // of all of them, resident
  const Curve* anon = nullptr;     // private; may be null
  const Curve* main = nullptr;     // of the process that trains; may be null
};

std::vector<Loader> LoadersOf(const Facts& facts) {
  std::vector<Loader> loaders;
  for (const model::EntityDef& entity : facts.run().entities) {
    if (entity.scope != model::Scope::kProcess) continue;
    Loader loader{.workers = facts.FindCurve(entity.id, "workers"),
                  .memory = facts.FindCurve(entity.id, "worker_rss_bytes"),
                  .anon = facts.FindCurve(entity.id, "worker_anon_bytes"),
                  .main = facts.FindCurve(entity.id, "rank_rss_bytes")};
    if (loader.workers == nullptr || loader.memory == nullptr) continue;
    if (const auto rank = base::ParseUint(Find(entity.labels, "rank")); rank && *rank < INT32_MAX) {
      loader.rank = static_cast<int32_t>(*rank);
    }
    loaders.push_back(loader);
  }
  return loaders;
}

// How many there usually are while steps are made; nothing without any.
double UsualCount(const Curve& workers, const std::vector<model::Interval>& judged) {
  std::vector<double> counts;
  size_t at = 0;
  for (size_t i = 0; i < workers.points.t_ns.size(); ++i) {
    while (at < judged.size() && judged[at].end_ns < workers.points.t_ns[i]) ++at;
    if (at == judged.size()) break;
    const double value = workers.points.value[i];
    if (judged[at].Contains(workers.points.t_ns[i]) && std::isfinite(value)) {
      counts.push_back(value);
    }
  }
  std::sort(counts.begin(), counts.end());
  return Percentile(counts, 0.5).value_or(0);
}

// Memory of a worker, where there are as many as usual.
std::vector<LevelPoint> OfAWorker(const RankFacts& clock, const Loader& loader, double usual) {
  std::vector<LevelPoint> points;
  const auto& counts = loader.workers->points;
  size_t at = 0;
  for (LevelPoint point : LevelPoints(clock, *loader.memory)) {
    while (at + 1 < counts.t_ns.size() && counts.t_ns[at + 1] <= point.t_ns) ++at;
    const bool known = at < counts.t_ns.size() && counts.t_ns[at] <= point.t_ns;
    if (!known || !(std::abs(counts.value[at] - usual) < 0.5)) continue;
    point.value /= usual;
    points.push_back(point);
  }
  return points;
}

std::vector<model::Advice> HowToStop() {
  const model::Message keep = Say(
      "Keep samples in arrays (NumPy, Arrow), not in Python lists or dicts, and do not store "
      "what __getitem__ made. Workers that start anew each epoch give their memory back.",
      "样本用数组（NumPy、Arrow）保存，不用 Python 列表或字典；不要保留 __getitem__ 产生的对象。"
      "每轮重新启动的工作进程会归还内存。");
  return {
      {.framework = "paddle",
       .text = keep,
       .code = "self.items = np.array(items)  # not: a list of str or dict\n"
               "paddle.io.DataLoader(dataset, num_workers=4, persistent_workers=False)"},
      {.framework = "tensorflow",
       .text = Say("Build the dataset once, outside the loop over epochs; Python generators hold "
                   "what they yield in lists.",
                   "数据集只在各轮循环之外构建一次；Python 生成器不要把产出的对象保存在列表中。"),
       .code = "keras.utils.PyDataset(workers=2, use_multiprocessing=True, max_queue_size=4)"},
      {.framework = "pytorch",
       .text = keep,
       .code = "self.items = np.array(items)  # not: a list of str or dict\n"
               "DataLoader(dataset, num_workers=4, persistent_workers=False)"},
  };
}

struct Grown {
  Loader loader;
  HostGrowth growth;
  double workers = 0;
  std::optional<double> main_gain;
  bool by_steps = false;
};

// Nothing when it can't be judged.
std::optional<Grown> JudgeLoader(const Facts& facts, const RankFacts& clock,
                                 const std::vector<model::Interval>& judged, const Loader& loader) {
  Grown grown{.loader = loader, .by_steps = !clock.steps.empty()};
  grown.workers = std::round(UsualCount(*loader.workers, judged));
  if (grown.workers < 1) return {};
  std::vector<LevelPoint> points = OfAWorker(clock, loader, grown.workers);
  if (points.size() < kFewestTrendSamples) return {};
  const double least =
      std::max(facts.limits()["worker_memory_growth.least_bytes"],
               facts.limits()["worker_memory_growth.growth_ratio"] * points.front().value);
  grown.growth = JudgeHostLevel(facts, clock, std::move(points), least);
  if (!grown.growth.trend.grows()) return grown;
  grown.main_gain = GainOf(loader.main, grown.growth.interval);
  const double total = grown.growth.trend.growth * grown.workers;
  const bool main_too = grown.main_gain.value_or(0) >= total;
  const auto anon_gain = GainOf(loader.anon, grown.growth.interval);
  const bool mapped = anon_gain && *anon_gain < total / 2;
  if (main_too || mapped) grown.growth.trend.kind = TrendKind::kUnsteady;
  return grown;
}

Finding Found(const Facts& facts, const Grown& grown) {
  const Trend& trend = grown.growth.trend;
  const double first = grown.growth.floors.front().lowest.value;
  const double last = grown.growth.floors.back().lowest.value;
  Finding finding;
  finding.severity = Severity::kWarning;
  finding.rank = grown.loader.rank;
  finding.confidence = grown.growth.epochs_passed > 0 ? 0.85 : 0.7;
  finding.summary = Say("Each of {:.0f} loader workers grew from {} to {}, {} in all.",
                        "{:.0f} 个数据加载进程各自从 {} 增至 {}，合计增加 {}。", grown.workers,
                        SayBytes(first), SayBytes(last), SayBytes(trend.growth * grown.workers));
  finding.explanation =
      grown.main_gain
          ? Say("The process that trains gained {} meanwhile. {} ends of epochs did not give it "
                "back. A worker that caches what it loads looks the same until its cache is full.",
                "同期训练主进程增加了 {}；其间 {} 轮结束时也未归还。缓存所读数据的进程在缓存填满前"
                "看起来也是如此。",
                SayBytes(*grown.main_gain), grown.growth.epochs_passed)
          : Say("{} ends of epochs did not give it back. A worker that caches what it loads looks "
                "the same until its cache is full.",
                "其间 {} 轮结束时也未归还。缓存所读数据的进程在缓存填满前看起来也是如此。",
                grown.growth.epochs_passed);
  finding.advice = HowToStop();
  model::Evidence evidence{
      .series = facts.SeriesName(*grown.loader.memory),
      .interval = grown.growth.interval,
      .values = {{"growth_bytes", trend.growth * grown.workers},
                 {"workers", grown.workers},
                 {"first_floor_bytes", first},
                 {"last_floor_bytes", last}},
      .note = Say("floors are of one worker, the mean of all", "最低值为单个进程的平均值")};
  const std::string unit = grown.by_steps ? "_bytes_per_step" : "_bytes_per_s";
  evidence.values.emplace_back("slope" + unit, trend.slope);
  if (grown.main_gain) evidence.values.emplace_back("main_growth_bytes", *grown.main_gain);
  finding.evidence.push_back(std::move(evidence));
  return finding;
}

Judgement Judge(const Facts& facts) {
  RankFacts whole;
  const RankFacts& clock = ClockOf(facts, &whole);
  const std::vector<model::Interval> judged = JudgedTime(clock);
  const std::vector<Loader> loaders = LoadersOf(facts);
  Judgement judgement;
  bool any = false;
  for (const Loader& loader : loaders) {
    const auto grown = JudgeLoader(facts, clock, judged, loader);
    if (!grown) continue;
    any = true;
    if (grown->growth.trend.grows()) judgement.findings.push_back(Found(facts, *grown));
  }
  FoldRanks("growth_bytes", &judgement.findings);
  if (any) return judgement;
  if (loaders.empty()) {
    return NotApplicable(
        Say("memory of the loader's workers was not recorded apart from the process tree",
            "没有在进程树之外单独记录数据加载进程的内存"));
  }
  return NotApplicable(Say("no rank has loader workers in {} samples after warm-up",
                           "没有任何 rank 在预热之后有 {} 个含数据加载进程的样本",
                           kFewestTrendSamples));
}

}  // namespace

namespace rules {

const RuleDef kWorkerMemoryGrowth = {
    .id = "worker_memory_growth",
    .Title = [] { return Say("Loader workers take more and more memory", "数据加载进程内存增长"); },
    .Judge = Judge};

}  // namespace rules
}  // namespace epochmeter::diagnose
