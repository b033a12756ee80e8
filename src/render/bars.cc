// SPDX-License-Identifier: Apache-2.0
#include "render/bars.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "render/columns.h"
#include "render/fill.h"
#include "render/units.h"

namespace epochmeter::render {
namespace {

using model::Report;
using model::Run;
using model::Stat;

constexpr std::array<std::string_view, 8> kEighths = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};

// Of the job's GPUs that have the figure.
std::vector<double> OfJob(const Report& report, std::string_view field,
                          std::optional<double> Stat::*figure) {
  std::vector<double> values;
  for (const model::GpuStats& gpu : report.gpus) {
    if (!gpu.of_job.value_or(true)) continue;
    const std::optional<double> value = FigureOf(gpu.stats, field, figure);
    if (value && std::isfinite(*value)) values.push_back(*value);
  }
  return values;
}

// "45 %, lowest 16 %" of several GPUs.
void AddMean(const Report& report, std::string_view field, Gauge gauge, Language language,
             std::vector<Gauge>* gauges) {
  const std::vector<double> values = OfJob(report, field, &Stat::mean);
  if (values.empty()) return;
  double sum = 0;
  for (const double value : values) sum += value;
  const double mean = sum / static_cast<double>(values.size());
  std::string text = Percent(mean).value_or("");
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  if (*high - *low >= 0.05) {
    text += fmt::format(" ({} {}, {} {})", Text(Phrase::kLowest, language), *Percent(*low),
                        Text(Phrase::kHighest, language), *Percent(*high));
  }
  gauge.ratio = mean;
  gauge.text = std::move(text);
  gauges->push_back(std::move(gauge));
}

// "5.6 GB of 150.8 GB".
std::string PartOf(double part, std::optional<double> whole, Language language) {
  const std::string text = Bytes(part).value_or("");
  const std::optional<std::string> of = Bytes(whole);
  return of ? fmt::format("{}{}{}", text, Text(Phrase::kOfGpus, language), *of) : text;
}

std::optional<double> RatioOf(double part, std::optional<double> whole) {
  if (!whole || !(*whole > 0)) return {};
  return part / *whole;
}

// The GPU that was fullest at its peak.
void AddGpuMemory(const Report& report, Language language, std::vector<Gauge>* gauges) {
  std::optional<Gauge> fullest;
  for (const model::GpuStats& gpu : report.gpus) {
    const std::optional<double> used = FigureOf(gpu.stats, "memory_used_bytes", &Stat::max);
    if (!gpu.of_job.value_or(true) || !used) continue;
    const std::optional<double> total = FigureOf(gpu.stats, "memory_total_bytes", &Stat::max);
    const std::optional<double> ratio = RatioOf(*used, total);
    if (fullest && fullest->ratio.value_or(0) >= ratio.value_or(0)) continue;
    fullest = Gauge{
        .name = Phrase::kGpuMemoryPeak, .ratio = ratio, .text = PartOf(*used, total, language)};
  }
  if (fullest) gauges->push_back(*fullest);
}

// The last value of a host series; nothing when the run has none.
std::optional<double> LastOfHost(const Run& run, const Report& report, std::string_view field) {
  for (const model::Curve& curve : report.curves) {
    const bool host = curve.entity < run.entities.size() &&
                      run.entities[curve.entity].scope == model::Scope::kHost;
    if (host && curve.field == field && !curve.points.value.empty()) {
      return curve.points.value.back();
    }
  }
  return {};
}

void AddHost(const Run& run, const Report& report, Language language, std::vector<Gauge>* gauges) {
  if (const auto cpu = FigureOf(report.host, "cpu_ratio", &Stat::mean)) {
    std::string text = Percent(cpu).value_or("");
    if (const auto cores = Cores(FigureOf(report.process, "cpu_cores", &Stat::mean))) {
      text += fmt::format(" ({})", Fill(Phrase::kJobCores, language, *cores));
    }
    gauges->push_back({.name = Phrase::kHostCpu, .ratio = cpu, .text = text});
  }
  const auto used = FigureOf(report.host, "memory_used_bytes", &Stat::max);
  const auto job = FigureOf(report.process, "rss_bytes", &Stat::max);
  if (used) {
    const std::optional<double> total = LastOfHost(run, report, "memory_total_bytes");
    std::string text = PartOf(*used, total, language);
    if (job) text += fmt::format(" ({} {})", Text(Phrase::kJob, language), Bytes(job).value_or(""));
    gauges->push_back(
        {.name = Phrase::kHostMemoryPeak, .ratio = RatioOf(*used, total), .text = text});
  } else if (job) {
    gauges->push_back({.name = Phrase::kTreeRam, .ratio = {}, .text = Bytes(job).value_or("")});
  }
}

// What is little used, or runs full.
Tint GaugeTint(const Gauge& gauge) {
  const double ratio = gauge.ratio.value_or(0);
  if (gauge.yellow_below > 0) {
    return ratio < gauge.red_below      ? Tint::kRed
           : ratio < gauge.yellow_below ? Tint::kYellow
                                        : Tint::kGreen;
  }
  return ratio >= 0.95 ? Tint::kRed : ratio >= 0.85 ? Tint::kYellow : Tint::kCyan;
}

}  // namespace

std::optional<double> FigureOf(const model::StatTable& table, std::string_view field,
                               std::optional<double> Stat::*figure) {
  for (const auto& [name, stat] : table) {
    if (name == field) return stat.*figure;
  }
  return {};
}

Bar MakeBar(double ratio, size_t width, bool ascii) {
  const double part = std::isnan(ratio) ? 0 : std::clamp(ratio, 0.0, 1.0);
  const double columns = part * static_cast<double>(width);
  auto full = static_cast<size_t>(ascii ? std::round(columns) : std::floor(columns));
  Bar bar;
  for (size_t i = 0; i < full; ++i) bar.filled += ascii ? "#" : "█";
  const auto eighths = static_cast<size_t>((columns - std::floor(columns)) * 8);
  if (!ascii && eighths > 0 && full < width) {
    bar.filled += kEighths[eighths];
    ++full;
  }
  for (size_t i = full; i < width; ++i) bar.rest += ascii ? "." : "·";
  return bar;
}

std::vector<Gauge> GaugesOf(const Run& run, const Report& report, Language language) {
  std::vector<Gauge> gauges;
  AddMean(report, "utilization_ratio",
          {.name = Phrase::kGpuUtilization, .red_below = 0.25, .yellow_below = 0.5}, language,
          &gauges);
  AddMean(report, "sm_active_ratio",
          {.name = Phrase::kSmActivity, .red_below = 0.1, .yellow_below = 0.25}, language, &gauges);
  AddGpuMemory(report, language, &gauges);
  AddHost(run, report, language, &gauges);
  return gauges;
}

void AddGauges(const std::vector<Gauge>& gauges, Page* page) {
  constexpr size_t kNarrow = 20, kWide = 36, kWidePage = 100;
  const size_t columns = page->width() >= kWidePage ? kWide : kNarrow;
  size_t names = 0;
  for (const Gauge& gauge : gauges) names = std::max(names, DisplayWidth(page->Word(gauge.name)));
  for (const Gauge& gauge : gauges) {
    const std::string_view name = page->Word(gauge.name);
    std::string bar(columns + 2, ' ');
    if (gauge.ratio) {
      const Bar parts = MakeBar(*gauge.ratio, columns, page->options().ascii);
      bar = fmt::format("[{}{}]", page->Tinted(parts.filled, GaugeTint(gauge)),
                        page->Tinted(parts.rest, Tint::kDim));
    }
    const size_t before = 2 + names + 2 + columns + 2 + 2;
    page->Line(fmt::format("  {}{}  {}  {}", name, std::string(names - DisplayWidth(name), ' '),
                           bar,
                           CutTo(gauge.text, page->width() - std::min(page->width() - 8, before),
                                 page->options().ascii)));
  }
}

}  // namespace epochmeter::render
