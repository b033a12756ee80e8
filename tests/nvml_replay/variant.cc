// SPDX-License-Identifier: Apache-2.0
#include "generation.h"

namespace nvml_replay {

// The macros come from CMakeLists.txt, one set per library.
const Generation kGeneration = {
    EPM_REPLAY_BRANCH, EPM_REPLAY_DRIVER, EPM_REPLAY_CUDA,
    EPM_REPLAY_BRANCH == 535  // 535.43 to 535.86: see library.cc of the collector
};

}  // namespace nvml_replay
