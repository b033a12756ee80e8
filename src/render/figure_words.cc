// SPDX-License-Identifier: Apache-2.0
#include "render/figure_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include "base/strings.h"
#include "render/units.h"

namespace epochmeter::render {
namespace {

std::string Hertz(double value) {
  if (std::fabs(value) >= 1e9) return fmt::format("{:.2f} GHz", value / 1e9);
  if (std::fabs(value) >= 1e6) return fmt::format("{:.0f} MHz", value / 1e6);
  return fmt::format("{:.3g} Hz", value);
}

std::string WithUnit(std::optional<std::string> text, std::string_view unit) {
  return text.value_or("?") + std::string(unit);
}

struct UnitForm {
  std::string_view suffix;
  std::string (*Format)(double value);
};
// Longer suffixes first.
constexpr std::array<UnitForm, 12> kUnits = {{
    {"_bytes_per_step", [](double v) { return WithUnit(Bytes(v), "/step"); }},
    {"_bytes_per_s", [](double v) { return WithUnit(Bytes(v), "/s"); }},
    {"_bytes", [](double v) { return WithUnit(Bytes(v), ""); }},
    {"_ratio", [](double v) { return WithUnit(Percent(v), ""); }},
    {"_per_s", [](double v) { return Scalar(v) + "/s"; }},
    {"_cores", [](double v) { return Scalar(v) + " cores"; }},
    {"_hz", Hertz},
    {"_gpu_s", [](double v) { return WithUnit(Seconds(v), ""); }},
    {"_s", [](double v) { return WithUnit(Seconds(v), ""); }},
    {"_w", [](double v) { return WithUnit(Watts(v), ""); }},
    {"_c", [](double v) { return WithUnit(Celsius(v), ""); }},
    {"_j", [](double v) { return WithUnit(Joules(v), ""); }},
}};

// Names of figures without their units, in the order of the alphabet.
constexpr auto kChinese = std::to_array<std::pair<std::string_view, std::string_view>>({
    {"allocated", "已分配"},
    {"asked", "请求量"},
    {"away", "缺席时间"},
    {"batch", "批"},
    {"batch size", "批大小"},
    {"beside allocator", "分配器之外"},
    {"checkpoint", "保存占比"},
    {"checkpoint total", "保存总耗时"},
    {"checkpoints", "保存次数"},
    {"comm", "通信"},
    {"cores per rank", "每进程核数"},
    {"count", "次数"},
    {"cpus", "CPU 数"},
    {"data wait", "等待数据"},
    {"data wait total", "等待数据总时长"},
    {"device", "显存总量"},
    {"duration", "时长"},
    {"epochs", "轮数"},
    {"eval", "验证占比"},
    {"eval total", "验证总耗时"},
    {"excess total", "多耗时合计"},
    {"first floor", "最初低位"},
    {"free", "空闲"},
    {"growth", "增长"},
    {"held", "持有"},
    {"highest", "最高"},
    {"host cpu", "主机 CPU"},
    {"idle", "空闲时间"},
    {"invisible", "不可见"},
    {"kills", "终止次数"},
    {"last floor", "最后低位"},
    {"limit", "上限"},
    {"limit epoch", "到限轮次"},
    {"limit in", "距到限"},
    {"limit step", "到限步"},
    {"limit step high", "到限步上界"},
    {"limit step low", "到限步下界"},
    {"lowest", "最低"},
    {"mean", "平均"},
    {"median", "中位"},
    {"memory used", "已用"},
    {"missing", "缺失"},
    {"need", "需要"},
    {"non framework", "框架之外"},
    {"others", "其他进程"},
    {"others comm", "其他进程通信"},
    {"others data wait", "其他进程等待数据"},
    {"others utilization", "其他进程利用率"},
    {"own memory", "本任务显存"},
    {"p50", "中位"},
    {"peak", "峰值"},
    {"period", "间隔"},
    {"power", "功率"},
    {"power limit", "功率上限"},
    {"reserved unallocated", "预留未用"},
    {"samples", "样本数"},
    {"silent", "无响应时间"},
    {"slope", "斜率"},
    {"slope high", "斜率上界"},
    {"slope low", "斜率下界"},
    {"slow steps", "慢步数"},
    {"slowest", "最慢"},
    {"sm active", "SM 活跃度"},
    {"sm occupancy", "SM 占用率"},
    {"sources", "来源数"},
    {"stall mean", "平均停顿"},
    {"stalls", "停顿次数"},
    {"step need", "步所需"},
    {"steps", "步数"},
    {"temperature", "温度"},
    {"tensor active", "Tensor Core 活跃度"},
    {"throttled", "受限占比"},
    {"to first step", "到首步"},
    {"total", "总量"},
    {"unused", "未用"},
    {"usual need", "平时所需"},
    {"usual period", "平时间隔"},
    {"utilization", "利用率"},
    {"windows", "窗口数"},
    {"workers", "工作进程数"},
    {"worst", "最差"},
    {"written", "写入量"},
});
static_assert(std::is_sorted(kChinese.begin(), kChinese.end()));

std::string_view Translated(std::string_view name, Language language) {
  if (language != Language::kChinese) return name;
  const auto known = std::lower_bound(
      kChinese.begin(), kChinese.end(), name,
      [](const auto& entry, std::string_view wanted) { return entry.first < wanted; });
  return known == kChinese.end() || known->first != name ? name : known->second;
}

}  // namespace

FigureWords WordsOf(std::string_view name, double value) {
  FigureWords words{.name = std::string(name), .value = Scalar(value)};
  // Numbers of steps: no exponent.
  if (std::fabs(value) >= 1e5 && std::fabs(value) < 1e15)
    words.value = fmt::format("{:.0f}", value);
  for (const UnitForm& unit : kUnits) {
    const std::string_view bare = unit.suffix.substr(1);  // "bytes" alone is a name, too
    if (!base::EndsWith(name, unit.suffix) && name != bare) continue;
    if (std::isfinite(value)) words.value = unit.Format(value);
    if (name != bare) words.name.resize(name.size() - unit.suffix.size());
    break;
  }
  std::replace(words.name.begin(), words.name.end(), '_', ' ');
  return words;
}

std::string NamedFigure(std::string_view name, double value, Language language) {
  const FigureWords words = WordsOf(name, value);
  return fmt::format("{} {}", Translated(words.name, language), words.value);
}

}  // namespace epochmeter::render
