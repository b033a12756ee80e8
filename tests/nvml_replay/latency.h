// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace nvml_replay {

// Spends what the call ("nvmlDeviceGetX" or "field:ID") costs on an H200 with driver 580.
void SpendMeasured(std::string_view function);

}  // namespace nvml_replay
