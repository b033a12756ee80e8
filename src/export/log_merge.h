// SPDX-License-Identifier: Apache-2.0
// Rows of several logs of one job in the order of time. One thread.
#pragma once

#include <memory>

#include "export/log_rows.h"

namespace epochmeter::exporting {

// Keeps what it gets in a temporary file and gives it to `rows`, which it borrows, at Finish: in
// the order of time when each training record has one, else as it came. Rows of one file keep their
// order. Memory does not grow with them. Finish fails when the temporary file did.
std::unique_ptr<LogRowWriter> MergeLogRows(LogRowWriter* rows);

}  // namespace epochmeter::exporting
