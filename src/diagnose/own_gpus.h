// SPDX-License-Identifier: Apache-2.0
// Which GPUs are the job's, and which of them a rank uses.
#pragma once

#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "diagnose/epochs.h"
#include "model/entity_name.h"
#include "model/report.h"
#include "model/run.h"

namespace epochmeter::diagnose {

using model::Find;
using model::GpuIndex;

// Indexes of the GPUs that are the job's; nothing when the run does not say.
struct JobGpus {
  std::optional<std::set<int32_t>> gpus;
};
inline constexpr std::string_view kJobGpusUnknown =
    "neither the environment nor the training nor the driver's process lists say it, so all are "
    "shown; set CUDA_VISIBLE_DEVICES, or name the GPUs from the training";
inline constexpr std::string_view kJobGpusUnknownZh =
    "环境变量、训练程序和驱动的进程列表都没有说明，因此全部列出；请设置 CUDA_VISIBLE_DEVICES，"
    "或由训练程序指明所用的 GPU";

// GPUs on which the driver listed a process of the job.
std::set<int32_t> UsedGpus(const model::Run& run);

// Where the environment of the job chose (attribute job of the GPU entities), those, and those that
// a rank names or one of its processes was seen on; else those that the ranks name, if all of them
// do; else those with processes of the job.
JobGpus FindJobGpus(const model::Run& run, const std::vector<RankEvents>& ranks);

// Marks the job's GPUs; others are left out unless `all`.
void MarkGpus(const JobGpus& job, bool all, std::vector<model::GpuStats>* gpus);

// The GPUs that the rank's last hello or train_begin with a field "gpus" names, as indexes of GPU
// entities: a number, or a list of UUIDs, PCI bus ids or numbers. Names that match no entity make
// the whole answer unknown. A rank that says nothing has `job`'s GPUs: given for an only rank, else
// null.
std::optional<std::vector<int32_t>> OwnGpus(const model::Run& run, const RankEvents& rank,
                                            const JobGpus* job);

}  // namespace epochmeter::diagnose
