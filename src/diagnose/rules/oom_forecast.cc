// SPDX-License-Identifier: Apache-2.0
// At the rate at which device memory grows, a step will not fit any more: which one, and when.
//
// Only of growth that gpu_memory_leak is sure of, by the allocator. The line through the floors is
// drawn on to where what is held, what a step needs beyond it (memory.h) and what is on the device
// beside the allocator come to the device's memory; its interval is that of the slope. False
// positives: growth that ends by itself, such as a buffer that fills.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "diagnose/leak.h"
#include "diagnose/rules/all.h"
#include "diagnose/say.h"

namespace epochmeter::diagnose {
namespace {

using model::Event;
using model::EventKind;
using model::Finding;
using model::Severity;

constexpr double kFarthestX = 1e15;  // beyond, steps are no numbers any more

struct Forecast {
  double limit_bytes = 0, room_bytes = 0;  // of the device; of what may be held
  double need_bytes = 0, beside_bytes = 0;
  double x = 0, x_low = 0, x_high = 0;  // steps done when it is met
  double last_x = 0;
  int64_t last_t_ns = 0;
};

std::optional<Forecast> ForecastOf(const Facts& facts, const DeviceGrowth& growth) {
  if (!growth.gpu || !growth.by_steps || growth.points.empty()) return {};
  const auto room = RoomOf(facts, *growth.gpu);
  if (!room) return {};
  Forecast forecast{.limit_bytes = room->limit_bytes,
                    .last_x = growth.points.back().x,
                    .last_t_ns = growth.points.back().t_ns};
  forecast.need_bytes = StepNeed(AllocatorPoints(facts, *growth.rank)).value_or(0);
  forecast.beside_bytes = BesideAllocator(facts, *growth.rank, *growth.gpu).value_or(0);
  forecast.room_bytes = forecast.limit_bytes - forecast.need_bytes - forecast.beside_bytes;
  const Trend& trend = growth.trend;
  const double left = forecast.room_bytes - trend.at_value;
  if (!(left > 0) || !(trend.slope > 0)) return {};
  forecast.x = trend.at_x + left / trend.slope;
  forecast.x_low = trend.at_x + left / std::max(trend.slope_high, trend.slope);
  forecast.x_high = trend.slope_low > 0 ? trend.at_x + left / trend.slope_low : INFINITY;
  if (forecast.x > kFarthestX) return {};
  return forecast;
}

// Steps that the training plans in all; nothing when it does not say.
std::optional<double> PlannedSteps(const RankFacts& rank) {
  std::optional<double> planned;
  const auto a_epoch = StepsAnEpoch(rank);
  for (const Event* event : rank.events) {
    if (event->kind != EventKind::kTrainBegin) continue;
    if (const auto epochs = event->Number("epochs"); epochs && a_epoch)
      planned = *epochs * *a_epoch;
    if (const auto steps = event->Number("steps"); steps && *steps > 0) planned = *steps;
  }
  return planned;
}

bool RanOut(const RankFacts& rank) {
  return std::any_of(rank.events.begin(), rank.events.end(), [](const Event* event) {
    return event->kind == EventKind::kException &&
           event->name.find("OutOfMemory") != std::string::npos;
  });
}

// The number that the training will give to the step after `x` have ended: it does not fit.
double NumberOf(const RankFacts& rank, double x) {
  double done = 0;
  for (const TrainStep& step : rank.steps) done += step.steps;
  const double last = static_cast<double>(StepNumber(rank.steps.back(), rank.steps.size()));
  return last + std::ceil(x - done);
}

Severity SeverityFor(const RankFacts& rank, const Forecast& forecast, double seconds,
                     const Limits& limits) {
  if (rank.ended) return Severity::kInfo;
  if (const auto planned = PlannedSteps(rank)) {
    return forecast.x <= *planned ? Severity::kWarning : Severity::kInfo;
  }
  return seconds <= limits["oom_forecast.horizon_s"] ? Severity::kWarning : Severity::kInfo;
}

model::Evidence EvidenceOf(const Facts& facts, const DeviceGrowth& growth, const Forecast& forecast,
                           std::optional<double> rate) {
  const RankFacts& rank = *growth.rank;
  model::Evidence evidence{
      .series = facts.SeriesName(*growth.curve),
      .interval = {.begin_ns = growth.floors.front().interval.begin_ns,
                   .end_ns = growth.floors.back().interval.end_ns},
      .values = {{"limit_step", NumberOf(rank, forecast.x)},
                 {"limit_step_low", NumberOf(rank, forecast.x_low)}},
      .note = Say("the line through the floors, drawn on to the device's memory",
                  "将各窗口最低值的直线延长到设备的显存上限")};
  if (std::isfinite(forecast.x_high)) {
    evidence.values.emplace_back("limit_step_high", NumberOf(rank, forecast.x_high));
  }
  evidence.values.emplace_back("limit_bytes", forecast.limit_bytes);
  evidence.values.emplace_back("step_need_bytes", forecast.need_bytes);
  evidence.values.emplace_back("beside_allocator_bytes", forecast.beside_bytes);
  evidence.values.emplace_back("held_bytes", growth.points.back().value);
  evidence.values.emplace_back("slope_bytes_per_step", growth.trend.slope);
  if (rate) evidence.values.emplace_back("limit_in_s", (forecast.x - forecast.last_x) / *rate);
  if (const auto a_epoch = StepsAnEpoch(rank)) {
    evidence.values.emplace_back("limit_epoch", std::floor(forecast.x / *a_epoch));
  }
  return evidence;
}

Finding Found(const Facts& facts, const DeviceGrowth& growth, const Forecast& forecast) {
  const RankFacts& rank = *growth.rank;
  const auto rate = StepsASecond(rank);
  const double seconds = rate ? std::max(0.0, (forecast.x - forecast.last_x) / *rate) : INFINITY;
  Finding finding;
  finding.severity = SeverityFor(rank, forecast, seconds, facts.limits());
  finding.rank = rank.rank;
  finding.pid = rank.pid;
  finding.gpu = growth.gpu;
  finding.confidence = growth.confidence;
  const auto number = [&](double x) {
    return std::isfinite(x) ? fmt::format("{:.0f}", NumberOf(rank, x)) : std::string("?");
  };
  finding.summary =
      Say("At {} a step {} has no room left for step {} ({} to {})",
          "按每步增长 {}，{} 到第 {} 步（{} 至 {}）将没有空间", SayBytes(growth.trend.slope),
          rank.name, number(forecast.x), number(forecast.x_low), number(forecast.x_high));
  if (const auto a_epoch = StepsAnEpoch(rank)) {
    finding.summary.en += fmt::format(", about epoch {:.0f}", std::floor(forecast.x / *a_epoch));
    finding.summary.zh += fmt::format("，约第 {:.0f} 轮", std::floor(forecast.x / *a_epoch));
  }
  if (std::isfinite(seconds)) {
    finding.summary.en += ", " + SaySeconds(seconds) + " of steps after the last one seen";
    finding.summary.zh += "，即在最后一步之后再训练 " + SaySeconds(seconds);
  }
  finding.summary.en += ".";
  finding.summary.zh += "。";
  finding.explanation =
      Say("{} of the device's {} are beside the allocator, and a step needs up to {} beyond what "
          "is held. The range is that of the slope at 95 %; it holds while nothing changes.",
          "设备的 {1} 中有 {0} 不属于分配器，每步还需要最多 {2}。范围来自斜率的 95 % 区间；"
          "前提是一切不变。",
          SayBytes(forecast.beside_bytes), SayBytes(forecast.limit_bytes),
          SayBytes(forecast.need_bytes));
  finding.advice.push_back(
      {.framework = "",
       .text = Say("Stop the growth (see gpu_memory_leak), or save a checkpoint before that step.",
                   "先消除增长（见 gpu_memory_leak），或在该步之前保存检查点。"),
       .code = ""});
  finding.evidence.push_back(EvidenceOf(facts, growth, forecast, rate));
  return finding;
}

Judgement Judge(const Facts& facts) {
  Judgement judgement;
  bool any = false;
  for (const RankFacts& rank : facts.ranks()) {
    const auto growth = JudgeDeviceGrowth(facts, rank);
    if (!growth || !growth->of_allocator || !growth->gpu || !RoomOf(facts, *growth->gpu)) continue;
    any = true;
    const bool sure = growth->confidence >= facts.limits()["oom_forecast.confidence"];
    if (!growth->trend.grows() || !sure || RanOut(rank)) continue;
    const auto forecast = ForecastOf(facts, *growth);
    if (forecast) judgement.findings.push_back(Found(facts, *growth, *forecast));
  }
  FoldRanks("slope_bytes_per_step", &judgement.findings);
  if (any) return judgement;
  return NotApplicable(
      Say("no rank tells its allocator in enough steps on a GPU whose memory is "
          "known",
          "没有任何 rank 在显存大小已知的 GPU 上报告足够多步的分配器数据"));
}

}  // namespace

namespace rules {

const RuleDef kOomForecast = {
    .id = "oom_forecast",
    .Title = [] { return Say("Device memory will run out", "显存将会耗尽"); },
    .Judge = Judge};

}  // namespace rules
}  // namespace epochmeter::diagnose
