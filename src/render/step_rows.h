// SPDX-License-Identifier: Apache-2.0
// Which steps of a long training a picture shows. Pure; any thread.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "model/run.h"

namespace epochmeter::render {

inline constexpr std::string_view kScalarPrefix = "scalar.";

// Rows of the table in the order of time, thinned by M4: of each of `buckets` equal parts of them
// the first and the last, and those with the lowest and highest duration, the longest data wait and
// the extremes of each of the first scalars; also the first whose scalar is not finite. All of them
// when they are not more than that.
std::vector<size_t> ShownSteps(const model::StepTable& steps, size_t buckets);

// For steps that all of the tables have, the one among them that was slowest.
struct SlowestSteps {
  std::vector<int64_t> t_ns;  // end of the step in the first table
  std::vector<size_t> table;
};
// Where every table knows how long it waited in collective operations (collective_wait_s), that is
// the one which waited least, since the others waited for it; else the one that took longest. Steps
// in which none stood out by a twentieth of the step's time are left out: without knowing the waits
// of synchronous ranks, which all take equally long, nobody can tell. At most `most`, evenly
// thinned.
SlowestSteps FindSlowest(std::span<const model::StepTable* const> tables, size_t most);

}  // namespace epochmeter::render
