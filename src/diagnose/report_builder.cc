// SPDX-License-Identifier: Apache-2.0
#include "diagnose/report_builder.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "diagnose/bill.h"
#include "diagnose/curves.h"
#include "diagnose/epochs.h"
#include "diagnose/facts.h"
#include "diagnose/figures.h"
#include "diagnose/incidents.h"
#include "diagnose/not_measured.h"
#include "diagnose/not_measured_sources.h"
#include "diagnose/own_gpus.h"
#include "diagnose/rules.h"
#include "diagnose/steps.h"
#include "model/output_events.h"

namespace epochmeter::diagnose {
namespace {

using model::EpochRow;
using model::Event;
using model::EventKind;
using model::GpuStats;
using model::Report;
using model::Run;
using model::Stat;

// "hook" when a framework's loop or the optimizer of a plain one told, "client" when the script
// did, "output" when it was read from what the training prints, "none" without any.
std::string ProgressSource(const Run& run) {
  bool any = !run.steps.empty();
  bool output = std::any_of(run.steps.begin(), run.steps.end(), [](const auto& process) {
    return process.second.Column(model::kLineField) != nullptr;
  });
  for (const Event& event : run.events) {
    const auto source = event.Text("source");  // an older client has none, and its epochs say it
    if (event.kind == EventKind::kTrainBegin && (source == "hook" || source == "framework")) {
      return "hook";
    }
    if (event.kind != EventKind::kEpochBegin && event.kind != EventKind::kEpochEnd) continue;
    any = true;
    output |= model::IsFromOutput(event);
    if (event.Text("epoch_from") == "framework") return "hook";
  }
  if (output) return "output";
  return any ? "client" : "none";
}

double SecondsOf(model::Interval interval) {
  return base::SecondsFromNs(interval.end_ns - interval.begin_ns);
}

const Stat* FindStat(const GpuStats& gpu, std::string_view field) {
  for (const auto& [name, stat] : gpu.stats) {
    if (name == field) return &stat;
  }
  return nullptr;
}

// The values of one figure over the GPUs; nothing when one lacks it.
std::optional<std::vector<double>> Collect(const std::vector<const GpuStats*>& gpus,
                                           std::string_view field,
                                           std::optional<double> Stat::*figure) {
  std::vector<double> values;
  for (const GpuStats* gpu : gpus) {
    const Stat* stat = FindStat(*gpu, field);
    if (stat == nullptr || !(stat->*figure)) return {};
    values.push_back(*(stat->*figure));
  }
  if (values.empty()) return {};
  return values;
}

std::optional<double> Sum(const std::optional<std::vector<double>>& values) {
  if (!values) return {};
  double sum = 0;
  for (const double value : *values) sum += value;
  return sum;
}

std::optional<double> Mean(const std::optional<std::vector<double>>& values) {
  if (!values) return {};
  return *Sum(values) / static_cast<double>(values->size());
}

std::optional<double> Max(const std::optional<std::vector<double>>& values) {
  if (!values) return {};
  return *std::max_element(values->begin(), values->end());
}

std::optional<double> SumEnergy(const std::vector<const GpuStats*>& gpus) {
  double sum = 0;
  for (const GpuStats* gpu : gpus) {
    if (!gpu->energy_j) return {};
    sum += *gpu->energy_j;
  }
  if (gpus.empty()) return {};
  return sum;
}

// The frameworks' reserve stands in where the driver does not say whose the memory is; it is that
// of the rank's GPU only when the rank has one.
model::MemoryLedger LedgerOf(const std::vector<const GpuStats*>& gpus, const EpochRow& row) {
  model::MemoryLedger ledger{
      .own_max_bytes = Max(Collect(gpus, "own_memory_bytes", &Stat::max)),
      .others_max_bytes = Max(Collect(gpus, "others_memory_bytes", &Stat::max)),
      .unexplained_max_bytes = Max(Collect(gpus, "unexplained_memory_bytes", &Stat::max)),
      .own_source = "processes"};
  if (ledger.own_max_bytes) return ledger;
  ledger.own_source.clear();
  for (const auto& [field, stat] : row.framework) {
    if (gpus.size() != 1 || field != "reserved_bytes" || !stat.max) continue;
    ledger.own_max_bytes = stat.max;
    ledger.own_source = "allocator";
  }
  return ledger;
}

constexpr std::array<std::string_view, 5> kGroupFigures = {
    "utilization_ratio", "sm_active_ratio", "memory_used_bytes", "power_w", "temperature_c"};

const GpuStats* FindGpu(const std::vector<GpuStats>& gpus, int32_t index) {
  const auto gpu = std::find_if(gpus.begin(), gpus.end(),
                                [index](const GpuStats& known) { return known.gpu == index; });
  return gpu == gpus.end() ? nullptr : &*gpu;
}

// Whether a GPU was not measured as the others were: it has no figure at all, or lacks one that
// another has here and that it has itself in the whole run.
bool IsLeftOut(const GpuStats& gpu, const std::vector<const GpuStats*>& others,
               const std::vector<GpuStats>& whole_run) {
  const GpuStats* ever = FindGpu(whole_run, gpu.gpu);
  bool any = false;
  for (const std::string_view field : kGroupFigures) {
    any |= FindStat(gpu, field) != nullptr;
    const bool lacks =
        FindStat(gpu, field) == nullptr && ever != nullptr && FindStat(*ever, field) != nullptr;
    const bool others_have =
        std::any_of(others.begin(), others.end(),
                    [field](const GpuStats* other) { return FindStat(*other, field) != nullptr; });
    if (lacks && others_have) return true;
  }
  return !any;
}

void SetOwnGpus(const std::vector<int32_t>& own, const std::vector<GpuStats>& whole_run,
                EpochRow* row) {
  std::vector<const GpuStats*> all;
  for (const GpuStats& gpu : row->gpus) {
    if (std::find(own.begin(), own.end(), gpu.gpu) != own.end()) all.push_back(&gpu);
  }
  std::vector<const GpuStats*> gpus;
  std::vector<int32_t> measured;
  for (const GpuStats* gpu : all) {
    if (IsLeftOut(*gpu, all, whole_run)) continue;
    gpus.push_back(gpu);
    measured.push_back(gpu->gpu);
  }
  row->own_gpus = {.gpus = own,
                   .measured = std::move(measured),
                   .utilization_ratio = Mean(Collect(gpus, "utilization_ratio", &Stat::mean)),
                   .sm_active_ratio = Mean(Collect(gpus, "sm_active_ratio", &Stat::mean)),
                   .memory_used_max_bytes = Max(Collect(gpus, "memory_used_bytes", &Stat::max)),
                   .power_w = Sum(Collect(gpus, "power_w", &Stat::mean)),
                   .temperature_max_c = Max(Collect(gpus, "temperature_c", &Stat::max)),
                   .memory = LedgerOf(gpus, *row)};
  row->energy_j = SumEnergy(gpus);
}

// Rows of all ranks in the order of time, ranks side by side; what the client said is in them.
std::vector<EpochRow> ClientRows(const std::vector<RankEvents>& ranks,
                                 std::vector<model::AfterTraining>* after_training) {
  std::vector<EpochRow> all;
  for (const RankEvents& rank : ranks) {
    std::vector<EpochRow> rows = FindEpochs(rank);
    model::AfterTraining after{.rank = rank.rank, .pid = rank.pid, .scalars = {}, .phases = {}};
    AddSteps(rank, &rows);
    AddScalars(rank, &rows, &after);
    AddPhases(rank, &rows, &after);
    if (!after.scalars.empty() || !after.phases.empty()) {
      after_training->push_back(std::move(after));
    }
    if (all.empty()) {
      all = std::move(rows);
    } else {
      std::move(rows.begin(), rows.end(), std::back_inserter(all));
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const EpochRow& a, const EpochRow& b) {
    const auto key = [](const EpochRow& row) {
      return std::pair(row.rank.value_or(model::kNoRank), row.pid.value_or(0));
    };
    return key(a) < key(b);
  });
  return all;
}

std::vector<Target> TargetsOf(const Run& run, Report* report) {
  std::vector<Target> targets;
  for (EpochRow& row : report->epochs) {
    targets.push_back({.interval = {.begin_ns = row.begin_ns, .end_ns = row.end_ns},
                       .rank = row.rank,
                       .pid = row.pid,
                       .whole_run = false,
                       .gpus = &row.gpus,
                       .host = &row.host,
                       .process = &row.process,
                       .framework = &row.framework});
  }
  targets.push_back({.interval = run.span,
                     .rank = {},
                     .pid = {},
                     .whole_run = true,
                     .gpus = &report->gpus,
                     .host = &report->host,
                     .process = &report->process,
                     .framework = nullptr});
  return targets;
}

void AddSeriesFigures(const Run& run, bool with_curves, Report* report) {
  const std::vector<Target> targets = TargetsOf(run, report);
  const SeriesReader reader(run, &report->not_measured);
  AddGpuFigures(reader, targets);
  AddHostFigures(reader, targets);
  AddProcessFigures(reader, targets);
  AddFrameworkFigures(reader, targets);
  if (with_curves) AddCurves(reader, &report->curves);
}

// What the sampler last remarked on the choice of GPUs by the environment; nothing when it said
// nothing of it at all.
std::optional<std::string> ChoiceNote(const Run& run) {
  const auto choice = std::find_if(run.events.rbegin(), run.events.rend(),
                                   [](const Event& event) { return event.name == "gpu.choice"; });
  if (choice == run.events.rend()) return {};
  return std::string(choice->Text("note").value_or(""));
}

// Why it is not known which GPUs are the job's, or why none is, or which words of the environment
// were not followed. Silent for an imported run: what it has is all that is known of it.
void AddGpuChoice(const Run& run, const JobGpus& job, bool has_ranks, Report* report) {
  if (IsImported(run)) return;
  const std::optional<std::string> note = ChoiceNote(run);
  const size_t gpus = run.EntitiesOf(model::Scope::kGpu).size();
  model::Message subject{.en = "which GPUs are the job's", .zh = "哪些 GPU 属于本任务"};
  // The note names variables and their values, in any language.
  model::Message reason{.en = note.value_or(""), .zh = note.value_or("")};
  if (report->gpus.empty() && gpus > 0) {
    subject = {.en = "GPU", .zh = "GPU"};
    if (reason.empty()) {
      reason = {.en = "the environment of the job chooses none of them",
                .zh = "任务的环境变量没有选择任何 GPU"};
    }
    reason.en += "; --all-gpus shows the " + std::to_string(gpus) + " of this host";
    reason.zh += "；加 --all-gpus 可显示本机的 " + std::to_string(gpus) + " 块";
  } else if (!job.gpus && report->gpus.size() > 1) {
    if (reason.empty() && (note || has_ranks)) {
      reason = {.en = std::string(kJobGpusUnknown), .zh = std::string(kJobGpusUnknownZh)};
    }
  }
  if (reason.empty()) return;
  report->not_measured.push_back(MakeNotMeasured(std::move(subject), std::move(reason)));
}

}  // namespace

Report BuildReport(const Run& run, const ReportOptions& options) {
  Report report;
  report.progress_source = ProgressSource(run);
  report.framework = FrameworkOf(run);
  report.duration_s = SecondsOf(run.Recorded());
  const std::vector<RankEvents> ranks = SplitByRank(run);
  report.epochs = ClientRows(ranks, &report.after_training);
  report.incidents = FindIncidents(run, report.epochs);
  report.oom_cgroup = OomCgroup(run);
  AddSeriesFigures(run, options.judge, &report);
  const JobGpus job = FindJobGpus(run, ranks);
  MarkGpus(job, options.all_gpus, &report.gpus);
  auto row = report.epochs.begin();
  for (const RankEvents& rank : ranks) {
    const auto own = OwnGpus(run, rank, ranks.size() == 1 ? &job : nullptr);
    // Ranks and rows are in the same order.
    for (; row != report.epochs.end() && row->rank == rank.rank && row->pid == rank.pid; ++row) {
      MarkGpus(job, options.all_gpus, &row->gpus);
      if (own) SetOwnGpus(*own, report.gpus, &*row);
    }
  }
  std::vector<const GpuStats*> gpus;
  for (const GpuStats& gpu : report.gpus) {
    if (gpu.of_job.value_or(true)) gpus.push_back(&gpu);
  }
  report.energy_j = SumEnergy(gpus);
  AddGpuChoice(run, job, !ranks.empty(), &report);
  std::vector<model::NotMeasured> missing = FindNotMeasured(run, report);
  std::move(missing.begin(), missing.end(), std::back_inserter(report.not_measured));
  if (!options.judge) return report;
  const Facts facts(run, report, options.limits);
  report.findings = EvaluateRules(Rules(), facts);
  report.rules_judged = RulesJudged(Rules(), report.findings);
  report.bill = MakeBill(facts, options.rates);
  return report;
}

}  // namespace epochmeter::diagnose
