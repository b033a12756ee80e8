// SPDX-License-Identifier: Apache-2.0
#include "render/header.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/redact.h"
#include "base/strings.h"
#include "render/columns.h"

namespace epochmeter::render {
namespace {

using model::Report;
using model::Run;

constexpr std::string_view kDot = " · ";

std::string LabelOf(const model::Labels& labels, std::string_view key) {
  for (const auto& [name, value] : labels) {
    if (name == key) return value;
  }
  return {};
}

std::string JoinKnown(const std::vector<std::string>& parts) {
  std::vector<std::string> known;
  std::copy_if(parts.begin(), parts.end(), std::back_inserter(known),
               [](const std::string& part) { return !part.empty(); });
  return base::Join(known, kDot);
}

// "2 × NVIDIA H200", one part for each model.
std::string GpuModels(const Run& run, const Report& report) {
  std::vector<std::pair<std::string, int>> models;
  for (const model::GpuStats& gpu : report.gpus) {
    const std::string name = GpuName(run, gpu);
    const auto known = std::find_if(models.begin(), models.end(),
                                    [&](const auto& entry) { return entry.first == name; });
    if (known == models.end()) {
      models.emplace_back(name, 1);
    } else {
      ++known->second;
    }
  }
  std::vector<std::string> parts;
  parts.reserve(models.size());
  for (const auto& [name, count] : models) {
    parts.push_back(fmt::format("{} × {}", count, name.empty() ? "GPU" : name));
  }
  return base::Join(parts, ", ");
}

// Of the run, else of its first GPU.
std::string Driver(const Run& run) {
  const std::string of_run = RunAttribute(run, "driver");
  if (!of_run.empty()) return Plain(of_run);
  for (const model::EntityDef* gpu : run.EntitiesOf(model::Scope::kGpu)) {
    return Plain(LabelOf(gpu->attributes, "driver_version"));
  }
  return {};
}

}  // namespace

std::string EndWords(const Run& run, const Report& report, const TextOptions& options) {
  const Language language = options.language;
  if (!run.end) {
    return std::string(Text(options.live ? Phrase::kStillRunning : Phrase::kNoEnd, language));
  }
  const std::string oom =
      report.oom_cgroup.empty()
          ? std::string()
          : fmt::format(", {} {}", Text(Phrase::kOomKiller, language), Plain(report.oom_cgroup));
  if (run.end->exit_code) {
    return fmt::format("{} {}{}", Text(Phrase::kExitCode, language), *run.end->exit_code, oom);
  }
  if (run.end->signal) {
    return fmt::format("{} {}{}", Text(Phrase::kSignal, language), *run.end->signal, oom);
  }
  const std::string reason = Plain(run.end->reason);
  const std::string unknown(Text(Phrase::kEndUnknown, language));
  return reason.empty() ? unknown : fmt::format("{} ({})", unknown, reason);
}

std::string RunTitle(const Run& run) {
  std::string name = RunAttribute(run, "name");
  if (!name.empty()) return Plain(name);
  return run.info ? Plain(run.info->run_id) : std::string();
}

std::string RunAttribute(const Run& run, std::string_view key) {
  return run.info ? LabelOf(run.info->attributes, key) : std::string();
}

std::string GpuName(const Run& run, const model::GpuStats& gpu) {
  for (const model::EntityDef* entity : run.EntitiesOf(model::Scope::kGpu)) {
    if (LabelOf(entity->labels, "gpu") != std::to_string(gpu.gpu)) continue;
    for (const std::string_view key : {"model_name", "model", "name"}) {
      const std::string name = LabelOf(entity->attributes, key);
      if (!name.empty()) return Plain(name);
    }
  }
  return {};
}

std::vector<std::string> HeaderLines(const Run& run, const Report& report, Phrase title,
                                     const TextOptions& options) {
  const Language language = options.language;
  std::vector<std::string> lines;
  const auto shown = [&](const std::string& text) {
    return Plain(options.redact ? base::Redactor().Text(text) : text);
  };
  lines.push_back(
      JoinKnown({fmt::format("epochmeter {}", Text(title, language)), shown(RunTitle(run))}));
  const auto add = [&](Phrase name, const std::string& value) {
    if (value.empty()) return;
    const std::string line =
        fmt::format("  {}{}{}", Text(name, language), Text(Phrase::kColon, language), value);
    lines.push_back(CutTo(line, options.width, options.ascii));
  };
  add(Phrase::kCommand, shown(RunAttribute(run, "command")));
  const std::string driver = Driver(run);
  add(Phrase::kHost, JoinKnown({shown(RunAttribute(run, "host")), GpuModels(run, report),
                                driver.empty() ? driver : fmt::format("driver {}", driver)}));
  const auto begin_ns = run.WallNs(run.Recorded().begin_ns);
  add(Phrase::kStarted, begin_ns ? base::FormatUtc(*begin_ns) : std::string());
  add(Phrase::kDuration,
      JoinKnown({report.duration_s > 0 ? base::FormatDuration(report.duration_s) : std::string(),
                 EndWords(run, report, options)}));
  if (report.progress_source == "output") {
    add(Phrase::kSteps,
        language == Language::kChinese ? "读自训练的输出" : "read from the training's output");
  }
  return lines;
}

}  // namespace epochmeter::render
