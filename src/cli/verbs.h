// SPDX-License-Identifier: Apache-2.0
// The verbs that commands.cc lists, one per cmd_<verb>.cc.
#pragma once

#include "cli/command.h"

namespace epochmeter::cli {

extern const Command kRunCommand, kAttachCommand, kSamplerCommand;
extern const Command kReportCommand, kSummaryCommand, kExportCommand, kImportCommand;
extern const Command kBillCommand, kConfigCommand, kLogCommand;
extern const Command kDoctorCommand, kProbeCommand, kListCommand, kLsCommand, kRulesCommand;
extern const Command kDumpCommand, kAssembleCommand, kRecoverCommand, kVersionCommand;

}  // namespace epochmeter::cli
