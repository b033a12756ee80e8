// SPDX-License-Identifier: Apache-2.0
// How much of the machine the run used: a bar for each figure that has a whole to be a part of.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "render/page.h"

namespace epochmeter::render {

// `ratio` of `width` columns, in eighths of a column (in whole ones in ASCII); both parts together
// are of that width. Below 0 is empty, above 1 is full; anything that is not a number is empty.
struct Bar {
  std::string filled, rest;
};
Bar MakeBar(double ratio, size_t width, bool ascii);

struct Gauge {
  Phrase name = Phrase::kGpu;
  std::optional<double> ratio;  // nothing: the whole is not known, and there is no bar
  std::string text;             // "45 %", "5.6 GB of 150 GB"
  // Below these shares of the whole it is shown in red or yellow; 0 for what is neither good nor
  // bad until it is full.
  double red_below = 0, yellow_below = 0;
};

// Utilisation and SM activity (means of the job's GPUs), their memory (the fullest at its peak),
// CPU and RAM of the host. What is not known has no gauge.
std::vector<Gauge> GaugesOf(const model::Run& run, const model::Report& report, Language language);
void AddGauges(const std::vector<Gauge>& gauges, Page* page);

// A figure of a table; nothing when it is not there.
std::optional<double> FigureOf(const model::StatTable& table, std::string_view field,
                               std::optional<double> model::Stat::*figure);

}  // namespace epochmeter::render
