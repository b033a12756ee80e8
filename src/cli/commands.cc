// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "cli/verbs.h"

namespace epochmeter::cli {

std::span<const Command> Commands() {
  static const std::array kCommands = {
      kRunCommand,      kAttachCommand,  kReportCommand,  kSummaryCommand, kBillCommand,
      kExportCommand,   kLsCommand,      kListCommand,    kRulesCommand,   kDoctorCommand,
      kImportCommand,   kLogCommand,     kConfigCommand,  kRecoverCommand, kDumpCommand,
      kAssembleCommand, kVersionCommand, kSamplerCommand, kProbeCommand};
  return kCommands;
}

const Command* FindCommand(std::string_view name) {
  for (const Command& command : Commands()) {
    if (command.name == name) return &command;
  }
  return nullptr;
}

}  // namespace epochmeter::cli
