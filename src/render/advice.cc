// SPDX-License-Identifier: Apache-2.0
#include "render/advice.h"

#include <algorithm>

#include "render/columns.h"

namespace epochmeter::render {

std::string FrameworkWord(const model::Advice& advice) {
  if (advice.framework == "paddle") return "PaddlePaddle";
  if (advice.framework == "tensorflow") return "TensorFlow";
  if (advice.framework == "pytorch") return "PyTorch";
  return Plain(advice.framework);
}

std::vector<AdviceGroup> GroupAdvice(const model::Finding& finding, const std::string& framework) {
  std::vector<AdviceGroup> groups;
  for (const model::Advice& advice : finding.advice) {
    const bool wanted =
        framework.empty() || advice.framework.empty() || advice.framework == framework;
    if (!wanted) continue;
    auto group = std::find_if(groups.begin(), groups.end(),
                              [&](const AdviceGroup& known) { return *known.text == advice.text; });
    if (group == groups.end()) {
      group = groups.insert(groups.end(), AdviceGroup{.text = &advice.text});
    }
    if (!advice.framework.empty()) {
      group->frameworks += (group->frameworks.empty() ? "" : ", ") + FrameworkWord(advice);
    }
    if (!advice.code.empty()) group->with_code.push_back(&advice);
  }
  // One group for several frameworks is for all, and so is that for the training's own.
  const bool one_for_all = groups.size() == 1 && (!framework.empty() || finding.advice.size() > 1);
  if (one_for_all || !framework.empty()) {
    for (AdviceGroup& group : groups) group.frameworks.clear();
  }
  return groups;
}

}  // namespace epochmeter::render
