// SPDX-License-Identifier: Apache-2.0
#include "diagnose/incident_words.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/clock.h"
#include "base/strings.h"
#include "diagnose/say.h"
#include "model/limits.h"

namespace epochmeter::diagnose {
namespace {

using model::Event;
using model::Message;

// Processes of ours that are started again, and what was not done while one was away.
struct Helper {
  std::string_view name, en, zh;
};
constexpr std::array<Helper, 3> kHelpers = {
    {{"sampler", "GPUs were not read", "GPU 未被读取"},
     {"relay", "the relay of the output was away", "输出转发进程不在"},
     {"recorder", "nothing was recorded", "没有任何记录"}}};

const Helper* HelperOf(std::string_view name) {
  const auto helper = std::find_if(kHelpers.begin(), kHelpers.end(),
                                   [&](const Helper& known) { return known.name == name; });
  return helper == kHelpers.end() ? nullptr : &*helper;
}

// What stands around the words of the driver, by the name of the event.
struct Frame {
  std::string_view name, zh;
};
constexpr std::array<Frame, 13> kFrames = {{
    {"gpu.lost", "GPU 失联"},
    {"gpu.back", "GPU 恢复应答"},
    {"gpu.access_revoked", "GPU 的访问权限被收回"},
    {"gpu.ecc_uncorrected", "不可纠正的显存错误"},
    {"gpu.ecc_storm", "显存错误集中爆发"},
    {"gpu.dram_retired", "显存页被停用"},
    {"gpu.dram_retirement_failed", "显存页停用失败"},
    {"gpu.fatal_poison", "出错数据造成致命后果"},
    {"gpu.unavailable", "GPU 不可用"},
    {"gpu.recovery_action", "驱动要求对 GPU 做恢复操作"},
    {"gpu.xid", "驱动报告 XID"},
    {"driver.replaced", "驱动在运行期间被更换"},
    {"recorder.disk", "磁盘一度不接受记录，记录先留在内存里"},
}};

Message DetailWords(const Event& event) {
  const std::optional<std::string_view> detail = event.Text("detail");
  const auto frame = std::find_if(kFrames.begin(), kFrames.end(),
                                  [&](const Frame& known) { return known.name == event.name; });
  Message words{.en = std::string(detail.value_or("reported by the driver")), .zh = {}};
  if (frame == kFrames.end()) {
    if (!detail) words.zh = "驱动所报告";
    return words;
  }
  words.zh = frame->zh;
  // That it answers again is all that this one has to say.
  if (detail && event.name != "gpu.back") words.zh += "：" + std::string(*detail);
  return words;
}

Message OomWords(const Event& event) {
  const int64_t count = model::WholeOf(event.Number("count").value_or(1)).value_or(1);
  const std::optional<std::string_view> cgroup = event.Text("cgroup");
  const std::string who = count == 1 ? "a process" : std::to_string(count) + " processes";
  Message words{.en = fmt::format("the kernel's out-of-memory killer ended {} in cgroup {}", who,
                                  cgroup.value_or("of unknown name")),
                .zh = fmt::format("内核因内存不足终止了控制组 {} 中的 {} 个进程",
                                  cgroup.value_or("（名称未知）"), count)};
  if (event.Text("where") == "above") {
    words.en += ", above the job: perhaps another's";
    words.zh += "；该控制组在本任务之上，可能是别的任务的进程";
  }
  return words;
}

Message ClockWords(const Event& event) {
  const double by_s = event.Number("by_s").value_or(0);
  return Say("the wall clock was set by {}; times of day follow it, durations do not",
             "墙上时钟被调整了 {}；时刻随之变化，时长不受影响",
             (by_s < 0 ? "" : "+") + base::FormatDuration(by_s));
}

// Reasons that are ours; those of others stay as they are.
std::string ReasonZh(const std::string& reason) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kReasons = {
      {{"no reason was given", "没有给出原因"},
       {"it gave no sign of life, and was ended and replaced", "它没有响应，已被终止并替换"},
       {"it could not run, and was replaced", "它无法运行，已被替换"},
       {"it stood still, stopped by a signal, and was ended and replaced",
        "它被信号暂停，已被终止并替换"}}};
  for (const auto& [en, zh] : kReasons) {
    if (reason == en) return std::string(zh);
  }
  constexpr std::string_view kBySignal = "it was ended by signal ", kReplaced = " and replaced";
  if (base::StartsWith(reason, kBySignal) && base::EndsWith(reason, kReplaced)) {
    const size_t digits = reason.size() - kBySignal.size() - kReplaced.size();
    return "它被信号 " + reason.substr(kBySignal.size(), digits) + " 终止，已被替换";
  }
  return reason;
}

}  // namespace

bool IsHelper(std::string_view name) { return HelperOf(name) != nullptr; }

Message IncidentWords(const Event& event) {
  if (event.name == kOomKill) return OomWords(event);
  if (const auto xid = model::WholeOf(event.Number("xid").value_or(NAN))) {
    return Say("the driver reported XID {}", "驱动报告 XID {}", *xid);
  }
  if (event.name == "clock.jumped") return ClockWords(event);
  const std::string for_s = base::FormatDuration(event.Number("for_s").value_or(0));
  if (event.name == "clock.suspended") {
    return Say(
        "the machine was suspended for {}: nothing ran and nothing was recorded, and durations "
        "leave that time out",
        "机器休眠了 {}：期间没有任何程序运行，也没有记录；各项时长不含这段时间", for_s);
  }
  if (event.name == "recorder.paused") {
    return Say(
        "the recorder did not run for at least {}: the job was stopped, or the machine had no time "
        "for it; nothing was read then",
        "记录器至少有 {} 没有运行：任务被暂停，或机器没有分给它时间；期间没有读取任何数据", for_s);
  }
  return DetailWords(event);
}

Message AbsenceWords(std::string_view helper, std::optional<double> away_s, int64_t ends,
                     const std::vector<std::string>& reasons) {
  const Helper* known = HelperOf(helper);
  Message words;
  if (known != nullptr) words = {.en = std::string(known->en), .zh = std::string(known->zh)};
  if (away_s) {
    words.en += " for " + base::FormatDuration(*away_s);
    words.zh += "，持续 " + base::FormatDuration(*away_s);
  } else {
    words.en += " from then on";
    words.zh += "，此后再未恢复";
  }
  if (ends > 1) {
    words.en += ", after " + std::to_string(ends) + " ends of it";
    words.zh += "，其间该进程结束 " + std::to_string(ends) + " 次";
  }
  std::vector<std::string> reasons_zh;
  for (const std::string& reason : reasons) reasons_zh.push_back(ReasonZh(reason));
  words.en += ": " + base::Join(reasons, "; ");
  words.zh += "：" + base::Join(reasons_zh, "；");
  return words;
}

}  // namespace epochmeter::diagnose
