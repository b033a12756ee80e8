// SPDX-License-Identifier: Apache-2.0
#include "cli/log_findings.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

namespace epochmeter::cli {
namespace {

using model::LogPlace;

// All others judge what was sampled beside the training: GPUs, hosts, processes.
constexpr std::string_view kRules[] = {
    "out_of_memory",   "gpu_memory_leak", "printed_memory_growth",
    "shm_exhaustion",  "data_starvation", "slowing_down",
    "step_outlier",    "periodic_stall",  "straggler_rank",
    "loss_not_finite", "loss_spike"};
constexpr size_t kMostLines = 12;

// A cell of a column that holds line or file numbers.
uint64_t Number(const std::vector<double>* column, size_t row) {
  const double value = column == nullptr ? 0 : (*column)[row];
  return value >= 0 && value < 1e15 ? static_cast<uint64_t>(value) : 0;
}

class Lines {
 public:
  explicit Lines(const model::Run& run) : run_(run) {}

  std::vector<LogPlace> Of(const model::Finding& finding) {
    places_.clear();
    AddFailures(finding);
    for (const model::Evidence& evidence : finding.evidence) {
      if (evidence.steps.empty()) {
        AddInterval(finding, evidence.interval);
      } else {
        AddSteps(finding, evidence.steps);
      }
    }
    return std::move(places_);
  }

 private:
  static bool Concerns(const model::Finding& finding, const model::ProcessKey& process) {
    return !finding.rank || *finding.rank == process.rank;
  }

  void Add(uint64_t file, uint64_t line) {
    const auto same = [file, line](const LogPlace& place) {
      return place.file == file && place.line == line;
    };
    if (line == 0 || places_.size() == kMostLines) return;
    if (std::any_of(places_.begin(), places_.end(), same)) return;
    places_.push_back({.file = static_cast<uint32_t>(file), .line = line});
  }

  void AddRow(const model::StepTable& table, size_t row) {
    Add(Number(table.Column("file"), row), Number(table.Column("line"), row));
  }

  void AddSteps(const model::Finding& finding, const std::vector<int64_t>& steps) {
    for (const auto& [process, table] : run_.steps) {
      if (!Concerns(finding, process)) continue;
      for (const int64_t step : steps) {
        const auto at = std::find(table.step.begin(), table.step.end(), step);
        if (at != table.step.end()) AddRow(table, static_cast<size_t>(at - table.step.begin()));
      }
    }
  }

  // What ran out of memory, the last ones first: they ended it.
  void AddFailures(const model::Finding& finding) {
    if (finding.rule != "out_of_memory" && finding.rule != "shm_exhaustion") return;
    for (auto event = run_.events.rbegin(); event != run_.events.rend(); ++event) {
      const bool memory = event->name.find("oom") != std::string::npos || event->name == "killed";
      const bool space = finding.rule == "shm_exhaustion";
      if (event->kind != model::EventKind::kException || (!memory && !space)) continue;
      if (finding.rank && event->rank && *finding.rank != *event->rank) continue;
      Add(static_cast<uint64_t>(event->Number("file").value_or(0)),
          static_cast<uint64_t>(event->Number("line").value_or(0)));
    }
  }

  // The first and the last of what happened in it; nothing of an interval that is the whole run.
  void AddInterval(const model::Finding& finding, model::Interval interval) {
    if (interval.begin_ns <= run_.span.begin_ns && interval.end_ns >= run_.span.end_ns) return;
    for (const auto& [process, table] : run_.steps) {
      if (!Concerns(finding, process)) continue;
      std::optional<size_t> first, last;
      for (size_t row = 0; row < table.size(); ++row) {
        if (!interval.Contains(table.t_ns[row])) continue;
        if (!first) first = row;
        last = row;
      }
      if (first) AddRow(table, *first);
      if (last) AddRow(table, *last);
    }
  }

  const model::Run& run_;
  std::vector<LogPlace> places_;
};

}  // namespace

std::vector<model::LogFinding> FindingsOfLog(const model::Run& run,
                                             const diagnose::ReportOptions& options) {
  std::vector<model::LogFinding> found;
  if (run.steps.empty() && run.events.empty()) return found;
  model::Report report = diagnose::BuildReport(run, options);
  Lines lines(run);
  for (model::Finding& finding : report.findings) {
    const bool ours =
        std::find(std::begin(kRules), std::end(kRules), finding.rule) != std::end(kRules);
    if (!ours || finding.severity == model::Severity::kNotApplicable) continue;
    std::vector<LogPlace> places = lines.Of(finding);
    found.push_back({.finding = std::move(finding), .lines = std::move(places)});
  }
  return found;
}

}  // namespace epochmeter::cli
