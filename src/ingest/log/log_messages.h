// SPDX-License-Identifier: Apache-2.0
// What a log says beside its records, as plain values for a report. Pure.
#pragma once

#include "ingest/log/templates.h"
#include "model/log_report.h"

namespace epochmeter::ingest::log {

// Fills `messages` and `anomalies` of the report.
void ReportMessages(const TemplateTable& table, model::LogReport* report);

}  // namespace epochmeter::ingest::log
