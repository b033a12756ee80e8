// SPDX-License-Identifier: Apache-2.0
// Layers between the driver and the training that change what the numbers mean: MPS, and libraries
// that are loaded into every process and rewrite NVML's answers.
#include "base/strings.h"
#include "collect/checks/check_list.h"
#include "collect/checks/look.h"

namespace epochmeter::collect {
namespace {

bool MpsRuns(const CheckContext& context) {
  for (const std::string& name : NamesIn(context.Path("/proc"))) {
    if (!base::ParseInt(name)) continue;
    const auto command = ReadTrimmed(context.Path("/proc/") + name + "/comm");
    // The kernel keeps 15 characters of nvidia-cuda-mps-server and -control.
    if (command && base::StartsWith(*command, "nvidia-cuda-mps")) return true;
  }
  return false;
}

bool RewritesNvml(std::string_view path) {
  const std::string lower = base::ToLowerAscii(path);
  for (const char* part : {"vgpu", "cuda-control", "libcuda", "nvidia-ml", "gemhook", "orion"}) {
    if (lower.find(part) != std::string::npos) return true;
  }
  return false;
}

model::CheckFacts Run(const CheckContext& context) {
  model::CheckFacts facts;
  if (MpsRuns(context)) {
    facts.push_back(Limited("CUDA MPS runs here",
                            "its clients share one process and one time slice: use of a GPU can't "
                            "be told apart by process",
                            "read the figures as those of the whole GPU"));
  }
  std::string listed = EnvironmentOf("LD_PRELOAD");
  for (char& c : listed) c = c == ':' ? ' ' : c;
  listed += " " + ReadTrimmed(context.Path("/etc/ld.so.preload")).value_or("");
  std::vector<std::string> other;
  for (const std::string_view library : base::SplitWhitespace(listed)) {
    if (!RewritesNvml(library)) {
      other.emplace_back(library);
      continue;
    }
    facts.push_back(Limited("GPU figures are virtualised by " + std::string(library),
                            "the library is loaded into every process (/etc/ld.so.preload or "
                            "LD_PRELOAD) and answers for the driver",
                            "true figures need a recorder outside of it: on the host, or without "
                            "the preload"));
  }
  if (!other.empty()) {
    facts.push_back(Info("libraries are preloaded into every process: " + base::Join(other, ", "),
                         "/etc/ld.so.preload or LD_PRELOAD"));
  }
  return facts;
}

}  // namespace

const CheckDef kGpuSharingCheck = {
    .id = "gpu.sharing", .summary = "MPS and preloaded libraries", .Run = Run};

}  // namespace epochmeter::collect
