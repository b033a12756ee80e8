// SPDX-License-Identifier: Apache-2.0
// How a command writes text for people: language, colour, width. The flags are shared by every
// command that takes them.
#pragma once

#include "base/result.h"
#include "cli/command.h"
#include "render/text.h"

namespace epochmeter::cli {

inline constexpr FlagSpec kLangFlag = {
    .name = "lang", .value_name = "LANG", .help = "en or zh [en]"};
inline constexpr FlagSpec kColorFlag = {
    .name = "color", .value_name = "WHEN", .help = "auto, always or never [auto]"};
inline constexpr FlagSpec kAsciiFlag = {.name = "ascii",
                                        .value_name = "",
                                        .help = "no characters beyond ASCII",
                                        .kind = FlagKind::kSwitch};
inline constexpr FlagSpec kNoRedactFlag = {
    .name = "no-redact",
    .value_name = "",
    .help = "keep secrets and home folders that were found in texts; json and csv do",
    .kind = FlagKind::kSwitch};

// From the flags, the environment and the terminal. A language that is not known is an error.
base::Result<render::TextOptions> MakeTextOptions(const Arguments& arguments);

}  // namespace epochmeter::cli
