// SPDX-License-Identifier: Apache-2.0
// A made-up run for tests, written record by record, and comparisons of what is read back.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "model/run.h"
#include "runfile/random_records.h"

namespace epochmeter::runfile {

// Two entities, some series, then `ticks` seconds of samples, steps, events, text and states.
// Values are whole steps of their resolution already.
std::vector<model::Record> MakeRun(uint64_t seed, int ticks, int series = 6);
// As a RunBuilder in memory has it.
model::Run BuildRun(const std::vector<model::Record>& records);

// Everything of a run but losses, anchors and end as text, to compare many runs quickly.
// Definitions are left out: a file may know more of them than the prefix of records it is compared
// with.
std::string Fingerprint(const model::Run& run);
// Whether each value, event and text of one fingerprint is in the other too, unchanged.
bool IsPartOf(std::string_view part, std::string_view whole);

// Everything but losses, text pieces and values is equal.
void ExpectSameRecords(const model::Run& actual, const model::Run& expected);
// Whole columns are equal, bit by bit.
void ExpectSameValues(const model::Run& actual, const model::Run& expected);
// Summaries over random intervals are equal but for rounding.
void ExpectSameSummaries(const model::Run& actual, const model::Run& expected,
                         RandomRecords& random, int intervals);

}  // namespace epochmeter::runfile
