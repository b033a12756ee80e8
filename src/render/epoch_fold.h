// SPDX-License-Identifier: Apache-2.0
// Which epochs of a long run, or of many ranks, a table shows.
#pragma once

#include <string>
#include <vector>

#include "model/report.h"
#include "render/phrases.h"

namespace epochmeter::render {

// Indexes of the rows to show, rising: all of a short table; else the first, the last, those whose
// scalars are no numbers, the slowest, those that waited longest for data and those that used their
// GPUs least. First epochs of a rank are no worst ones: they are slow in every run.
std::vector<size_t> KeptRows(const std::vector<model::EpochRow>& rows, bool all);

// The table's lines (a title, then a line a kept row) with a line in each hole that says how many
// rows are left out there.
std::vector<std::string> WithHoles(const std::vector<size_t>& kept, size_t rows,
                                   std::vector<std::string> lines, Language language);

}  // namespace epochmeter::render
