// SPDX-License-Identifier: Apache-2.0
// Sentences of rules in each language of the reports, with the same figures in all.
#pragma once

#include <fmt/core.h>

#include <string>

#include "model/message.h"

namespace epochmeter::diagnose {

// Both texts with the arguments put in as fmt does: Say("{} of {}", "{1} 中的 {0}", a, b).
template <typename... Args>
model::Message Say(fmt::format_string<Args...> en, fmt::format_string<Args...> zh,
                   const Args&... args) {
  return {.en = fmt::vformat(en, fmt::make_format_args(args...)),
          .zh = fmt::vformat(zh, fmt::make_format_args(args...))};
}

// Figures as sentences hold them, the same in each language.
std::string SayPercent(double ratio);    // "38 %", "0.7 %"
std::string SayBytes(double bytes);      // "80.0 MB", "1.60 GB" (powers of 1000)
std::string SaySeconds(double seconds);  // "19.9 ms", "9.3 s", "3 min 20 s", "2 h 5 min"
std::string SayNumber(double value);     // three significant digits: "1.35", "204"

}  // namespace epochmeter::diagnose
