// SPDX-License-Identifier: Apache-2.0
// PNG by the program rsvg-convert, where it is installed. A library would bring forty others into a
// process that stands beside a training.
#pragma once

#include <string>

#include "base/result.h"

namespace epochmeter::cli {

// The picture in twice its size, for sharp text. Waits for the program.
base::Result<std::string> PngOfSvg(const std::string& svg);

}  // namespace epochmeter::cli
