// SPDX-License-Identifier: Apache-2.0
// The formats of `report -f` that are looked at: html, svg, png.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "cli/command.h"
#include "cli/open_run.h"
#include "model/report.h"

namespace epochmeter::cli {

inline constexpr FlagSpec kMaxSizeFlag = {
    .name = "max-size",
    .value_name = "SIZE",
    .help = "html: most bytes of the page, such as 5MB; curves are thinned to fit [2MB]"};
inline constexpr FlagSpec kChartFlag = {
    .name = "chart",
    .value_name = "NAME",
    .help = "svg, png: trend, memory, power, loss, ...; an unknown name lists them [trend]"};
inline constexpr FlagSpec kXFlag = {
    .name = "x", .value_name = "AXIS", .help = "svg, png: time, step or epoch [time]"};
inline constexpr FlagSpec kThemeFlag = {
    .name = "theme", .value_name = "THEME", .help = "svg, png: light or dark [light]"};

bool IsPictureFormat(std::string_view format);

// To `path`, or to stdout where it is absent or "-"; never to a terminal.
base::Result<> WritePicture(const Arguments& arguments, const OpenedRun& opened,
                            const model::Report& report, std::string_view format,
                            const std::optional<std::string>& path);

}  // namespace epochmeter::cli
