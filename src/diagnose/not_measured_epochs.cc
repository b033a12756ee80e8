// SPDX-License-Identifier: Apache-2.0
#include "diagnose/not_measured_epochs.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "base/clock.h"
#include "base/strings.h"
#include "diagnose/not_measured_sources.h"
#include "diagnose/say.h"

namespace epochmeter::diagnose {
namespace {

using model::EpochRow;
using model::Message;
using model::NotMeasured;

bool HasFigure(const model::StatTable& table, std::string_view field) {
  return std::any_of(table.begin(), table.end(),
                     [&](const auto& entry) { return entry.first == field; });
}

// Epochs that lack something.
struct EpochsOf {
  std::set<int64_t> epochs;
  int64_t first_end_ns = 0;  // the end of the first of them

  void Add(const EpochRow& row) {
    if (epochs.empty()) first_end_ns = row.end_ns;
    epochs.insert(row.epoch);
  }
  // "epoch 2, 3 and 4 more".
  Message Words() const {
    constexpr size_t kMostNamed = 5;
    std::vector<std::string> names, names_zh;
    for (const int64_t epoch : epochs) {
      if (names.size() == kMostNamed) break;
      const bool known = epoch != model::kNoEpoch;
      names.push_back(known ? std::to_string(epoch) : "without a number");
      names_zh.push_back(known ? std::to_string(epoch) : "无编号");
    }
    Message words{.en = "epoch " + base::Join(names, ", "),
                  .zh = "轮次 " + base::Join(names_zh, "、")};
    if (const size_t more = epochs.size() - names.size(); more > 0) {
      words.en += " and " + std::to_string(more) + " more";
      words.zh += " 及另外 " + std::to_string(more) + " 轮";
    }
    return words;
  }
};

// "gpu1 in epoch 2, 3".
Message InEpochs(const Message& what, const EpochsOf& epochs) {
  const Message words = epochs.Words();
  return {.en = what.en + " in " + words.en, .zh = what.zh + "（" + words.zh + "）"};
}

// What befell the GPU, or the sampler, last before an instant.
Message WhyLost(const model::Run& run, const std::vector<model::Incident>& incidents, int32_t gpu,
                int64_t before_ns) {
  const model::Incident* last = nullptr;
  for (const model::Incident& incident : incidents) {
    const bool of_gpu = incident.gpu == gpu || incident.kind == "sampler";
    if (of_gpu && incident.kind != "gpu.back" && incident.t_ns <= before_ns) last = &incident;
  }
  if (last == nullptr) return {.en = "it was not read in that time", .zh = "这段时间没有读取它"};
  const double since_s = base::SecondsFromNs(last->t_ns - run.Recorded().begin_ns);
  const std::string at = "+" + base::FormatDuration(since_s);
  const std::string& words_zh = last->text_zh.empty() ? last->text : last->text_zh;
  return {.en = base::Join({last->kind, " at ", at, ": ", last->text}, ""),
          .zh = base::Join({at, " 时 ", last->kind, "：", words_zh}, "")};
}

}  // namespace

void AddLostGpus(const model::Run& run, const model::Report& report,
                 std::vector<NotMeasured>* list) {
  std::map<int32_t, EpochsOf> lost;
  for (const EpochRow& row : report.epochs) {
    const std::vector<int32_t>& measured = row.own_gpus.measured;
    for (const int32_t gpu : row.own_gpus.gpus) {
      if (std::find(measured.begin(), measured.end(), gpu) == measured.end()) lost[gpu].Add(row);
    }
  }
  for (const auto& [gpu, epochs] : lost) {
    list->push_back(MakeNotMeasured(InEpochs(Say("gpu{}", "gpu{}", gpu), epochs),
                                    WhyLost(run, report.incidents, gpu, epochs.first_end_ns)));
  }
}

void AddLostEnergy(const model::Report& report, std::vector<NotMeasured>* list) {
  std::map<int32_t, EpochsOf> lost;
  std::set<int32_t> known;
  for (const model::GpuStats& gpu : report.gpus) {
    if (gpu.energy_j) known.insert(gpu.gpu);
  }
  for (const EpochRow& row : report.epochs) {
    const std::vector<int32_t>& measured = row.own_gpus.measured;
    for (const model::GpuStats& gpu : row.gpus) {
      if (gpu.energy_j) known.insert(gpu.gpu);
      const bool counts = std::find(measured.begin(), measured.end(), gpu.gpu) != measured.end();
      if (counts && !gpu.energy_j) lost[gpu.gpu].Add(row);
    }
  }
  for (const auto& [gpu, epochs] : lost) {
    if (known.count(gpu) == 0) continue;
    list->push_back(
        MakeNotMeasured(InEpochs(Say("gpu{} energy", "gpu{} 能耗", gpu), epochs),
                        {.en = "its counter was reset, stood still or was not read in time, and "
                               "the samples of power do not cover it",
                         .zh = "其计数器被清零、停住或没有及时读取，功率采样又没有覆盖这段时间"}));
  }
}

void AddEpochsWithout(const model::Report& report, const Message& reason,
                      std::vector<NotMeasured>* list) {
  const auto add = [&](const Message& subject, const model::StatTable& whole,
                       std::string_view field, model::StatTable EpochRow::*table) {
    EpochsOf lacking;
    for (const EpochRow& row : report.epochs) {
      if (!HasFigure(row.*table, field)) lacking.Add(row);
    }
    if (lacking.epochs.empty() || !HasFigure(whole, field)) return;
    list->push_back(MakeNotMeasured(InEpochs(subject, lacking), reason));
  };
  add({.en = "host CPU", .zh = "主机 CPU"}, report.host, "cpu_ratio", &EpochRow::host);
  add({.en = "job CPU", .zh = "任务 CPU"}, report.process, "cpu_cores", &EpochRow::process);
}

}  // namespace epochmeter::diagnose
