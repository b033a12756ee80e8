// SPDX-License-Identifier: Apache-2.0
#include "cli/run_facts.h"

#include <sys/utsname.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json_writer.h"
#include "base/strings.h"
#include "base/version.h"

namespace epochmeter::cli {
namespace {

std::string FirstLine(const std::string& path) {
  const base::Result<std::string> text = base::ReadFile(path);
  if (!text.ok()) return {};
  return std::string(base::Trim(base::Split(*text, '\n').front()));
}

std::string CpuModel() {
  const base::Result<std::string> text = base::ReadFile("/proc/cpuinfo", size_t{16} << 20);
  if (!text.ok()) return {};
  for (const std::string_view line : base::Split(*text, '\n')) {
    // model name	: AMD EPYC 7763 64-Core Processor
    if (!base::StartsWith(line, "model name")) continue;
    const size_t colon = line.find(':');
    if (colon != std::string_view::npos) return std::string(base::Trim(line.substr(colon + 1)));
  }
  return {};
}

std::string WorkingFolder() {
  char buffer[4096];
  return ::getcwd(buffer, sizeof buffer) != nullptr ? RedactHome(buffer) : std::string();
}

}  // namespace

model::RunInfo DescribeRun(const RunSettings& settings) {
  model::RunInfo info{.run_id = settings.run_id,
                      .boot_id = FirstLine("/proc/sys/kernel/random/boot_id"),
                      .anchor = settings.began,
                      .attributes = {}};
  const auto add = [&info](std::string key, std::string value) {
    if (!value.empty()) info.attributes.emplace_back(std::move(key), std::move(value));
  };
  add("command", base::Join(RedactCommand(settings.command), " "));
  const bool attached = settings.attached;
  add("working_folder", attached ? RedactHome(settings.training_folder) : WorkingFolder());
  utsname system{};
  if (::uname(&system) == 0) {
    add("host", system.nodename);
    add("kernel", system.release);
    add("machine", system.machine);
  }
  add("cpu_model", CpuModel());
  add("cpu_count", std::to_string(::sysconf(_SC_NPROCESSORS_ONLN)));
  add("interval_s", base::JsonNumber(base::SecondsFromNs(settings.interval_ns)));
  add("tool_version", std::string(base::kVersion));
  add("tool_revision", std::string(base::kRevision));
  for (const auto& [key, value] : settings.labels) add("tag." + key, value);
  // Ours would be wrong for a process that we did not start.
  const model::Labels environment =
      attached ? IdentifyingEnvironment(settings.training_environment.value_or(""))
               : IdentifyingEnvironment();
  for (const auto& [key, value] : environment) add(key, value);
  return info;
}

}  // namespace epochmeter::cli
