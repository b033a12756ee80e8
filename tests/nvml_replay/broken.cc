// SPDX-License-Identifier: Apache-2.0
// A library that does not load: it needs a function that is nowhere, as one of another driver
// version does.
#include <cstdint>

extern "C" int32_t epochmeter_replay_missing_function();

extern "C" __attribute__((visibility("default"))) int32_t nvmlInit_v2() {
  return epochmeter_replay_missing_function();
}
