// SPDX-License-Identifier: Apache-2.0
#include "diagnose/not_measured.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/strings.h"
#include "diagnose/not_measured_epochs.h"
#include "diagnose/not_measured_sources.h"
#include "diagnose/own_gpus.h"
#include "diagnose/say.h"

namespace epochmeter::diagnose {
namespace {

using model::Event;
using model::EventKind;
using model::Message;
using model::NotMeasured;
using model::Run;
using model::Scope;

bool HasFigure(const model::StatTable& table, std::string_view field) {
  return std::any_of(table.begin(), table.end(),
                     [&](const auto& entry) { return entry.first == field; });
}

bool HasEvents(const Run& run) {
  if (!run.steps.empty()) return true;
  return std::any_of(run.events.begin(), run.events.end(), [](const Event& event) {
    return event.kind == EventKind::kHello || event.kind == EventKind::kTrainBegin ||
           event.kind == EventKind::kEpochBegin;
  });
}

// What the absence of something means once bytes of the run file are gone.
const Message& DamagedReason() {
  static const Message kReason{.en = "not known: a part of the file is damaged or missing",
                               .zh = "未知：文件有一部分损坏或缺失"};
  return kReason;
}

bool IsDamaged(const Run& run) {
  const auto is_damage = [](const model::Loss& loss) {
    return base::StartsWith(loss.kind, "file.") && loss.severity != model::LossSeverity::kInfo;
  };
  if (std::any_of(run.losses.begin(), run.losses.end(), is_damage)) return true;
  if (run.store == nullptr) return false;
  const std::vector<model::Loss> found = run.store->LossesFound();
  return std::any_of(found.begin(), found.end(), is_damage);
}

// The time in which the machine slept: no clock of the run counts it.
void AddSuspends(const Run& run, std::vector<NotMeasured>* list) {
  for (const Event& event : run.events) {
    if (event.kind != EventKind::kSource || event.name != "clock.suspended") continue;
    const double since_s = base::SecondsFromNs(event.t_ns - run.Recorded().begin_ns);
    list->push_back(MakeNotMeasured(
        Say("{} before +{}", "+{1} 之前的 {0}",
            base::FormatDuration(event.Number("for_s").value_or(0)), base::FormatDuration(since_s)),
        {.en = "suspended: the machine slept", .zh = "机器处于休眠"}));
  }
}

// Steps that hooks saw without any loss: they can't see every loop's.
void AddLoss(const model::Report& report, std::vector<NotMeasured>* list) {
  if (report.progress_source != "hook") return;
  bool steps = false;
  for (const model::EpochRow& row : report.epochs) {
    steps |= row.steps > 0;
    // "loss", "train_loss" and their like.
    const auto is_loss = [](const auto& scalar) {
      return scalar.first.find("loss") != std::string::npos;
    };
    if (std::any_of(row.scalars.begin(), row.scalars.end(), is_loss)) return;
  }
  if (!steps) return;
  list->push_back(MakeNotMeasured(
      {.en = "loss", .zh = "loss"},
      {.en = "the hooks saw none: they do not read it in a plain loop on a GPU, inside "
             "tf.function, or with several losses a step; epochmeter.log(loss=...) tells it",
       .zh =
           "钩子没有看到 loss：在 GPU 上的自写循环、tf.function 之内或一步有多个 loss 时不会读取；"
           "可用 epochmeter.log(loss=...) 上报"}));
}

// A sampler that never came to tell of any GPU is not the absence of GPUs.
Message WhyNoGpu(const model::Report& report) {
  for (const model::Incident& incident : report.incidents) {
    if (incident.kind == "sampler") return {.en = incident.text, .zh = incident.text_zh};
  }
  return {.en = "the run has no GPU", .zh = "本次运行没有 GPU"};
}

void AddMissing(const Run& run, const model::Report& report, bool gpu_source_failed,
                std::vector<NotMeasured>* list) {
  const bool damaged = IsDamaged(run);
  const bool imported = IsImported(run);
  const auto add = [&](Message subject, Message reason) {
    if (imported) reason = {.en = "not in the imported file", .zh = "导入的文件中没有"};
    if (damaged) reason = DamagedReason();
    list->push_back(MakeNotMeasured(std::move(subject), std::move(reason)));
  };
  const Message none{.en = "the client reported none", .zh = "客户端没有上报"};
  if (run.EntitiesOf(Scope::kGpu).empty() && !gpu_source_failed) {
    add({.en = "GPU", .zh = "GPU"}, WhyNoGpu(report));
  }
  if (report.epochs.empty()) {
    const Message silent{.en = "no client spoke to the recorder", .zh = "没有客户端与记录器通信"};
    add({.en = "epochs and steps", .zh = "轮次与步"}, HasEvents(run) ? none : silent);
  } else if (run.EntitiesOf(Scope::kRank).empty()) {
    add({.en = "allocator memory", .zh = "分配器显存"}, none);
  }
  if (!HasFigure(report.host, "cpu_ratio")) {
    add({.en = "host CPU", .zh = "主机 CPU"},
        {.en = "no two readings of its counters", .zh = "其计数器没有两次读数"});
  }
  if (!HasFigure(report.host, "memory_used_bytes")) {
    add({.en = "host memory", .zh = "主机内存"}, {.en = "no reading of it", .zh = "没有读数"});
  }
  if (!damaged) {
    AddLostGpus(run, report, list);
    AddLostEnergy(report, list);
    AddLoss(report, list);
  }
  const Message few{.en = "too few readings of its counters in it", .zh = "其间计数器的读数太少"};
  AddEpochsWithout(report, damaged ? DamagedReason() : few, list);
}

}  // namespace

bool IsImported(const Run& run) {
  return run.info && !Find(run.info->attributes, "source").empty();
}

std::vector<NotMeasured> FindNotMeasured(const Run& run, const model::Report& report) {
  std::vector<NotMeasured> list;
  const bool gpu_source_failed = AddFailedSources(run, &list);
  AddReadLess(run, &list);
  AddStates(run, report, &list);
  AddSuspends(run, &list);
  AddMissing(run, report, gpu_source_failed, &list);
  return list;
}

}  // namespace epochmeter::diagnose
