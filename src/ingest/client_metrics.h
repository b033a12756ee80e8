// SPDX-License-Identifier: Apache-2.0
// Metrics that only importers give: what other tools measure and the live collectors do not.
#pragma once

#include "model/metric.h"

namespace epochmeter::ingest {

inline constexpr model::MetricDef kHostCpuUsed = model::Metric(
    {"host.cpu.utilization", "", "cpu_used_ratio", "host_cpu_utilization_ratio", "1",
     model::MetricKind::kGauge, model::Scope::kHost, 1e-4,
     "Part of the CPU time of all CPUs that was in use, over a window that the other tool chose.",
     "imported"});

}  // namespace epochmeter::ingest
