// SPDX-License-Identifier: Apache-2.0
// Fixed texts with figures in them.
#pragma once

#include <fmt/core.h>

#include <string>

#include "render/phrases.h"

namespace epochmeter::render {

// The text with the arguments in its places, as fmt does it.
template <typename... Args>
std::string Fill(Phrase phrase, Language language, const Args&... args) {
  return fmt::vformat(Text(phrase, language), fmt::make_format_args(args...));
}

}  // namespace epochmeter::render
