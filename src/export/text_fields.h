// SPDX-License-Identifier: Apache-2.0
// Cells, times and numbers of the text formats. Decimal points are '.', unknown is an empty cell.
#pragma once

#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "export/exporters.h"
#include "model/run.h"

namespace epochmeter::exporting {

// As RFC 4180 wants it: quoted when it holds a comma, a quote or a line end.
std::string CsvCell(std::string_view text);
// Shortest text that reads back as the same double; "nan", "inf" and "-inf" as pandas reads them.
std::string CsvNumber(double value);
std::string CsvNumber(const std::optional<double>& value);
void WriteCsvRow(const std::vector<std::string>& cells, std::ostream& out);

// The instant as `format` says; empty when the run has no wall clock.
std::string TimeText(const model::Run& run, int64_t t_ns, TimeFormat format);

// The interval with the recording's ends where it is not limited.
model::Interval InRun(const model::Run& run, model::Interval interval);

// The run attribute "host"; empty when not known.
std::string HostName(const model::Run& run);

// An error when writing to the stream failed.
base::Result<> StreamState(const std::ostream& out);

}  // namespace epochmeter::exporting
