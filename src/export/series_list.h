// SPDX-License-Identifier: Apache-2.0
// The series of a run as exports name and order them.
#pragma once

#include <string>
#include <vector>

#include "model/run.h"

namespace epochmeter::exporting {

struct ExportedSeries {
  const model::SeriesDef* def;  // borrowed from the run
  const model::EntityDef* entity;
  // Prometheus name with its labels as words: gpu0_utilization_ratio,
  // host_cpu_seconds_total_user, framework_memory_bytes_allocated_rank0. Unique in the list.
  std::string wide_name;
  // Prometheus name with the labels that have no column of their own:
  // host_cpu_seconds_total{mode=user}.
  std::string metric;
  model::Labels labels;         // metric label, then the entity's but gpu, uuid and rank
  std::string gpu, uuid, rank;  // empty when it has none
};

// By scope (gpu, mig, host, cgroup, process, rank, run), entity (GPUs by index, else by name) and
// definition. Series without an entity or a name are left out: they have no values to speak of.
std::vector<ExportedSeries> ListSeries(const model::Run& run);

}  // namespace epochmeter::exporting
