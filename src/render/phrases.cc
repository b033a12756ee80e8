// SPDX-License-Identifier: Apache-2.0
#include "render/phrases.h"

#include <array>

namespace epochmeter::render {
namespace {

using Row = std::array<std::string_view, kLanguageCount>;

// In the order of Phrase.
constexpr std::array<Row, kPhraseCount> kTexts = {{
    {"report", "报告"},
    {"summary", "摘要"},
    {"command", "命令"},
    {"host", "主机"},
    {"started", "开始"},
    {"duration", "时长"},
    {"ended", "结束"},
    {"no end was recorded", "没有结束记录"},
    {"exit code", "退出码"},
    {"killed by signal", "被信号终止"},
    {"how it ended is not known", "结束方式未知"},
    {"Epochs", "训练轮次"},
    {"no epochs and no steps were reported", "没有报告训练轮次和步数"},
    {"run", "全程"},
    {"left early or end not seen; ends at the last thing seen of it",
     "提前离开或未见结束，以最后所见为止"},
    {"rank", "进程"},
    {"epoch", "轮次"},
    {"steps", "步数"},
    {"step p50", "步时中位"},
    {"data wait", "等待数据"},
    {"eval", "验证"},
    {"CPU", "CPU"},
    {"RAM", "内存"},
    {"job RAM", "任务内存"},
    {"GPU", "GPU"},
    {"SM", "SM"},
    {"GPU mem", "显存"},
    {"power", "功率"},
    {"temp", "温度"},
    {"alloc", "已分配"},
    {"energy", "能耗"},
    {"GPUs, whole run", "GPU（全程）"},
    {"name", "名称"},
    {"mean", "平均"},
    {"max", "最大"},
    {"Losses: what was not seen or not kept", "丢失：未采集到或未保存的内容"},
    {"none", "无"},
    {"Not measured", "未测量"},
    {"Findings", "发现"},
    {"Files", "文件"},
    {"unknown", "未知"},
    {"last epoch", "最后一轮"},
    {"energy is the integral of power samples where no energy counter covers the time",
     "没有能量计数器覆盖的时段，能耗由功率采样积分得到"},
    {"and", "另有"},
    {"more", "项"},
    {"Other phases", "其他阶段"},
    {"phase", "阶段"},
    {"times", "次数"},
    {"total", "合计"},
    {"left out for width", "因宽度省略"},
    {"no value in any epoch", "所有轮次均无数值"},
    {"Exceptions", "异常"},
    {"still running", "仍在运行"},
    {"pid", "进程号"},
    {"job CPU", "任务 CPU"},
    {"times", "次"},
    {"own mem", "本任务显存"},
    {"others mem", "其他显存"},
    {"unexplained mem", "来源不明显存"},
    {"job's", "本任务"},
    {"yes", "是"},
    {"no", "否"},
    {"own mem with >= is what the frameworks reserved: the driver does not tell whose memory it is",
     "带 >= 的本任务显存为框架预留量：驱动未说明显存归属"},
    {"after training", "训练之后"},
    {"Incidents", "故障事件"},
    {"by the kernel's out-of-memory killer: cgroup", "由内核内存不足机制终止，控制组"},
    {" of ", "/"},
    {"GPUs", "GPU 数"},
    {"report -f json", "见 report -f json"},
    {"values", "数值"},
    {"lowest", "最低"},
    {"highest", "最高"},
    {"job {} cores", "任务 {} 核"},
    {"job", "任务"},
    {"GPU utilisation", "GPU 利用率"},
    {"SM activity", "SM 活跃度"},
    {"GPU memory, peak", "显存峰值"},
    {"CPU of the host", "主机 CPU"},
    {"RAM of the host, peak", "主机内存峰值"},
    {"CRITICAL", "严重"},
    {"WARNING", "警告"},
    {"INFO", "提示"},
    {"not applicable", "不适用"},
    {"GOOD", "良好"},
    {"to", "至"},
    {"step", "第几步"},
    {"steps", "步"},
    {": ", "："},
    {"; ", "；"},
    {", ", "，"},
    {"Change", "修改"},
    {"Cost", "代价"},
    {"Evidence", "证据"},
    {"How it was judged", "判断依据"},
    {"{} lost", "损失 {}"},
    {"a fix would save {} of the run's time ({}× as fast)",
     "修复后可缩短 {} 的运行时间（速度为 {} 倍）"},
    {"no rule knows why", "没有规则能说明原因"},
    {"no rule found anything to change", "没有规则发现需要修改之处"},
    {"nothing was recorded that could be judged", "没有可供判断的记录"},
    {"of the rules could not judge this run", "条规则无法判断本次运行"},
    {"more (--all-epochs)", "行省略（--all-epochs）"},
    {"more findings", "条其他发现"},
    {"Key figures", "关键数据"},
    {"Verdict", "结论"},
    {"not seen to its end", "未见结束"},
    {"more ranks, which were faster", "个更快的进程未列出"},
    {"the training raised", "训练抛出异常"},
    {"remarks", "条提示"},
}};

}  // namespace

std::optional<Language> LanguageFromName(std::string_view name) {
  const std::string_view start = name.substr(0, 2);
  const bool whole =
      name.size() == 2 || (name.size() > 2 && (name[2] == '_' || name[2] == '-' || name[2] == '.'));
  if (!whole) return {};
  if (start == "en") return Language::kEnglish;
  if (start == "zh") return Language::kChinese;
  return {};
}

std::string_view Text(Phrase phrase, Language language) {
  return kTexts[static_cast<size_t>(phrase)][static_cast<size_t>(language)];
}

}  // namespace epochmeter::render
