// SPDX-License-Identifier: Apache-2.0
// Run -> Report. Every figure that renderers and exporters print is worked out here, once.
//
// Percentiles are linear interpolations on sorted values; means are time-weighted and never bridge
// a gap; counters are differences between interpolated readings. What has no basis is absent.
// Each series is read once and whole, one after the other, so that memory stays bounded by one
// series. Pure; as thread-safe as the run's store.
#pragma once

#include "diagnose/limits.h"
#include "model/report.h"
#include "model/run.h"

namespace epochmeter::diagnose {

struct ReportOptions {
  bool all_gpus = false;  // keep GPUs that are not the job's, marked so
  Limits limits;          // of the rules
  model::Rates rates;     // of the bill
  bool judge = true;      // work out findings and bill, and the curves that they go by
};
model::Report BuildReport(const model::Run& run, const ReportOptions& options = {});

}  // namespace epochmeter::diagnose
