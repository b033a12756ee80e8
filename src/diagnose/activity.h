// SPDX-License-Identifier: Apache-2.0
// How busy GPUs were, and when: what the rules of time and activity share. Pure functions.
#pragma once

#include <initializer_list>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "diagnose/facts.h"

namespace epochmeter::diagnose {

// The intervals in the order of time, those that touch or are less than `bridge_ns` apart as one.
std::vector<model::Interval> Join(std::vector<model::Interval> intervals, int64_t bridge_ns = 0);
// What is in both; each list as Join gives it.
std::vector<model::Interval> Overlap(std::span<const model::Interval> a,
                                     std::span<const model::Interval> b);
// Each of `intervals` (as Join gives them) less all of `holes` (as Join gives them).
std::vector<model::Interval> Without(std::span<const model::Interval> intervals,
                                     std::span<const model::Interval> holes);
// `intervals` cut into `count` parts of the same wall time, from the first begin to the last end;
// a part holds what lies in it, and may be empty.
std::vector<std::vector<model::Interval>> Parts(std::span<const model::Interval> intervals,
                                                size_t count);

// Ended and open phases of these names, joined.
std::vector<model::Interval> PhasesNamed(const RankFacts& rank,
                                         std::initializer_list<std::string_view> names);
// Evaluation, checkpoints and compilation of any rank, joined.
std::vector<model::Interval> PhasesOfAll(const Facts& facts);
// What may be judged: the steady stretches of all ranks together, as few intervals as possible.
std::vector<model::Interval> SteadyOfAll(const Facts& facts);
// The same of one rank.
std::vector<model::Interval> SteadySpans(const RankFacts& rank);

// Indexes of the job's GPUs (of all when the run does not say which are), rising.
std::vector<int32_t> GpusOfJob(const Facts& facts);
// Time-weighted mean of a GPU's figure over the intervals: of its curve where that is fine enough,
// else of the recorded samples. Nothing without samples in them.
std::optional<double> MeanOver(const Facts& facts, int32_t gpu, std::string_view field,
                               std::span<const model::Interval> intervals);
// The same of any curve; null has none.
std::optional<double> MeanOver(const Facts& facts, const model::Curve* curve,
                               std::span<const model::Interval> intervals);
// The mean of these GPUs' means; nothing when none has the figure.
std::optional<double> MeanOver(const Facts& facts, std::span<const int32_t> gpus,
                               std::string_view field, std::span<const model::Interval> intervals);
// The power limit of a GPU in W, as it last held, else as its attributes tell it.
std::optional<double> PowerLimit(const Facts& facts, int32_t gpu);
// Stretches of at least `shortest_s` in which no sample of the curve is above `limit`; holes end
// them. In a thinned curve their ends are as coarse as a bucket.
std::vector<model::Interval> StretchesAtMost(const model::Curve& curve, double limit,
                                             double shortest_s);

// In which the job's GPU had no work in a stretch of at least `shortest_s`: neither utilisation nor
// SM activity above `limit`. Nothing when its utilisation was not recorded.
std::optional<std::vector<model::Interval>> IdleStretches(const Facts& facts, int32_t gpu,
                                                          double limit, double shortest_s);

// Median over the steps outside warm-up, or over all but the first when there are fewer than three
// of those; nothing below three steps.
std::optional<double> MedianStepSeconds(const RankFacts& rank);
// Part of the time of steps outside warm-up that they waited for data; nothing when not told.
std::optional<double> DataWaitRatio(const RankFacts& rank);
// Mean batch size of the steps outside warm-up; nothing when not told.
std::optional<double> MeanBatch(const RankFacts& rank);
// The largest data wait ratio of all ranks; 0 when no rank tells.
double WorstDataWaitRatio(const Facts& facts);

// Steady steps of all ranks less what idle_gpu, stalled_steps and checkpoint_stall speak of: in
// which a GPU should have had work. For any GPU of the job that rests, all are left out.
std::vector<model::Interval> WorkingTime(const Facts& facts);

// Which rule explains a GPU with little work over WorkingTime: what it says in a few words. Empty
// when none does, and then nobody else has warned of it.
model::Message WhyLittleWork(const Facts& facts);

}  // namespace epochmeter::diagnose
