// SPDX-License-Identifier: Apache-2.0
// A run made by hand: two GPUs, two epochs of one rank with validation, the second one cut off.
#pragma once

#include "model/run.h"

namespace epochmeter::testing {

model::Run TinyRun();
// The same training on a machine whose NVML library is missing.
model::Run TinyRunWithoutGpu();

}  // namespace epochmeter::testing
