// SPDX-License-Identifier: Apache-2.0
// The driver reported an error (XID) of one of the job's GPUs, or lost the GPU. Needs the driver's
// events or its counter of them.
//
// One finding a code, over all GPUs. It is critical when the training made no step afterwards (or
// the code says that the GPU is not to be used). False positives: XIDs from before the recording
// are events of another name; 45 only follows a kill; a GPU that was given back on purpose is told
// by the recorder, not by the driver.
#include "diagnose/rules/xid_table.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "diagnose/counters.h"
#include "diagnose/rules/all.h"
#include "diagnose/say.h"
#include "model/limits.h"

namespace epochmeter::diagnose {
namespace {

using model::Event;
using model::Finding;
using model::Severity;

constexpr size_t kMostStepsNamed = 8;

// Trouble of one kind: an XID code, or a GPU that was lost.
struct Trouble {
  std::vector<const Event*> events;
  std::set<int32_t> gpus;
};

std::optional<int32_t> GpuOf(const Event& event) {
  const auto gpu = model::WholeOf(event.Number("gpu").value_or(NAN));
  if (!gpu || *gpu < 0 || *gpu > INT32_MAX) return {};
  return static_cast<int32_t>(*gpu);
}

// Whether the event is of a GPU that is another job's.
bool IsAnothers(const Facts& facts, const Event& event) {
  const std::optional<int32_t> gpu = GpuOf(event);
  if (!gpu) return false;
  for (const model::GpuStats& known : facts.report().gpus) {
    if (known.gpu == *gpu) return known.of_job.has_value() && !*known.of_job;
  }
  return false;
}

bool EndedBy(const Facts& facts, const Event& event) {
  return EndedAt(facts, GpuOf(event), event.t_ns);
}

struct Told {
  Severity severity = Severity::kInfo;
  model::Message what, action;
  std::string name;  // of the evidence's value
};

void AddEvidence(const Facts& facts, const Trouble& trouble, const Told& told, Finding* finding) {
  model::Evidence evidence;
  evidence.interval = {.begin_ns = trouble.events.front()->t_ns,
                       .end_ns = trouble.events.back()->t_ns};
  evidence.series = "gpu";
  if (const auto gpu = GpuOf(*trouble.events.front())) {
    evidence.series = "gpu" + std::to_string(*gpu) + " xids";
  }
  evidence.values = {{told.name, static_cast<double>(trouble.events.size())},
                     {"gpus", static_cast<double>(trouble.gpus.size())}};
  for (size_t i = 0; i < std::min(trouble.events.size(), kMostStepsNamed); ++i) {
    const Event& event = *trouble.events[i];
    const RankFacts* owner = OwnerOf(facts, GpuOf(event));
    const TrainStep* step = owner == nullptr ? nullptr : StepAt(*owner, event.t_ns);
    const bool named = step != nullptr && step->step != model::kNotKnown;
    const bool known = !named || (!evidence.steps.empty() && evidence.steps.back() == step->step);
    if (!known) evidence.steps.push_back(step->step);
  }
  if (const auto detail = trouble.events.front()->Text("detail")) {
    evidence.note = Say("the first: {}", "首次：{}", *detail);
  }
  finding->evidence.push_back(std::move(evidence));
}

model::Message WhereWords(const Facts& facts, const Trouble& trouble) {
  const Event& first = *trouble.events.front();
  const std::optional<int32_t> gpu = GpuOf(first);
  const double after_s = static_cast<double>(first.t_ns - facts.run().Recorded().begin_ns) / 1e9;
  model::Message text;
  if (trouble.gpus.size() > 1) {
    text = Say("{} GPUs, first gpu{}", "{} 块 GPU，最先是 gpu{}", trouble.gpus.size(),
               gpu.value_or(-1));
  } else if (gpu) {
    text = Say("gpu{}", "gpu{}", *gpu);
  } else {
    text = Say("a GPU", "某块 GPU");
  }
  const RankFacts* owner = OwnerOf(facts, gpu);
  if (owner != nullptr && trouble.gpus.size() <= 1 && facts.ranks().size() > 1) {
    text.en += " (" + owner->name + ")";
    text.zh += "（" + owner->name + "）";
  }
  const model::Message when =
      Say(", {} after the recording began", "，录制开始后 {}", SaySeconds(after_s));
  text.en += when.en;
  text.zh += when.zh;
  const TrainStep* step = owner == nullptr ? nullptr : StepAt(*owner, first.t_ns);
  if (step != nullptr && step->step != model::kNotKnown) {
    const model::Message in = Say(" in step {}", "，第 {} 步", step->step);
    text.en += in.en;
    text.zh += in.zh;
  }
  return text;
}

Finding Judged(const Facts& facts, const Trouble& trouble, Told told) {
  Finding finding;
  const bool ended =
      EndedBy(facts, *trouble.events.front()) || EndedBy(facts, *trouble.events.back());
  const bool raise = ended && told.severity != Severity::kInfo;
  finding.severity = raise ? Severity::kCritical : told.severity;
  if (trouble.gpus.size() == 1) {
    finding.gpu = *trouble.gpus.begin();
    const RankFacts* owner = OwnerOf(facts, finding.gpu);
    if (owner != nullptr) finding.rank = owner->rank;
    if (owner != nullptr) finding.pid = owner->pid;
  }
  const model::Message where = WhereWords(facts, trouble);
  const size_t times = trouble.events.size();
  finding.summary.en = told.what.en + ": " + where.en;
  finding.summary.zh = told.what.zh + "：" + where.zh;
  if (times > 1) {
    finding.summary.en += fmt::format(", {} times", times);
    finding.summary.zh += fmt::format("，共 {} 次", times);
  }
  if (ended) {
    finding.summary.en += "; the training made no step afterwards";
    finding.summary.zh += "；此后训练没有再完成任何一步";
  }
  finding.summary.en += ".";
  finding.summary.zh += "。";
  finding.explanation = Say("Told by the driver (in the kernel log as \"NVRM: Xid\").",
                            "由驱动报告（内核日志中为 “NVRM: Xid”）。");
  finding.advice.push_back({.framework = "", .text = told.action, .code = ""});
  AddEvidence(facts, trouble, told, &finding);
  return finding;
}

Told ToldOfXid(int64_t code) {
  const XidMeaning meaning = MeaningOf(code);
  model::Message what{.en = fmt::format("XID {} ({})", code, meaning.en),
                      .zh = fmt::format("XID {}（{}）", code, meaning.zh)};
  return {.severity = meaning.severity,
          .what = std::move(what),
          .action = XidAction(meaning),
          .name = "xid_" + std::to_string(code)};
}

struct LostKind {
  std::string_view event;
  Severity severity;
  std::string_view en, zh;
};
constexpr LostKind kLost[] = {
    {"gpu.lost", Severity::kCritical, "The GPU was lost", "GPU 丢失"},
    {"gpu.unavailable", Severity::kCritical, "The driver calls the GPU unavailable",
     "驱动报告 GPU 不可用"},
    {"gpu.fatal_poison", Severity::kCritical, "Damaged data in the GPU was used",
     "GPU 中的损坏数据被使用"},
    {"gpu.access_revoked", Severity::kWarning, "Access to the GPU was taken away",
     "对 GPU 的访问权限被收回"},
};

Told ToldOfLoss(const LostKind& kind) {
  model::Message action = XidAction(MeaningOf(79));
  if (kind.event == "gpu.access_revoked") {
    action =
        Say("A container loses its GPUs when systemd reloads its units: name the devices "
            "with --device, or use the cgroupfs driver; the training itself may go on.",
            "systemd 重新加载单元时容器会失去 GPU：用 --device 指定设备，或改用 cgroupfs "
            "驱动；训练本身可能不受影响。");
  }
  return {.severity = kind.severity,
          .what = {.en = std::string(kind.en), .zh = std::string(kind.zh)},
          .action = std::move(action),
          .name = "events"};
}

// Whether each GPU of the trouble answered again afterwards.
bool CameBack(const Facts& facts, const Trouble& trouble) {
  std::set<int32_t> back;
  for (const Event& event : facts.run().events) {
    const bool later = event.name == "gpu.back" && event.t_ns >= trouble.events.back()->t_ns;
    if (later && GpuOf(event)) back.insert(*GpuOf(event));
  }
  return !trouble.gpus.empty() &&
         std::includes(back.begin(), back.end(), trouble.gpus.begin(), trouble.gpus.end());
}

bool IsWatched(const Facts& facts) {
  return std::any_of(facts.run().series.begin(), facts.run().series.end(),
                     [](const model::SeriesDef& series) { return series.metric.field == "xids"; });
}

Judgement Judge(const Facts& facts) {
  std::map<int64_t, Trouble> by_code;
  std::map<std::string_view, Trouble> by_loss;
  std::set<int32_t> off_the_bus;
  const auto add = [](const Event& event, Trouble* trouble) {
    trouble->events.push_back(&event);
    if (const auto gpu = GpuOf(event)) trouble->gpus.insert(*gpu);
  };
  for (const Event& event : facts.run().events) {
    if (event.kind != model::EventKind::kSource || event.name.compare(0, 4, "gpu.") != 0) continue;
    if (IsAnothers(facts, event)) continue;
    if (event.name == "gpu.xid") {
      const auto code = model::WholeOf(event.Number("xid").value_or(NAN));
      if (!code) continue;
      add(event, &by_code[*code]);
      if (*code == 79 && GpuOf(event)) off_the_bus.insert(*GpuOf(event));
    }
    for (const LostKind& kind : kLost) {
      if (event.name == kind.event) add(event, &by_loss[kind.event]);
    }
  }
  if (by_code.empty() && by_loss.empty() && !IsWatched(facts)) {
    return NotApplicable(
        Say("the run has no events of the GPU driver", "该记录没有 GPU 驱动的事件"));
  }
  Judgement judgement;
  for (const auto& [code, trouble] : by_code) {
    judgement.findings.push_back(Judged(facts, trouble, ToldOfXid(code)));
  }
  for (const LostKind& kind : kLost) {
    const auto found = by_loss.find(kind.event);
    if (found == by_loss.end()) continue;
    // XID 79 says the same.
    const auto& gpus = found->second.gpus;
    const bool said = !gpus.empty() && std::includes(off_the_bus.begin(), off_the_bus.end(),
                                                     gpus.begin(), gpus.end());
    if (said) continue;
    Told told = ToldOfLoss(kind);
    if (CameBack(facts, found->second)) told.severity = Severity::kWarning;
    judgement.findings.push_back(Judged(facts, found->second, std::move(told)));
  }
  return judgement;
}

}  // namespace

namespace rules {

const RuleDef kXidError = {
    .id = "xid_error",
    .Title = [] { return Say("The GPU driver reported an error", "GPU 驱动报告了错误"); },
    .Judge = Judge};

}  // namespace rules
}  // namespace epochmeter::diagnose
