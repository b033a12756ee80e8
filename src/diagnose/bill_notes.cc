// SPDX-License-Identifier: Apache-2.0
#include "diagnose/bill_notes.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "diagnose/own_gpus.h"
#include "diagnose/say.h"

namespace epochmeter::diagnose {
namespace {

using model::Bill;
using model::Message;
using model::TimeUse;

// Counter and integral are compared where each covers at least so much.
constexpr double kComparable = 0.95;

std::string_view Weakest(const std::vector<std::string>& sources) {
  constexpr std::array<std::string_view, 4> kWeakestFirst = {
      "", "power_of_limit", "utilization_ratio", "sm_active_ratio"};
  for (const std::string_view source : kWeakestFirst) {
    if (std::find(sources.begin(), sources.end(), source) != sources.end()) return source;
  }
  return {};
}

// Checkpoints that a rule saw but nobody told of stand under the steps that they hold up.
void AddCheckpoints(const std::vector<model::Finding>& findings, const Bill& bill,
                    std::vector<Message>* notes) {
  if (bill.total.Of(TimeUse::kCheckpoint).ns > 0) return;
  for (const model::Finding& finding : findings) {
    if (finding.rule != "checkpoint_stall" || !finding.lost_gpu_s) continue;
    notes->push_back(
        Say("Checkpoints of about {} were seen by their pauses (checkpoint_stall). The training "
            "did not tell of them, so they count as productive or idle; with "
            "epochmeter.phase('checkpoint') around the save they have a line of their own.",
            "根据停顿推断出约 {} 的检查点保存（checkpoint_stall）。训练没有报告它们，因此计入"
            "有效训练或步间空闲；用 epochmeter.phase('checkpoint') 包住保存代码即可单独列出。",
            SaySeconds(*finding.lost_gpu_s)));
    return;
  }
}

void AddTime(const BillFacts& told, const Bill& bill, const std::vector<model::Finding>& findings,
             std::vector<Message>* notes) {
  if (bill.devices == 0) {
    notes->push_back(
        Say("No GPU and no training process is known in this run, so there is no time "
            "to bill.",
            "本次运行未发现 GPU 和训练进程，没有可计费的时间。"));
    return;
  }
  if (bill.basis == "rank") {
    notes->push_back(
        Say("No GPU of the job is known: this is the time of its {} training "
            "process(es), not GPU time, and has no price.",
            "未发现本任务的 GPU：以下为 {} 个训练进程的时间，不是 GPU "
            "时间，因此没有价格。",
            bill.devices));
  }
  if (bill.total.Of(TimeUse::kUnknown).ns == bill.total.total_ns) {
    notes->push_back(
        Say("Nobody told of steps, epochs or phases, so what this time was used for "
            "is not known. The hooks tell it: run the training as 'epochmeter run -- "
            "python ...'.",
            "训练没有报告步、轮次或阶段，无法得知这些时间的用途。请用 'epochmeter run "
            "-- python ...' 运行训练，由钩子自动报告。"));
  } else if (told.untold_ranks > 0) {
    notes->push_back(Say("{} process(es) told no steps, epochs or phases: their time is unknown.",
                         "有 {} 个进程没有报告步、轮次或阶段，其时间用途未知。",
                         told.untold_ranks));
  }
  AddCheckpoints(findings, bill, notes);
  if (told.restarts > 0) {
    notes->push_back(
        Say("The training was restarted {} time(s) before it had ended. Steps that "
            "were run again count as repeated the first time.",
            "训练在结束前重启了 {} 次。被重新执行的步，其首次执行计为重复工作。", told.restarts));
  }
}

void AddDevices(const Facts& facts, const BillFacts& told, const Bill& bill,
                std::vector<Message>* notes) {
  if (told.uncertain > 0 && !facts.ranks().empty()) {
    notes->push_back(
        Say("Of {} GPU(s) it is not known which rank uses them: they count as used "
            "only while all such ranks do the same. Name the GPUs in train_begin.",
            "有 {} 块 GPU 不知由哪个进程使用：仅当相关进程都在做同一件事时才计入用途。"
            "请在 train_begin 中报告 GPU。",
            told.uncertain));
  }
  if (told.shared > 0) {
    notes->push_back(
        Say("{} GPU(s) are shared by several ranks: each ns is counted once, as the "
            "most useful of what they do, in equal parts to those that do it.",
            "有 {} 块 GPU 由多个进程共用：每一纳秒只计一次，按其中最有用的用途，"
            "平分给正在做此事的进程。",
            told.shared));
  }
  const bool all_shown = std::any_of(facts.report().gpus.begin(), facts.report().gpus.end(),
                                     [](const model::GpuStats& gpu) { return !gpu.of_job; });
  if (bill.basis == "gpu" && all_shown && bill.devices > 1) {
    notes->push_back(Say("It is not known which GPUs are the job's, so all {} are billed.",
                         "无法确定哪些 GPU 属于本任务，因此全部 {} 块都计入。", bill.devices));
  }
  if (told.unknown_throttling > 0) {
    notes->push_back(
        Say("{} GPU(s) were held down by heat or hardware limits, but without a clock "
            "series what that cost is not known: none of it counts as throttle.",
            "有 {} 块 GPU 因温度或硬件限制降频，但没有时钟数据，损失未知，未计入降频。",
            told.unknown_throttling));
  }
}

void AddActivity(const Bill& bill, std::vector<Message>* notes) {
  if (bill.basis != "gpu" || bill.total.Of(TimeUse::kProductive).ns == 0) return;
  if (!bill.total.effective_ns) {
    notes->push_back(
        Say("No activity of the GPU was recorded for most of the productive time, so "
            "the effective GPU time is not known.",
            "大部分有效训练时间没有 GPU 活动数据，有效 GPU 时间未知。"));
    return;
  }
  if (bill.activity_source == "utilization_ratio") {
    notes->push_back(
        Say("Activity is the driver's utilisation: it says that some kernel ran, "
            "however small, and is not evidence of work. SM activity was not "
            "available.",
            "活动度取自驱动的利用率：仅表示有内核在运行（无论多小），"
            "不能证明在做有效工作。本次没有 SM 活跃度数据。"));
  }
  if (bill.activity_source == "power_of_limit") {
    notes->push_back(
        Say("Activity is power as a part of the power limit, for want of SM activity "
            "and utilisation: a rough stand-in.",
            "因缺少 SM 活跃度和利用率，活动度以功率占功率上限的比例粗略代替。"));
  }
  if (bill.mixed_activity) {
    notes->push_back(Say("GPUs have different sources of activity; the weakest is named.",
                         "各 GPU 的活动度来源不同，此处列出其中最弱的一种。"));
  }
}

void AddEnergy(const Bill& bill, std::vector<Message>* notes) {
  if (bill.basis != "gpu" || bill.devices == 0) return;
  if (!bill.total.energy_j) {
    notes->push_back(Say("Neither an energy counter nor power was recorded, so there are no kWh.",
                         "没有能量计数器和功率数据，无法给出电量。"));
  }
  const double ratio = bill.energy_disagreement_ratio.value_or(0);
  if (ratio > 0.05) {
    notes->push_back(
        Say("The energy counter and the integral of power differ by {}. The counter "
            "counts here; power is sampled and may miss peaks.",
            "能量计数器与功率积分相差 {}。此处以计数器为准；功率为采样值，可能漏掉峰值。",
            SayPercent(ratio)));
  }
}

void AddPrices(const Bill& bill, std::vector<Message>* notes) {
  if (bill.basis != "gpu" || bill.devices == 0) return;
  if (bill.rates.gpus.empty()) {
    notes->push_back(
        Say("No price is known, so there are hours and kWh only. Set gpu_hour under "
            "[prices] in a config ('epochmeter config' prints one) or a file for "
            "--rates.",
            "没有价格，因此只列出小时数和电量。请在配置文件（'epochmeter config' "
            "可打印）或 --rates 文件的 [prices] 中设置 gpu_hour。"));
  } else if (bill.total.cost_coverage_ratio < 1) {
    notes->push_back(
        Say("No price fits some of the GPUs: the cost covers {} of the GPU time. Add a "
            "[[prices.gpu]] whose name matches them.",
            "部分 GPU 没有匹配的价格：费用仅覆盖 {} 的 GPU 时间。请添加名称匹配的 "
            "[[prices.gpu]]。",
            SayPercent(bill.total.cost_coverage_ratio)));
  }
  if ((bill.rates.electricity_kwh || bill.rates.carbon_g_per_kwh) && bill.rates.pue == 1) {
    notes->push_back(
        Say("PUE is 1.0: energy for cooling and power supply of the site is not in "
            "it. Set pue under [energy].",
            "PUE 为 1.0：未计入机房制冷与供电损耗。可在 [energy] 中设置 pue。"));
  }
}

}  // namespace

void SetSources(const BillFacts& told, Bill* bill) {
  bill->activity_source = Weakest(told.activity_sources);
  for (const std::string& source : told.activity_sources) {
    bill->mixed_activity |= source != bill->activity_source;
  }
  const model::BillLine& total = bill->total;
  if (!total.counter_j || !total.integral_j || *total.counter_j <= 0) return;
  const double least = std::min(total.counter_coverage_ratio, total.integral_coverage_ratio);
  if (least < kComparable) return;
  const double counter = *total.counter_j / total.counter_coverage_ratio;
  const double integral = *total.integral_j / total.integral_coverage_ratio;
  bill->energy_disagreement_ratio = std::abs(counter - integral) / counter;
}

std::vector<Message> BillNotes(const Facts& facts, const BillFacts& told, const Bill& bill) {
  std::vector<Message> notes;
  AddTime(told, bill, facts.report().findings, &notes);
  AddDevices(facts, told, bill, &notes);
  AddActivity(bill, &notes);
  AddEnergy(bill, &notes);
  AddPrices(bill, &notes);
  return notes;
}

}  // namespace epochmeter::diagnose
