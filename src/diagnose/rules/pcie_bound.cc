// SPDX-License-Identifier: Apache-2.0
// The PCIe link between host and GPU is slower than it could be, unreliable, or full. Needs the
// link's speed and width, its replay counter, or its bytes.
//
// A link runs slower on purpose while the GPU is idle: speed counts only where the GPU works, and
// the fastest that was seen there counts. Replays are judged by the rate that monitoring tools
// allow for the link. A full link is a fault only where the GPU's SMs wait meanwhile; a link that
// is full while they work hides its transfers well.
#include <algorithm>
#include <array>
#include <cmath>

#include "diagnose/activity.h"
#include "diagnose/counters.h"
#include "diagnose/rules/all.h"
#include "diagnose/say.h"
#include "diagnose/throttling.h"

namespace epochmeter::diagnose {
namespace {

using model::Finding;
using model::Severity;

// By generation: bytes a second of one lane in one direction after coding, and the replays a minute
// of one lane that are allowed.
struct Lane {
  double bytes_per_s, replays_per_min;
};
constexpr std::array<Lane, 7> kLanes = {{{0, 0},
                                         {0.25e9, 0.12},
                                         {0.5e9, 0.24},
                                         {0.985e9, 0.48},
                                         {1.969e9, 0.96},
                                         {3.938e9, 1.92},
                                         {7.563e9, 3.84}}};

struct Link {
  double generation = 0, width = 0;

  bool Known() const { return generation >= 1 && width >= 1; }
  const Lane& OfLane() const {
    const auto place = static_cast<size_t>(std::clamp(generation, 0.0, 6.0));
    return kLanes[place];
  }
  double BytesPerSecond() const { return OfLane().bytes_per_s * width; }
  std::string Text() const { return fmt::format("PCIe {:.0f}.0 x{:.0f}", generation, width); }
};

constexpr size_t kFewestReadings = 2;  // under load; one may be from the moment after a pause

// The fastest that the link was while the GPU worked; nothing when it was hardly read then.
std::optional<double> FastestAtWork(const Facts& facts, const JudgedGpu& gpu,
                                    std::string_view field) {
  const model::SeriesColumn speed = facts.Read(gpu.entity->id, field);
  const model::SeriesColumn busy =
      facts.Read(gpu.entity->id, "utilization_ratio", facts.run().Recorded());
  const double working = facts.limits()["pcie_bound.working_ratio"];
  double fastest = 0;
  size_t readings = 0;
  for (size_t i = 0; i < speed.t_ns.size(); ++i) {
    const auto at = std::upper_bound(busy.t_ns.begin(), busy.t_ns.end(), speed.t_ns[i]);
    if (at == busy.t_ns.begin()) continue;
    const double load = busy.value[static_cast<size_t>(at - busy.t_ns.begin()) - 1];
    if (!(load >= working)) continue;
    ++readings;
    fastest = std::max(fastest, speed.value[i]);
  }
  if (readings < kFewestReadings) return {};
  return fastest;
}

struct Slow {
  int32_t gpu = -1;
  Link now, best;
};

std::optional<Slow> SlowLink(const Facts& facts, const JudgedGpu& gpu, bool* any) {
  const auto generation = FastestAtWork(facts, gpu, "pcie_link_generation");
  const auto width = FastestAtWork(facts, gpu, "pcie_link_width");
  const auto best_generation = HighestOf(facts, gpu, "pcie_link_max_generation");
  const auto best_width = HighestOf(facts, gpu, "pcie_link_max_width");
  if (!generation || !width || !best_generation || !best_width) return {};
  *any = true;
  const Slow slow{.gpu = gpu.gpu,
                  .now = {.generation = *generation, .width = *width},
                  .best = {.generation = *best_generation, .width = *best_width}};
  const bool slower = *generation < *best_generation || *width < *best_width;
  if (!slower || !slow.now.Known()) return {};
  return slow;
}

// The link's own speed for judging its bytes and replays: as it could be, or the usual x16.
Link LinkOf(const Facts& facts, const JudgedGpu& gpu) {
  const auto generation = HighestOf(facts, gpu, "pcie_link_max_generation");
  const auto width = HighestOf(facts, gpu, "pcie_link_max_width");
  return {.generation = generation.value_or(0), .width = width.value_or(0)};
}

Finding ToldSlow(const Facts& facts, const std::vector<Slow>& list) {
  const Slow& first = list.front();
  Finding finding;
  finding.severity = Severity::kWarning;
  if (list.size() == 1) finding.gpu = first.gpu;
  finding.confidence = 0.85;
  const double part = first.now.BytesPerSecond() / std::max(first.best.BytesPerSecond(), 1.0);
  const model::Message on = SayGpus(list.size(), first.gpu);
  finding.summary = Say("{} is linked at {} under load, {} of what {} gives", "", on.en,
                        first.now.Text(), SayPercent(part), first.best.Text());
  finding.summary.zh = fmt::format("{} 在负载下的链路为 {}，仅为 {} 的 {}", on.zh, first.now.Text(),
                                   first.best.Text(), SayPercent(part));
  finding.summary.en += ".";
  finding.summary.zh += "。";
  finding.explanation = Say(
      "The fastest state of the link that was seen while the GPU worked; when idle a link slows "
      "down on purpose. Copies to and from the GPU take longer by as much.",
      "取 GPU 工作期间观察到的最快链路状态；空闲时链路会主动降速。主机与 GPU 之间的拷贝相应变慢。");
  finding.advice.push_back(
      {.framework = "",
       .text = Say("Have the card seated anew, the riser and the slot's BIOS setting (speed, "
                   "bifurcation) checked.",
                   "重新插好显卡，检查转接卡以及 BIOS 中该插槽的设置（速率、拆分）。"),
       .code = fmt::format("nvidia-smi -q -i {} | grep -A 12 'GPU Link Info'", first.gpu)});
  finding.evidence.push_back({.series = "gpu" + std::to_string(first.gpu) + " pcie_link_width",
                              .interval = facts.run().Recorded(),
                              .values = {{"generation", first.now.generation},
                                         {"max_generation", first.best.generation},
                                         {"width", first.now.width},
                                         {"max_width", first.best.width}},
                              .note = {},
                              .steps = {}});
  return finding;
}

struct Replays {
  int32_t gpu = -1;
  Growth growth;
  double per_min = 0, allowed_per_min = 0;
};

std::optional<Replays> TooManyReplays(const Facts& facts, const JudgedGpu& gpu, bool* any) {
  std::optional<Growth> growth = GrowthInRun(facts, *gpu.entity, "pcie_replays");
  if (!growth || growth->seconds <= 0) return {};
  *any = true;
  Link link = LinkOf(facts, gpu);
  // Where the link is not known the most generous that is in use.
  if (!link.Known()) link = {.generation = 5, .width = 16};
  Replays replays{.gpu = gpu.gpu,
                  .growth = std::move(*growth),
                  .allowed_per_min = std::ceil(link.OfLane().replays_per_min * link.width)};
  const double minutes = std::max(replays.growth.seconds / 60, 1.0);
  replays.per_min = replays.growth.value / minutes;
  if (replays.per_min <= replays.allowed_per_min) return {};
  return replays;
}

Finding ToldReplays(const std::vector<Replays>& list) {
  const Replays& worst = list.front();
  Finding finding;
  finding.severity = Severity::kWarning;
  if (list.size() == 1) finding.gpu = worst.gpu;
  const model::Message on = SayGpus(list.size(), worst.gpu);
  finding.summary = Say("{}: {} PCIe packets a minute had to be sent again; {:.0f} are allowed", "",
                        on.en, SayNumber(worst.per_min), worst.allowed_per_min);
  finding.summary.zh = fmt::format("{}：每分钟有 {} 个 PCIe 数据包需要重发，允许值为 {:.0f}", on.zh,
                                   SayNumber(worst.per_min), worst.allowed_per_min);
  finding.summary.en += ".";
  finding.summary.zh += "。";
  finding.explanation =
      Say("Growth of the replay counter during the run; the allowed rate is that "
          "of the link's speed and width.",
          "运行期间重发计数器的增长；允许值取决于链路的速率和宽度。");
  finding.advice.push_back(
      {.framework = "",
       .text =
           Say("Have the card seated anew and riser and cables checked: the link has bit errors.",
               "重新插好显卡并检查转接卡和线缆：链路存在误码。"),
       .code = {}});
  finding.evidence.push_back({.series = worst.growth.series,
                              .interval = worst.growth.when,
                              .values = {{"pcie_replays", worst.growth.value},
                                         {"per_min", worst.per_min},
                                         {"allowed_per_min", worst.allowed_per_min}},
                              .note = {},
                              .steps = {}});
  return finding;
}

struct Full {
  const JudgedGpu* gpu = nullptr;
  std::string_view field;
  double bytes_per_s = 0, ratio = 0, sm_active = 0;
};

std::optional<Full> FullLink(const Facts& facts, const JudgedGpu& gpu, bool* any) {
  const Link link = LinkOf(facts, gpu);
  std::optional<Full> full;
  for (const std::string_view field : {"pcie_receive_bytes_per_s", "pcie_transmit_bytes_per_s"}) {
    const auto rate = MeanOver(facts, gpu.gpu, field, gpu.intervals);
    if (!rate || !link.Known()) continue;
    *any = true;
    const double ratio = *rate / link.BytesPerSecond();
    if (ratio < facts.limits()["pcie_bound.full_ratio"] || (full && full->ratio >= ratio)) continue;
    full = Full{.gpu = &gpu, .field = field, .bytes_per_s = *rate, .ratio = ratio};
  }
  const auto active = MeanOver(facts, gpu.gpu, "sm_active_ratio", gpu.intervals);
  const auto busy = active ? active : MeanOver(facts, gpu.gpu, "utilization_ratio", gpu.intervals);
  if (!full || !busy || *busy >= facts.limits()["pcie_bound.sm_active_ratio"]) return {};
  full->sm_active = *busy;
  return full;
}

std::vector<model::Advice> HowToCopyLess() {
  return {
      {.framework = "paddle",
       .text =
           Say("Copy less: keep what is used again on the GPU, send uint8 or half precision and "
               "convert there, and copy from pinned memory ahead of time.",
               "减少拷贝：将重复使用的数据留在 GPU 上，以 uint8 或半精度传输后在 GPU 上转换，并"
               "使用锁页内存提前拷贝。"),
       .code = "x = x.pin_memory().cuda(blocking=False)\n"
               "loader = paddle.io.DataLoader(dataset, use_buffer_reader=True, prefetch_factor=4)"},
      {.framework = "tensorflow",
       .text = Say("Copy less: send uint8 and convert on the GPU, and prefetch to the device.",
                   "减少拷贝：以 uint8 传输并在 GPU 上转换，并预取到设备。"),
       .code = "ds = ds.apply(tf.data.experimental.prefetch_to_device('/GPU:0'))"},
      {.framework = "pytorch",
       .text =
           Say("Copy less: keep what is used again on the GPU, send uint8 or half precision and "
               "convert there, and copy from pinned memory ahead of time.",
               "减少拷贝：将重复使用的数据留在 GPU 上，以 uint8 或半精度传输后在 GPU 上转换，并"
               "使用锁页内存提前拷贝。"),
       .code = "loader = DataLoader(dataset, pin_memory=True, prefetch_factor=4, num_workers=8)\n"
               "x = x.to('cuda', non_blocking=True)"},
  };
}

Finding ToldFull(const std::vector<Full>& list) {
  const Full& worst = list.front();
  Finding finding;
  finding.severity = Severity::kWarning;
  if (list.size() == 1) finding.gpu = worst.gpu->gpu;
  finding.confidence = 0.8;
  const model::Message on = SayGpus(list.size(), worst.gpu->gpu);
  finding.summary = Say(
      "{}: PCIe carries {}/s, {} of what the link can, while the SMs are active {} of the time", "",
      on.en, SayBytes(worst.bytes_per_s), SayPercent(worst.ratio), SayPercent(worst.sm_active));
  finding.summary.zh = fmt::format(
      "{}：PCIe 传输速率为 {}/s，达到链路能力的 {}，而 SM 活跃时间仅占 {}", on.zh,
      SayBytes(worst.bytes_per_s), SayPercent(worst.ratio), SayPercent(worst.sm_active));
  finding.summary.en += ".";
  finding.summary.zh += "。";
  finding.explanation = Say("Means over the steady steps: the GPU waits for copies, not for work.",
                            "稳定步骤期间的平均值：GPU 在等待数据拷贝。");
  finding.advice = HowToCopyLess();
  finding.evidence.push_back(
      {.series = "gpu" + std::to_string(worst.gpu->gpu) + " " + std::string(worst.field),
       .interval = worst.gpu->Span(),
       .values = {{"bytes_per_s", worst.bytes_per_s},
                  {"link_ratio", worst.ratio},
                  {"sm_active_ratio", worst.sm_active}},
       .note = {},
       .steps = {}});
  return finding;
}

Judgement Judge(const Facts& facts) {
  const std::vector<JudgedGpu> gpus = JudgedGpus(facts);
  std::vector<Slow> slow;
  std::vector<Replays> replays;
  std::vector<Full> full;
  bool any = false;
  for (const JudgedGpu& gpu : gpus) {
    if (const auto found = SlowLink(facts, gpu, &any)) slow.push_back(*found);
    if (auto found = TooManyReplays(facts, gpu, &any)) replays.push_back(std::move(*found));
    if (const auto found = FullLink(facts, gpu, &any)) full.push_back(*found);
  }
  if (!any) {
    return NotApplicable(Say("no GPU of the job tells its PCIe link, replays or bytes",
                             "作业的 GPU 均未提供 PCIe 链路、重发计数或字节数"));
  }
  std::stable_sort(slow.begin(), slow.end(), [](const Slow& a, const Slow& b) {
    return a.now.BytesPerSecond() < b.now.BytesPerSecond();
  });
  std::stable_sort(replays.begin(), replays.end(),
                   [](const Replays& a, const Replays& b) { return a.per_min > b.per_min; });
  std::stable_sort(full.begin(), full.end(),
                   [](const Full& a, const Full& b) { return a.ratio > b.ratio; });
  Judgement judgement;
  if (!slow.empty()) judgement.findings.push_back(ToldSlow(facts, slow));
  if (!replays.empty()) judgement.findings.push_back(ToldReplays(replays));
  if (!full.empty()) judgement.findings.push_back(ToldFull(full));
  return judgement;
}

}  // namespace

namespace rules {

const RuleDef kPcieBound = {
    .id = "pcie_bound",
    .Title = [] { return Say("PCIe holds the GPU back", "PCIe 拖慢了 GPU"); },
    .Judge = Judge};

}  // namespace rules
}  // namespace epochmeter::diagnose
