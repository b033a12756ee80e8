// SPDX-License-Identifier: Apache-2.0
// Who started this: a batch system, Kubernetes, a launcher of ranks. Taken into each run's facts.
#include <array>

#include "base/strings.h"
#include "collect/checks/check_list.h"
#include "collect/checks/look.h"

namespace epochmeter::collect {
namespace {

struct Launcher {
  const char* name;
  const char* variable;
};
constexpr std::array<Launcher, 8> kLaunchers = {{{"Slurm job", "SLURM_JOB_ID"},
                                                 {"LSF job", "LSB_JOBID"},
                                                 {"PBS job", "PBS_JOBID"},
                                                 {"torchrun", "TORCHELASTIC_RUN_ID"},
                                                 {"paddle.distributed.launch", "PADDLE_TRAINER_ID"},
                                                 {"Open MPI rank", "OMPI_COMM_WORLD_RANK"},
                                                 {"Kubernetes pod", "POD_NAME"},
                                                 {"CUDA_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"}}};

model::CheckFacts Run(const CheckContext& context) {
  model::CheckFacts facts;
  std::vector<std::string> found;
  for (const Launcher& launcher : kLaunchers) {
    const std::string value = EnvironmentOf(launcher.variable);
    if (!value.empty()) found.push_back(std::string(launcher.name) + " " + value);
  }
  const std::string container = ContainerKind(context);
  if (!container.empty()) found.push_back("container: " + container);
  if (!found.empty()) facts.push_back(Info("started by: " + base::Join(found, ", "), ""));
  const bool pod_unnamed = container == "kubernetes" && EnvironmentOf("POD_NAME").empty();
  if (pod_unnamed) {
    facts.push_back(Info("the pod's name is not known inside", "POD_NAME is not set",
                         "pass metadata.name through the downward API as POD_NAME"));
  }
  return facts;
}

}  // namespace

const CheckDef kSchedulerCheck = {
    .id = "recording.launcher", .summary = "batch system and launcher", .Run = Run};

}  // namespace epochmeter::collect
