// SPDX-License-Identifier: Apache-2.0
#include "tiny_findings.h"

#include "diagnose/report_builder.h"

namespace epochmeter::testing {
namespace {

using model::Finding;
using model::Severity;

constexpr int64_t kSecond = 1'000'000'000;

Finding OutOfMemory() {
  Finding finding;
  finding.rule = "out_of_memory";
  finding.severity = Severity::kCritical;
  finding.title = {"The GPU ran out of memory", "显存耗尽"};
  finding.summary = {"rank0 asked for 2.0 GB at step 7 when 1.5 GB of 80 GB were free.",
                     "rank0 在第 7 步申请 2.0 GB 显存，而 80 GB 中仅剩 1.5 GB。"};
  finding.explanation = {"The training's own message says so.", "训练自己的报错信息如此说明。"};
  finding.advice = {
      {.framework = "pytorch",
       .text = {"Let the allocator grow its segments.", "让分配器扩展已有的段。"},
       .code = "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"},
      {.framework = "paddle",
       .text = {"Allocate by need.", "按需分配。"},
       .code = "FLAGS_allocator_strategy=auto_growth\nFLAGS_fraction_of_gpu_memory_to_use=0.9"},
      {.framework = "", .text = {"Halve the batch.", "将批大小减半。"}, .code = ""}};
  finding.rank = 0;
  finding.gpu = 0;
  finding.confidence = 0.95;
  finding.lost_gpu_s = 7200;
  finding.gain_ratio = 0.25;
  finding.evidence = {{.series = "gpu0 memory_used_bytes",
                       .interval = {.begin_ns = 101 * kSecond, .end_ns = 107 * kSecond},
                       .values = {{"first_bytes", 60e9}, {"last_bytes", 78.5e9}, {"ratio", 0.98}},
                       .note = {"it grew with each step", "每步都在增长"},
                       .steps = {5, 6, 7}}};
  return finding;
}

Finding Starving() {
  Finding finding;
  finding.rule = "data_starvation";
  finding.severity = Severity::kWarning;
  finding.title = {"The training waits for its data", "训练在等待数据"};
  finding.summary = {"rank0 waits for data in 25 % of the time of its steps.",
                     "rank0 的步骤时间中有 25 % 在等待数据。"};
  finding.advice = {{.framework = "pytorch",
                     .text = {"Load in worker processes.", "用子进程加载数据。"},
                     .code = "DataLoader(dataset, num_workers=8, pin_memory=True)"}};
  finding.rank = 0;
  finding.lost_gpu_s = 2;
  finding.evidence = {{.series = "rank0 data_wait_s", .values = {{"data_wait_ratio", 0.25}}}};
  return finding;
}

Finding Remark() {
  Finding finding;
  finding.rule = "batch_headroom";
  finding.title = {"The batch could grow", "批大小可以增加"};
  finding.summary = {"98 % of the memory of gpu0 were never used.", "gpu0 98 % 的显存从未使用。"};
  finding.gpu = 0;
  return finding;
}

Finding NotApplicable(std::string rule, model::Message why) {
  Finding finding;
  finding.rule = std::move(rule);
  finding.severity = Severity::kNotApplicable;
  finding.title = {"A title", "标题"};
  finding.summary = std::move(why);
  return finding;
}

}  // namespace

std::vector<Finding> TinyFindings() {
  return {OutOfMemory(), Starving(), Remark(),
          NotApplicable("straggler_rank", {"the run has one rank", "本次运行只有一个 rank"}),
          NotApplicable("xid_error", {"no source of XIDs", "没有 XID 的来源"})};
}

model::Report TinyReport(const model::Run& run, bool all_gpus) {
  model::Report report = diagnose::BuildReport(run, {.all_gpus = all_gpus});
  report.findings = TinyFindings();
  return report;
}

}  // namespace epochmeter::testing
