// SPDX-License-Identifier: Apache-2.0
// Errors of the device memory in this run. Needs ECC counters, states of row replacement, or the
// driver's events.
//
// Only growth during the run counts: what the counters had before, and the counts over the board's
// life, are old. Corrected errors do no harm by themselves; many of them announce worse. A row that
// waits for its replacement since before the run is only remarked on. Boards without ECC can't
// tell.
#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "diagnose/activity.h"
#include "diagnose/counters.h"
#include "diagnose/rules/all.h"
#include "diagnose/say.h"
#include "diagnose/throttling.h"
#include "model/limits.h"

namespace epochmeter::diagnose {
namespace {

using model::Finding;
using model::Severity;

enum class Kind : uint8_t { kUncorrected, kSpareGone, kRowReplaced, kStorm, kCorrected, kPending };
constexpr std::array kKinds = {Kind::kUncorrected, Kind::kSpareGone, Kind::kRowReplaced,
                               Kind::kStorm,       Kind::kCorrected, Kind::kPending};

// Errors of one kind on one GPU.
struct Errors {
  int32_t gpu = -1;
  double count = 0;
  bool ended = false;  // the training made no step afterwards
  model::Evidence evidence;
};
using Found = std::map<Kind, std::vector<Errors>>;

// Evidence of a counter that grew.
model::Evidence EvidenceOf(const Growth& growth, std::string_view field) {
  return {.series = growth.series,
          .interval = growth.when,
          .values = {{std::string(field), growth.value}},
          .note = {},
          .steps = {}};
}

void AddGrowth(const Facts& facts, const model::EntityDef& gpu, int32_t index,
               std::string_view field, Kind kind, Found* found) {
  const std::optional<Growth> growth = GrowthInRun(facts, gpu, field);
  if (!growth || growth->value <= 0) return;
  const bool ended = kind == Kind::kUncorrected && EndedAt(facts, index, growth->when.end_ns);
  (*found)[kind].push_back({.gpu = index,
                            .count = growth->value,
                            .ended = ended,
                            .evidence = EvidenceOf(*growth, field)});
}

void AddCorrected(const Facts& facts, const model::EntityDef& gpu, int32_t index, Found* found) {
  constexpr std::string_view kField = "ecc_corrected_volatile_errors";
  const std::optional<Growth> growth = GrowthInRun(facts, gpu, kField);
  if (!growth) return;
  const Limits& limits = facts.limits();
  const double hours = std::max(growth->seconds / 3600, 1.0);
  const bool storm = growth->value / hours >= limits["ecc_errors.storm_per_hour"];
  if (!storm && growth->value < limits["ecc_errors.corrected_info"]) return;
  (*found)[storm ? Kind::kStorm : Kind::kCorrected].push_back(
      {.gpu = index, .count = growth->value, .evidence = EvidenceOf(*growth, kField)});
}

void AddState(const Facts& facts, const model::EntityDef& gpu, int32_t index,
              std::string_view field, Found* found) {
  const std::optional<FirstAndLast> state = StateInRun(facts, gpu, field);
  if (!state || state->last < 1) return;
  const bool failed = field == "row_remap_failed";
  const Kind kind = failed ? Kind::kSpareGone : Kind::kPending;
  model::Evidence evidence{.series = "gpu" + std::to_string(index) + " " + std::string(field),
                           .interval = facts.run().Recorded(),
                           .values = {{"first", state->first}, {"last", state->last}},
                           .note = {},
                           .steps = {}};
  (*found)[kind].push_back({.gpu = index, .count = 1, .evidence = std::move(evidence)});
}

struct EventKindRow {
  std::string_view event;
  Kind kind;
};
constexpr std::array kEvents = {EventKindRow{"gpu.ecc_uncorrected", Kind::kUncorrected},
                                EventKindRow{"gpu.ecc_storm", Kind::kStorm},
                                EventKindRow{"gpu.dram_retired", Kind::kRowReplaced},
                                EventKindRow{"gpu.dram_retirement_failed", Kind::kSpareGone}};

// What the driver told as events and no counter shows.
void AddEvents(const Facts& facts, const std::set<int32_t>& gpus, Found* found) {
  for (const model::Event& event : facts.run().events) {
    if (event.kind != model::EventKind::kSource) continue;
    const auto row = std::find_if(kEvents.begin(), kEvents.end(), [&](const EventKindRow& known) {
      return known.event == event.name;
    });
    const auto gpu = model::WholeOf(event.Number("gpu").value_or(-1));
    if (row == kEvents.end() || !gpu || gpus.count(static_cast<int32_t>(*gpu)) == 0) continue;
    const auto index = static_cast<int32_t>(*gpu);
    auto& list = (*found)[row->kind];
    const bool known = std::any_of(list.begin(), list.end(),
                                   [&](const Errors& errors) { return errors.gpu == index; });
    if (known) continue;
    model::Evidence evidence{.series = "gpu" + std::to_string(index),
                             .interval = {.begin_ns = event.t_ns, .end_ns = event.t_ns},
                             .values = {{"events", 1}},
                             .note = {.en = event.name, .zh = event.name},
                             .steps = {}};
    list.push_back({.gpu = index,
                    .count = 1,
                    .ended = EndedAt(facts, index, event.t_ns),
                    .evidence = std::move(evidence)});
  }
}

struct Words {
  Severity severity;
  model::Message what;  // with the number of errors
  model::Message action;
};

Words WordsOf(Kind kind, double count) {
  const model::Message replace =
      Say("Take the node out of service after this job, reset the GPU and run dcgmi diag -r 3; a "
          "board whose errors come again goes back.",
          "作业结束后将节点下线，重置 GPU 并运行 dcgmi diag -r 3；若错误再次出现则返修板卡。");
  const model::Message reset =
      Say("Reset the GPU between jobs (nvidia-smi --gpu-reset -i N): the spare row is used then.",
          "在作业之间重置 GPU（nvidia-smi --gpu-reset -i N），备用行随后生效。");
  const std::string number = fmt::format("{:.0f}", count);
  switch (kind) {
    case Kind::kUncorrected:
      return {
          Severity::kWarning,
          Say("{} memory errors that could not be corrected", "{} 个无法纠正的显存错误", number),
          replace};
    case Kind::kSpareGone:
      return {Severity::kWarning,
              Say("a faulty memory row that could not be replaced: no spare is left",
                  "出错的显存行无法替换：备用行已用尽"),
              Say("Have the board replaced.", "更换板卡。")};
    case Kind::kRowReplaced:
      return {Severity::kWarning,
              Say("{} memory rows or pages taken out of use in this run",
                  "本次运行中有 {} 个显存行或页被停用", number),
              reset};
    case Kind::kStorm:
      return {Severity::kWarning,
              Say("{} corrected memory errors, many for so short a time",
                  "{} 个已纠正的显存错误，短时间内数量过多", number),
              replace};
    case Kind::kCorrected:
      return {Severity::kInfo, Say("{} corrected memory errors", "{} 个已纠正的显存错误", number),
              Say("Nothing now; look again when they grow.", "暂无需处理；若继续增长再检查。")};
    case Kind::kPending:
      break;
  }
  return {Severity::kInfo,
          Say("a memory row waits for its replacement at the next reset",
              "有显存行等待在下次重置时被替换"),
          reset};
}

Finding Told(Kind kind, const std::vector<Errors>& list) {
  double count = 0;
  std::set<int32_t> gpus;
  bool ended = false;
  const Errors* worst = &list.front();
  for (const Errors& errors : list) {
    count += errors.count;
    gpus.insert(errors.gpu);
    ended = ended || errors.ended;
    if (errors.count > worst->count) worst = &errors;
  }
  const Words words = WordsOf(kind, count);
  Finding finding;
  finding.severity = ended ? Severity::kCritical : words.severity;
  if (gpus.size() == 1) finding.gpu = *gpus.begin();
  const model::Message on = SayGpus(gpus.size(), worst->gpu);
  finding.summary = {
      .en = on.en + ": " + words.what.en + (ended ? "; no step followed." : "."),
      .zh = on.zh + "：" + words.what.zh + (ended ? "；此后没有再完成任何一步。" : "。")};
  finding.explanation =
      kind == Kind::kPending || kind == Kind::kSpareGone
          ? Say("A state of the board that the driver tells.", "由驱动报告的板卡状态。")
          : Say("Growth of the driver's counters during this run; older counts are left out.",
                "仅计入本次运行期间计数器的增长，不含以往的计数。");
  finding.advice.push_back({.framework = "", .text = words.action, .code = ""});
  for (size_t i = 0; i < std::min<size_t>(list.size(), 3); ++i) {
    finding.evidence.push_back(list[i].evidence);
  }
  return finding;
}

Judgement Judge(const Facts& facts) {
  Found found;
  std::set<int32_t> gpus;
  bool any = false;
  for (const int32_t index : GpusOfJob(facts)) {
    const model::EntityDef* gpu = facts.Gpu(index);
    if (gpu == nullptr) continue;
    gpus.insert(index);
    for (const std::string_view field :
         {"ecc_uncorrected_volatile_errors", "ecc_corrected_volatile_errors", "row_remap_failed",
          "row_remap_pending", "retired_pages_pending"}) {
      any = any || facts.run().FindSeries(gpu->id, field).has_value();
    }
    AddGrowth(facts, *gpu, index, "ecc_uncorrected_volatile_errors", Kind::kUncorrected, &found);
    for (const std::string_view field : {"remapped_rows_corrected", "remapped_rows_uncorrected",
                                         "retired_pages_single_bit", "retired_pages_double_bit"}) {
      AddGrowth(facts, *gpu, index, field, Kind::kRowReplaced, &found);
    }
    AddCorrected(facts, *gpu, index, &found);
    for (const std::string_view field :
         {"row_remap_failed", "row_remap_pending", "retired_pages_pending"}) {
      AddState(facts, *gpu, index, field, &found);
    }
  }
  AddEvents(facts, gpus, &found);
  if (!any && found.empty()) {
    return NotApplicable(
        Say("no GPU of the job has counters of memory errors", "作业的 GPU 均没有显存错误计数"));
  }
  Judgement judgement;
  for (const Kind kind : kKinds) {
    const auto list = found.find(kind);
    if (list != found.end()) judgement.findings.push_back(Told(kind, list->second));
  }
  return judgement;
}

}  // namespace

namespace rules {

const RuleDef kEccErrors = {
    .id = "ecc_errors",
    .Title = [] { return Say("The GPU's memory had errors", "GPU 显存出现错误"); },
    .Judge = Judge};

}  // namespace rules
}  // namespace epochmeter::diagnose
