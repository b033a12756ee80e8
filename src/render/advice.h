// SPDX-License-Identifier: Apache-2.0
// What to change, for the training's framework or for each where that is not known.
#pragma once

#include <string>
#include <vector>

#include "model/report.h"

namespace epochmeter::render {

// "PyTorch" for "pytorch": as the framework of an advice writes itself, made plain.
std::string FrameworkWord(const model::Advice& advice);

// Advice with the same words. Points into the finding.
struct AdviceGroup {
  std::string frameworks;  // "PaddlePaddle, PyTorch"; empty where it holds for all that is shown
  const model::Message* text = nullptr;
  std::vector<const model::Advice*> with_code;  // those that have some, each its own
  std::string To() const { return frameworks.empty() ? "" : " (" + frameworks + ")"; }
};

// In the order of the finding; that for other frameworks is left out where the training's is known.
std::vector<AdviceGroup> GroupAdvice(const model::Finding& finding, const std::string& framework);

}  // namespace epochmeter::render
