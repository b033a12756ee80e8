// SPDX-License-Identifier: Apache-2.0
// Flags that `run` and `attach` share.
#pragma once

#include "cli/command.h"

namespace epochmeter::cli {

inline constexpr FlagSpec kOutputFlag = {
    .name = "output",
    .short_name = 'o',
    .value_name = "PATH",
    .help = "run file or folder; takes {name} {time} {host} {rank} {job} {rand}"};
inline constexpr FlagSpec kDirFlag = {
    .name = "dir", .value_name = "FOLDER", .help = "folder of runs [epochmeter-runs]"};
inline constexpr FlagSpec kNameFlag = {
    .name = "name", .value_name = "NAME", .help = "name in the run id [the script's]"};
inline constexpr FlagSpec kIntervalFlag = {.name = "interval",
                                           .short_name = 'i',
                                           .value_name = "TIME",
                                           .help = "sampling tick, 100ms to 60s [1s]"};
inline constexpr FlagSpec kCpuBudgetFlag = {
    .name = "cpu-budget",
    .value_name = "PERCENT",
    .help = "of a core, for all of ours; dear metrics are read less often [0.5%], or off"};
inline constexpr FlagSpec kPrintFlag = {.name = "print",
                                        .value_name = "TIME",
                                        .help = "print a line per GPU so often, and one per epoch"};
inline constexpr FlagSpec kPrintFileFlag = {
    .name = "print-file", .value_name = "PATH", .help = "append those lines to a file as well"};
inline constexpr FlagSpec kTagFlag = {.name = "tag",
                                      .value_name = "KEY=VALUE",
                                      .help = "label of the run, repeatable",
                                      .kind = FlagKind::kRepeated};
inline constexpr FlagSpec kAllGpusFlag = {.name = "all-gpus",
                                          .value_name = "",
                                          .help =
                                              "record GPUs that are not this job's, too; "
                                              "report --all-gpus shows them",
                                          .kind = FlagKind::kSwitch};
inline constexpr FlagSpec kNoGpuFlag = {
    .name = "no-gpu", .value_name = "", .help = "start no GPU sampler", .kind = FlagKind::kSwitch};
inline constexpr FlagSpec kForceFlag = {.name = "force",
                                        .value_name = "",
                                        .help = "replace an existing run file",
                                        .kind = FlagKind::kSwitch};
inline constexpr FlagSpec kQuietFlag = {.name = "quiet",
                                        .short_name = 'q',
                                        .value_name = "",
                                        .help = "say nothing on stderr but errors",
                                        .kind = FlagKind::kSwitch};

}  // namespace epochmeter::cli
