// SPDX-License-Identifier: Apache-2.0
// What a training told of its scalars (losses, metrics, learning rate) over its time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "diagnose/facts.h"

namespace epochmeter::diagnose {

struct ScalarPoint {
  int64_t t_ns = 0;
  int64_t epoch = model::kNotKnown, step = model::kNotKnown;
  double value = 0;  // may be NaN or infinite, never absent
};

// The values of one scalar that one kind of event told. Those of a step and the mean at the end of
// an epoch may have one name; they are two series.
struct ScalarSeries {
  std::string name;  // "loss"
  model::EventKind told_by = model::EventKind::kStep;
  std::vector<ScalarPoint> points;  // in the order of time
};

// All that the rank told, those of steps first, by name. What came after the training's end is in
// it, too. With `only`, not empty: those of this name.
std::vector<ScalarSeries> ScalarsOf(const RankFacts& rank, std::string_view only = {});

// Whether a scalar of this name is what the training makes small: loss, val_loss, loss_d, cost,
// nll, perplexity, "train/ce_loss". A weight or a scale of a loss is not.
bool IsLoss(std::string_view name);
// Whether it is of validation or test, by its name or by the event.
bool IsOfEvaluation(const ScalarSeries& series);
// The scale of a mixed-precision loss ("loss_scale", "amp/scale").
bool IsLossScale(std::string_view name);
// "lr", "learning_rate", "train/lr", "lr-AdamW".
bool IsLearningRate(std::string_view name);

// "step 57 (epoch 2)", "epoch 3", or the time since the recording began where the training has no
// numbers.
model::Message PlaceOf(const ScalarPoint& point, const model::Run& run);

}  // namespace epochmeter::diagnose
