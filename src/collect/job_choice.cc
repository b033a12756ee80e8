// SPDX-License-Identifier: Apache-2.0
#include "collect/job_choice.h"

#include <algorithm>
#include <array>

#include "base/strings.h"

namespace epochmeter::collect {
namespace {

// Variables by which launchers tell their children apart.
constexpr std::array<std::string_view, 16> kRankVariables = {"RANK",
                                                             "LOCAL_RANK",
                                                             "PADDLE_TRAINER_ID",
                                                             "PADDLE_GLOBAL_RANK",
                                                             "PADDLE_LOCAL_RANK",
                                                             "PADDLE_RANK_IN_NODE",
                                                             "OMPI_COMM_WORLD_RANK",
                                                             "OMPI_COMM_WORLD_LOCAL_RANK",
                                                             "PMI_RANK",
                                                             "PMIX_RANK",
                                                             "MPI_LOCALRANKID",
                                                             "MV2_COMM_WORLD_RANK",
                                                             "JSM_NAMESPACE_RANK",
                                                             "SLURM_PROCID",
                                                             "SLURM_LOCALID",
                                                             "FLAGS_selected_gpus"};

// Programs that start others and use no GPU themselves; comm has 15 characters at most.
constexpr std::array<std::string_view, 22> kStarters = {"sh",
                                                        "bash",
                                                        "dash",
                                                        "zsh",
                                                        "ksh",
                                                        "fish",
                                                        "env",
                                                        "timeout",
                                                        "nice",
                                                        "nohup",
                                                        "sudo",
                                                        "stdbuf",
                                                        "time",
                                                        "tini",
                                                        "srun",
                                                        "mpirun",
                                                        "mpiexec",
                                                        "orterun",
                                                        "prterun",
                                                        "dumb-init",
                                                        "mpiexec.hydra",
                                                        "hydra_pmi_proxy"};

bool IsStarter(const JobProcess& process) {
  return std::find(kStarters.begin(), kStarters.end(), process.name) != kStarters.end();
}

bool IsLauncher(const JobProcess& process, std::span<const JobProcess> all) {
  return std::any_of(all.begin(), all.end(), [&](const JobProcess& other) {
    return other.parent == process.key.pid && !other.rank.empty() && other.rank != process.rank;
  });
}

// Those whose word counts; all of them when nobody's does.
std::vector<const JobProcess*> Speakers(std::span<const JobProcess> all) {
  std::vector<const JobProcess*> speakers;
  bool launched = false;
  for (const JobProcess& process : all) {
    const bool launcher = IsLauncher(process, all);
    launched |= launcher;
    if (!launcher && !IsStarter(process)) speakers.push_back(&process);
  }
  if (launched) {
    std::erase_if(speakers, [](const JobProcess* process) { return process->rank.empty(); });
  }
  if (speakers.empty()) {
    for (const JobProcess& process : all) speakers.push_back(&process);
  }
  return speakers;
}

}  // namespace

JobProcess DescribeJobProcess(const ProcStat& stat, std::string_view comm,
                              std::string_view environ_text) {
  JobProcess process{.key = stat.key,
                     .parent = stat.parent,
                     .name = std::string(base::Trim(comm)),
                     .rank = {},
                     .variables = VisibleVariablesOf(environ_text)};
  for (const std::string_view name : kRankVariables) {
    const auto value = EnvironValue(environ_text, name);
    if (!value) continue;
    process.rank.append(name).append("=").append(*value).append(" ");
  }
  return process;
}

const JobChoice::Answer& JobChoice::Decide(std::span<const JobProcess> processes,
                                           std::span<const GpuIdentity> gpus, int driver_branch) {
  if (processes.empty()) return answer_;
  Answer answer{.restricted = true, .gpus = {}, .note = {}};
  for (const JobProcess* speaker : Speakers(processes)) {
    const VisibleGpus visible = ResolveVisibleGpus(speaker->variables, gpus, driver_branch);
    if (answer.note.empty()) answer.note = visible.note;
    if (visible.restricted) {
      chosen_.insert(visible.gpus.begin(), visible.gpus.end());
    } else {
      answer.restricted = false;
    }
  }
  answer.gpus = chosen_;
  answer_ = std::move(answer);
  return answer_;
}

}  // namespace epochmeter::collect
