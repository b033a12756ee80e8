// SPDX-License-Identifier: Apache-2.0
// A bill as JSON, for `bill -f json` and inside the report. The shape is
// docs/schema/bill.schema.json.
#pragma once

#include "base/json_writer.h"
#include "model/bill.h"

namespace epochmeter::exporting {

// One object.
void WriteBill(const model::Bill& bill, base::JsonWriter& json);

// The members of one line's sums, into an object that is open.
void WriteBillSums(const model::BillLine& line, base::JsonWriter& json);

}  // namespace epochmeter::exporting
