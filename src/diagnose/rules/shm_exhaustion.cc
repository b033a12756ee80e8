// SPDX-License-Identifier: Apache-2.0
// Shared memory runs out: loader workers pass batches through /dev/shm, and a write beyond its size
// kills them with SIGBUS.
//
// Needs the use of /dev/shm, or what the training said as it died: a sentence of it in an exception
// or in the captured output, or its death by SIGBUS. Use is judged by its highest sample and by the
// growth of its floor (trend.h), which tells when it will be full. Workers fill it within
// milliseconds, so samples may miss what killed them. False positives: another user of the same
// tmpfs; a mapped file that was cut short ends in SIGBUS, too.
#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>

#include "diagnose/host_room.h"
#include "diagnose/leak.h"
#include "diagnose/memory.h"
#include "diagnose/own_gpus.h"
#include "diagnose/rules/all.h"
#include "diagnose/say.h"

namespace epochmeter::diagnose {
namespace {

using model::Curve;
using model::Finding;
using model::Severity;

constexpr int kSigbus = 7;
constexpr int kShellSigbus = 128 + kSigbus;
constexpr size_t kMostQuoted = 160;  // characters of a line

// What frameworks and the kernel say of it, in small letters.
constexpr std::array<std::string_view, 6> kSentences = {"bus error",
                                                        "out of shared memory",
                                                        "insufficient shared memory",
                                                        "unable to open shared memory object",
                                                        "unable to write to file </torch_",
                                                        "unable to allocate shared memory"};

std::string Small(std::string_view text) {
  std::string small(text);
  for (char& c : small) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return small;
}

// The line of `text` that says it; empty when none does.
std::string LineOf(std::string_view text) {
  const std::string small = Small(text);
  for (const std::string_view sentence : kSentences) {
    const size_t at = small.find(sentence);
    if (at == std::string::npos) continue;
    const size_t before = text.rfind('\n', at);
    const size_t begin = before == std::string_view::npos ? 0 : before + 1;
    std::string line(text.substr(begin, text.find('\n', at) - begin));
    if (line.size() > kMostQuoted) line.resize(kMostQuoted);
    return line;
  }
  return {};
}

struct Said {
  const RankFacts* rank = nullptr;
  int64_t t_ns = 0;
  std::string line;
};

std::optional<Said> SaidBy(const Facts& facts) {
  for (const RankFacts& rank : facts.ranks()) {
    for (const model::Event* event : rank.events) {
      if (event->kind != model::EventKind::kException) continue;
      std::string line = LineOf(event->Text("message").value_or(""));
      if (!line.empty()) return Said{.rank = &rank, .t_ns = event->t_ns, .line = std::move(line)};
    }
  }
  for (const model::LogText& text : facts.run().log) {
    std::string line = LineOf(text.text);
    if (!line.empty()) return Said{.t_ns = text.t_ns, .line = std::move(line)};
  }
  const auto& end = facts.run().end;
  if (end && (end->signal == kSigbus || end->exit_code == kShellSigbus)) {
    return Said{.t_ns = end->t_ns, .line = "SIGBUS"};
  }
  return {};
}

struct Shm {
  const Curve* used = nullptr;
  std::optional<double> size_bytes, highest_bytes;
  HostGrowth growth;
  std::optional<double> seconds_to_full;  // at the rate of a floor that grows
  double Ratio() const {
    if (!size_bytes || !highest_bytes || !(*size_bytes > 0)) return 0;
    return *highest_bytes / *size_bytes;
  }
};

std::optional<Shm> ShmOf(const Facts& facts) {
  for (const model::EntityDef& entity : facts.run().entities) {
    if (entity.scope != model::Scope::kHost || Find(entity.labels, "path") != "/dev/shm") continue;
    Shm shm{.used = facts.FindCurve(entity.id, "fs_used_bytes"),
            .size_bytes = LastOf(facts.FindCurve(entity.id, "fs_size_bytes"))};
    shm.highest_bytes = HighestOf(shm.used);
    if (shm.highest_bytes) return shm;
  }
  return {};
}

// When it is full at this rate.
void Forecast(const Facts& facts, Shm* shm) {
  if (!shm->size_bytes) return;
  RankFacts whole;
  const RankFacts& clock = ClockOf(facts, &whole);
  shm->growth = JudgeHostLevel(facts, clock, LevelPoints(clock, *shm->used),
                               facts.limits()["shm_exhaustion.growth_ratio"] * *shm->size_bytes);
  const Trend& trend = shm->growth.trend;
  if (!trend.grows()) return;
  const auto a_second = clock.steps.empty() ? std::optional(1.0) : StepsASecond(clock);
  const double rate = trend.slope * a_second.value_or(0);
  if (rate > 0) shm->seconds_to_full = std::max(0.0, *shm->size_bytes - *shm->highest_bytes) / rate;
}

std::vector<model::Advice> HowToMakeRoom() {
  return {
      {.framework = "",
       .text = Say("Give the container a larger /dev/shm, or the host's.",
                   "为容器提供更大的 /dev/shm，或使用主机的。"),
       .code = "docker run --shm-size=16g   # or --ipc=host\n"
               "# Kubernetes: an emptyDir with medium: Memory mounted at /dev/shm"},
      {.framework = "paddle",
       .text =
           Say("Use fewer workers and a shorter prefetch, or pass batches without shared memory.",
               "减少工作进程和预取，或不使用共享内存传递批次。"),
       .code = "paddle.io.DataLoader(dataset, num_workers=2, prefetch_factor=2, "
               "use_shared_memory=False)"},
      {.framework = "tensorflow",
       .text = Say("tf.data needs no shared memory; Keras' PyDataset does with "
                   "use_multiprocessing.",
                   "tf.data 不需要共享内存；Keras 的 PyDataset 在 use_multiprocessing 时需要。"),
       .code = "keras.utils.PyDataset(workers=2, use_multiprocessing=False, max_queue_size=4)"},
      {.framework = "pytorch",
       .text =
           Say("Use fewer workers and a shorter prefetch. Sharing by files helps against too "
               "many open files, not against a full /dev/shm.",
               "减少工作进程和预取。以文件方式共享可解决打开文件过多，但不能解决 /dev/shm 已满。"),
       .code = "DataLoader(dataset, num_workers=2, prefetch_factor=2)\n"
               "torch.multiprocessing.set_sharing_strategy('file_system')"},
  };
}

model::Evidence Use(const Facts& facts, const Shm& shm) {
  model::Evidence evidence{.series = facts.SeriesName(*shm.used),
                           .interval = facts.run().Recorded(),
                           .values = {{"highest_bytes", *shm.highest_bytes}}};
  if (shm.size_bytes) evidence.values.emplace_back("size_bytes", *shm.size_bytes);
  if (shm.Ratio() > 0) evidence.values.emplace_back("used_ratio", shm.Ratio());
  if (shm.seconds_to_full) {
    evidence.interval = shm.growth.interval;
    evidence.values.emplace_back("growth_bytes", shm.growth.trend.growth);
    evidence.values.emplace_back("full_in_s", *shm.seconds_to_full);
  }
  return evidence;
}

Finding FoundText(const Facts& facts, const Said& said, const std::optional<Shm>& shm) {
  const auto& end = facts.run().end;
  const bool died = end && (end->signal || end->exit_code.value_or(0) != 0);
  Finding finding;
  finding.severity = died ? Severity::kCritical : Severity::kWarning;
  const bool seen_full = shm && shm->Ratio() >= facts.limits()["shm_exhaustion.warning_ratio"];
  finding.confidence = seen_full ? 0.95 : 0.7;
  if (said.rank != nullptr) {
    finding.rank = said.rank->rank;
    finding.pid = said.rank->pid;
  }
  finding.summary =
      died ? Say("The training died for want of shared memory: {}", "训练因共享内存不足而终止：{}",
                 said.line)
           : Say("The training lacked shared memory: {}", "训练缺少共享内存：{}", said.line);
  finding.explanation =
      shm ? Say("/dev/shm had at most {} in use when it was read; workers fill it between two "
                "readings.",
                "读取时 /dev/shm 最多使用 {}；工作进程可能在两次读取之间将其填满。",
                SayBytes(*shm->highest_bytes))
          : Say("Its use was not recorded.", "没有记录其使用量。");
  finding.evidence.push_back({.series = "log",
                              .interval = {.begin_ns = said.t_ns, .end_ns = said.t_ns},
                              .note = {.en = said.line, .zh = said.line}});
  if (shm) finding.evidence.push_back(Use(facts, *shm));
  return finding;
}

std::optional<Finding> FoundUse(const Facts& facts, const Shm& shm) {
  const bool full = shm.Ratio() >= facts.limits()["shm_exhaustion.warning_ratio"];
  const bool soon =
      shm.seconds_to_full.value_or(INFINITY) <= facts.limits()["shm_exhaustion.forecast_s"];
  if (!full && !soon) return {};
  Finding finding;
  finding.severity = Severity::kWarning;
  finding.confidence = full ? 0.9 : 0.8;
  const std::string used = SayBytes(*shm.highest_bytes);
  finding.summary = full ? Say("/dev/shm was {} full: {} of {}.", "/dev/shm 已用 {}：{} / {}。",
                               SayPercent(shm.Ratio()), used, SayBytes(*shm.size_bytes))
                         : Say("/dev/shm holds {} of {} and grows; at this rate it is full in {}.",
                               "/dev/shm 已用 {} / {} 且持续增长；按此速度将在 {} 后填满。", used,
                               SayBytes(*shm.size_bytes), SaySeconds(*shm.seconds_to_full));
  finding.explanation = Say("Whoever writes beyond its size is killed with SIGBUS (\"Bus error\").",
                            "写入超出其容量的进程会被 SIGBUS（“Bus error”）杀死。");
  finding.evidence.push_back(Use(facts, shm));
  return finding;
}

Judgement Judge(const Facts& facts) {
  std::optional<Shm> shm = ShmOf(facts);
  if (shm) Forecast(facts, &*shm);
  const auto said = SaidBy(facts);
  Judgement judgement;
  if (said) {
    judgement.findings.push_back(FoundText(facts, *said, shm));
  } else if (shm) {
    if (auto found = FoundUse(facts, *shm)) judgement.findings.push_back(std::move(*found));
  }
  for (Finding& finding : judgement.findings) finding.advice = HowToMakeRoom();
  if (said || shm || !facts.run().log.empty()) return judgement;
  return NotApplicable(Say("neither the use of /dev/shm nor the training's output was recorded",
                           "没有记录 /dev/shm 的使用量，也没有记录训练的输出"));
}

}  // namespace

namespace rules {

const RuleDef kShmExhaustion = {
    .id = "shm_exhaustion",
    .Title = [] { return Say("Shared memory runs out", "共享内存不足"); },
    .Judge = Judge};

}  // namespace rules
}  // namespace epochmeter::diagnose
