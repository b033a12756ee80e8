// SPDX-License-Identifier: Apache-2.0
// Events that were read from the training's printed output, beside those that a client sent.
#pragma once

#include <string_view>

#include "model/run.h"

namespace epochmeter::model {

// The field "source" of such an event; a step has the line it was printed in instead.
inline constexpr std::string_view kSourceField = "source";
inline constexpr std::string_view kOutputSource = "output";
inline constexpr std::string_view kLineField = "line";

bool IsFromOutput(const Event& event);

// Begins and ends of trainings and epochs, steps.
bool IsProgress(EventKind kind);

// Where a client told epochs or steps, leaves out what was read from the output of them and its
// scalars; where it told exceptions, those read from the output. What stays and names no rank
// belongs to the client's, if that has only one.
void PreferClientEvents(Run* run);

}  // namespace epochmeter::model
