// SPDX-License-Identifier: Apache-2.0
// What our processes say beside a training, on the stderr that is the training's too.
#pragma once

#include <string>

namespace epochmeter::cli {

// Writes `line` and a newline to stderr, at most 4096 bytes, when it takes them at once: a reader
// that stands still must not hold the recording, nor the end of the job. False when nothing was
// written.
bool SayAtOnce(std::string line);

}  // namespace epochmeter::cli
