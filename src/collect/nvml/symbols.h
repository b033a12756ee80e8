// SPDX-License-Identifier: Apache-2.0
// Which function of the loaded library stands behind each call: the newest name that it exports.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "collect/nvml/api.h"

namespace epochmeter::collect::nvml {

// The newest name of a call and the one that was found, "" for none; only calls that have more
// than one name, or whose newest name is missing.
using ChosenSymbols = std::vector<std::pair<std::string, std::string>>;

// Fills `api` from a library that dlopen gave.
void BindSymbols(void* library, Api* api, ChosenSymbols* chosen);

}  // namespace epochmeter::collect::nvml
