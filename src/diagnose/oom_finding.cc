// SPDX-License-Identifier: Apache-2.0
#include "diagnose/oom_finding.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/strings.h"
#include "diagnose/evidence.h"
#include "diagnose/memory.h"
#include "diagnose/own_gpus.h"

namespace epochmeter::diagnose {
namespace {

using model::Advice;
using model::Finding;
using model::Message;
using model::Severity;

// What stands out of the device's memory when it failed.
enum class Cause : uint8_t { kUnknown, kFragmented, kGrowth, kRose, kOthers, kBigStep };

// The memory of the device as it ran out. Absent: not known.
struct Holders {
  std::optional<double> total, left, allocated, unallocated, outside, others;
  std::vector<std::pair<std::string, double>> processes;  // "pid4711_bytes"
};

// The last sample at or before `t_ns`.
std::optional<double> ValueAt(const model::Curve* curve, int64_t t_ns) {
  if (curve == nullptr) return {};
  std::optional<double> value;
  for (size_t i = 0; i < curve->points.t_ns.size() && curve->points.t_ns[i] <= t_ns; ++i) {
    if (std::isfinite(curve->points.value[i])) value = curve->points.value[i];
  }
  return value;
}

std::optional<int32_t> GpuOf(const Facts& facts, const OomCase& oom) {
  if (oom.rank == nullptr) {
    const auto& all = facts.report().gpus;
    return all.size() == 1 ? std::optional(all.front().gpu) : std::nullopt;
  }
  const auto& gpus = oom.rank->gpus;
  if (gpus.size() == 1) return gpus.front();
  const auto place = static_cast<size_t>(oom.text.gpu.value_or(0));
  if (oom.text.gpu && place < gpus.size()) return gpus[place];
  return {};
}

// All processes on the GPU by the driver's list, the rank's own among them.
void AddProcesses(const Facts& facts, int32_t gpu, const OomCase& oom, Holders* holders) {
  for (const model::EntityDef& entity : facts.run().entities) {
    if (entity.scope != model::Scope::kProcess ||
        Find(entity.labels, "gpu") != std::to_string(gpu)) {
      continue;
    }
    const std::string_view pid = Find(entity.labels, "pid");
    const auto bytes = ValueAt(facts.FindCurve(entity.id, "gpu_memory_bytes"), oom.t_ns);
    if (pid.empty() || !bytes || holders->processes.size() >= 16) continue;
    holders->processes.emplace_back("pid" + std::string(pid) + "_bytes", *bytes);
  }
}

Holders HoldersOf(const Facts& facts, const OomCase& oom, std::optional<int32_t> gpu) {
  Holders holders{.total = oom.text.total_bytes,
                  .left = oom.text.free_bytes,
                  .allocated = oom.text.allocated_bytes,
                  .unallocated = oom.text.unallocated_bytes};
  if (oom.rank != nullptr) {
    const auto allocated = ValueAt(facts.FrameworkCurve(*oom.rank, "allocated_bytes"), oom.t_ns);
    const auto reserved = ValueAt(facts.FrameworkCurve(*oom.rank, "reserved_bytes"), oom.t_ns);
    if (!holders.allocated) holders.allocated = allocated;
    if (!holders.unallocated && allocated && reserved) {
      holders.unallocated = std::max(0.0, *reserved - *allocated);
    }
  }
  if (oom.text.process_bytes && holders.allocated) {
    holders.outside = std::max(
        0.0, *oom.text.process_bytes - *holders.allocated - holders.unallocated.value_or(0));
  }
  for (const auto& [pid, bytes] : oom.text.others) {
    holders.others = holders.others.value_or(0) + bytes;
    holders.processes.emplace_back(fmt::format("pid{}_bytes", pid), bytes);
  }
  if (!gpu) return holders;
  if (const auto room = RoomOf(facts, *gpu); room && !holders.total)
    holders.total = room->limit_bytes;
  if (!holders.left) holders.left = ValueAt(facts.GpuCurve(*gpu, "memory_free_bytes"), oom.t_ns);
  if (!holders.others) {
    holders.others = ValueAt(facts.GpuCurve(*gpu, "others_memory_bytes"), oom.t_ns);
  }
  if (oom.text.others.empty()) AddProcesses(facts, *gpu, oom, &holders);
  return holders;
}

// What the allocator held at the first and the last of its few samples, where it rose all the time
// and by a quarter at least: too few for a trend, and not to be called steady either.
struct Rise {
  double from_bytes = 0, to_bytes = 0;
};

constexpr size_t kFewestOfRise = 3;
constexpr double kLeastRise = 1.25;

std::optional<Rise> RiseOf(const Facts& facts, const OomCase& oom) {
  if (oom.rank == nullptr) return {};
  const auto all = AllocatorPoints(facts, *oom.rank);
  const std::vector<LevelPoint> held = HeldPoints(*oom.rank, all);
  if (held.size() < kFewestOfRise) return {};
  const bool falls = !std::is_sorted(
      held.begin(), held.end(), [](const auto& a, const auto& b) { return a.value < b.value; });
  if (falls || !(held.back().value >= kLeastRise * held.front().value)) return {};
  return Rise{.from_bytes = held.front().value, .to_bytes = held.back().value};
}

Cause CauseOf(const Facts& facts, const OomCase& oom, const Holders& holders,
              const std::optional<DeviceGrowth>& growth, const std::optional<Rise>& rise) {
  const double unallocated = holders.unallocated.value_or(0);
  const double taken = holders.allocated.value_or(0) + unallocated;
  const bool enough = unallocated >= oom.text.asked_bytes.value_or(INFINITY);
  if (enough && unallocated >= facts.limits()["out_of_memory.fragmented_ratio"] * taken) {
    return Cause::kFragmented;
  }
  if (growth && growth->trend.grows()) return Cause::kGrowth;
  if (rise) return Cause::kRose;
  const double total = holders.total.value_or(INFINITY);
  if (holders.others.value_or(0) >= facts.limits()["out_of_memory.others_ratio"] * total) {
    return Cause::kOthers;
  }
  const bool judged = growth && growth->trend.kind != TrendKind::kTooShort;
  return judged ? Cause::kBigStep : Cause::kUnknown;
}

Message WhyOf(Cause cause, const Holders& holders, const std::optional<DeviceGrowth>& growth,
              const std::optional<Rise>& rise) {
  switch (cause) {
    case Cause::kRose:
      return Say(
          " Live tensors had risen from {} to {} in the few samples before: look for what "
          "keeps them.",
          "此前的少量采样中，存活的张量从 {} 升到 {}：请查找是什么保留了它们。",
          SayBytes(rise->from_bytes), SayBytes(rise->to_bytes));
    case Cause::kFragmented:
      return Say(
          " {} were reserved by the allocator and in no tensor, more than was asked for: it "
          "is fragmented.",
          "分配器保留而未使用的有 {}，多于所申请的大小：显存碎片化。",
          SayBytes(holders.unallocated.value_or(0)));
    case Cause::kGrowth:
      return growth->by_steps
                 ? Say(" Live tensors had grown by {} a step before: they are not freed.",
                       "此前存活的张量每步增长 {}：没有被释放。", SayBytes(growth->trend.slope))
                 : Say(" Live tensors had grown by {} a second before: they are not freed.",
                       "此前存活的张量每秒增长 {}：没有被释放。", SayBytes(growth->trend.slope));
    case Cause::kOthers:
      return Say(" Other processes held {} of the device.", "其他进程占用了该设备的 {}。",
                 SayBytes(holders.others.value_or(0)));
    case Cause::kBigStep:
      return Say(" Nothing grew steadily before: a step needs more than there is.",
                 "此前没有持续增长：单个步骤的需求超过了可用显存。");
    case Cause::kUnknown:
      break;
  }
  return {};
}

Advice For(const char* framework, Message text, const char* code) {
  return {.framework = framework, .text = std::move(text), .code = code};
}

std::vector<Advice> AdviceFor(Cause cause) {
  if (cause == Cause::kFragmented) {
    const Message text = Say("Let the allocator grow its blocks instead of splitting them.",
                             "让分配器扩展内存段，而不是切分固定大小的块。");
    return {For("paddle", text, "FLAGS_allocator_strategy=auto_growth"),
            For("tensorflow", text, "TF_GPU_ALLOCATOR=cuda_malloc_async"),
            For("pytorch", text, "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True")};
  }
  if (cause == Cause::kGrowth || cause == Cause::kRose) {
    const Message text = Say("Find what keeps tensors over steps; keep numbers instead.",
                             "找出跨步保留张量的地方；改为保留数值。");
    return {For("paddle", text, "total += float(loss)\noutputs.append(out.detach().cpu())"),
            For("tensorflow", text, "total += float(loss)"),
            For("pytorch", text, "total += loss.item()\nhistory.append(out.detach().cpu())")};
  }
  if (cause == Cause::kOthers) {
    return {For("",
                Say("Take a free GPU, or end the listed processes if they are yours.",
                    "换用空闲的 GPU，或结束列出的进程（如果属于你）。"),
                "nvidia-smi --query-compute-apps=pid,name,used_memory --format=csv")};
  }
  const Message text =
      Say("Make the batch smaller and add up gradients, compute in 16 bit, or "
          "recompute activations instead of keeping them.",
          "减小批次并累积梯度，使用 16 位计算，或重算激活而不是保留。");
  return {For("paddle", text,
              "with paddle.amp.auto_cast(dtype='bfloat16'): ...\n"
              "paddle.distributed.fleet.utils.recompute(block, x)"),
          For("tensorflow", text,
              "keras.mixed_precision.set_global_policy('mixed_bfloat16')\n"
              "tf.recompute_grad(block)"),
          For("pytorch", text,
              "with torch.autocast('cuda', torch.bfloat16): ...\n"
              "torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)")};
}

// The step that was under way.
struct Place {
  std::optional<int64_t> step, epoch;
  bool goes_on = false;  // steps followed
};

Place PlaceOf(const OomCase& oom) {
  Place place{.step = oom.step, .epoch = oom.epoch};
  if (oom.rank == nullptr) return place;
  const auto& steps = oom.rank->steps;
  const auto after = std::find_if(steps.begin(), steps.end(),
                                  [&](const TrainStep& step) { return step.end_ns > oom.t_ns; });
  place.goes_on = after != steps.end();
  if (!place.step && after != steps.begin()) {
    const auto last = static_cast<size_t>(after - steps.begin());
    // Steps that are told only now and then do not say which one it was.
    if (steps[last - 1].steps == 1) place.step = StepNumber(steps[last - 1], last) + 1;
  }
  for (const model::EpochRow* row : oom.rank->rows) {
    if (place.epoch || row->epoch == model::kNoEpoch) continue;
    if (row->begin_ns <= oom.t_ns && oom.t_ns <= row->end_ns) place.epoch = row->epoch;
  }
  return place;
}

model::Evidence EvidenceOf(const Facts& facts, const OomCase& oom, const Holders& holders,
                           const Place& place) {
  const RankFacts* rank = oom.rank;
  const model::Curve* curve =
      rank == nullptr ? nullptr : facts.FrameworkCurve(*rank, "allocated_bytes");
  model::Evidence evidence{
      .series = curve != nullptr ? facts.SeriesName(*curve) : "",
      .interval = {.begin_ns = rank == nullptr ? oom.t_ns : rank->training.begin_ns,
                   .end_ns = oom.t_ns}};
  evidence.interval.begin_ns = std::min(evidence.interval.begin_ns, oom.t_ns);
  PutKnown("asked_bytes", oom.text.asked_bytes, &evidence.values);
  PutKnown("free_bytes", holders.left, &evidence.values);
  PutKnown("total_bytes", holders.total, &evidence.values);
  PutKnown("allocated_bytes", holders.allocated, &evidence.values);
  PutKnown("reserved_unallocated_bytes", holders.unallocated, &evidence.values);
  PutKnown("non_framework_bytes", holders.outside, &evidence.values);
  PutKnown("others_bytes", holders.others, &evidence.values);
  for (const auto& [name, bytes] : holders.processes) evidence.values.emplace_back(name, bytes);
  if (place.step) evidence.steps.push_back(*place.step);
  return evidence;
}

model::Evidence GrowthEvidence(const Facts& facts, const DeviceGrowth& growth) {
  return {.series = facts.SeriesName(*growth.curve),
          .interval = {.begin_ns = growth.floors.front().interval.begin_ns,
                       .end_ns = growth.floors.back().interval.end_ns},
          .values = {{"first_floor_bytes", growth.floors.front().lowest.value},
                     {"last_floor_bytes", growth.floors.back().lowest.value},
                     {growth.by_steps ? "slope_bytes_per_step" : "slope_bytes_per_s",
                      growth.trend.slope}},
          .note = Say("what grew before", "此前增长的部分")};
}

Message Where(const OomCase& oom, const Place& place, std::optional<int32_t> gpu) {
  const std::string who = oom.rank != nullptr ? oom.rank->name : "the training";
  const std::string zh_who = oom.rank != nullptr ? oom.rank->name : "训练";
  Message where{.en = who + " ran out of " + (oom.text.host ? "host" : "device") + " memory",
                .zh = zh_who + (oom.text.host ? " 耗尽了主机内存" : " 耗尽了显存")};
  if (gpu && !oom.text.host) {
    where.en += fmt::format(" on GPU {}", *gpu);
    where.zh += fmt::format("（GPU {}）", *gpu);
  }
  if (place.step) {
    where.en += fmt::format(" in step {}", *place.step);
    where.zh += fmt::format("，在第 {} 步", *place.step);
  }
  if (place.epoch) {
    where.en += fmt::format(" of epoch {}", *place.epoch);
    where.zh += fmt::format("（第 {} 轮）", *place.epoch);
  }
  if (oom.text.asked_bytes) {
    where.en += ": it asked for " + SayBytes(*oom.text.asked_bytes);
    where.zh += "：申请 " + SayBytes(*oom.text.asked_bytes);
  }
  return where;
}

Message HowKnown(const OomCase& oom, const Place& place) {
  if (place.goes_on) {
    return Say("The training caught this and went on; it was told {} times.",
               "训练捕获了该错误并继续运行；共出现 {} 次。", oom.count);
  }
  if (oom.from_log) {
    return Say(
        "Told by the captured output; sizes that it does not name are the last samples "
        "before.",
        "由捕获的输出得知；其中未写明的大小取自此前最后的样本。");
  }
  return Say("Told by the exception; sizes that it does not name are the last samples before.",
             "由异常得知；其中未写明的大小取自此前最后的样本。");
}

}  // namespace

Finding OomFinding(const Facts& facts, const OomCase& oom) {
  const auto gpu = oom.text.host ? std::nullopt : GpuOf(facts, oom);
  const Place place = PlaceOf(oom);
  const Holders holders = oom.text.host ? Holders{} : HoldersOf(facts, oom, gpu);
  std::optional<DeviceGrowth> growth;
  if (oom.rank != nullptr && !oom.text.host) growth = JudgeDeviceGrowth(facts, *oom.rank);
  const std::optional<Rise> rise = RiseOf(facts, oom);
  const Cause cause = CauseOf(facts, oom, holders, growth, rise);
  Finding finding;
  finding.severity = place.goes_on ? Severity::kWarning : Severity::kCritical;
  finding.confidence = oom.from_log ? 0.85 : 1.0;
  if (oom.rank != nullptr) {
    finding.rank = oom.rank->rank;
    finding.pid = oom.rank->pid;
  }
  finding.gpu = gpu;
  finding.summary = Where(oom, place, gpu);
  if (holders.left) {
    finding.summary.en += ", " + SayBytes(*holders.left) + " were free";
    finding.summary.zh += "，剩余 " + SayBytes(*holders.left);
  }
  if (holders.allocated) {
    finding.summary.en += ", " + SayBytes(*holders.allocated) + " were in its tensors";
    finding.summary.zh += "，其张量占用 " + SayBytes(*holders.allocated);
  }
  const Message why = oom.text.host ? Message{} : WhyOf(cause, holders, growth, rise);
  finding.summary.en += "." + why.en;
  finding.summary.zh += "。" + why.zh;
  finding.explanation = HowKnown(oom, place);
  finding.advice = AdviceFor(oom.text.host ? Cause::kUnknown : cause);
  finding.evidence.push_back(EvidenceOf(facts, oom, holders, place));
  if (growth && growth->trend.grows()) {
    finding.evidence.push_back(GrowthEvidence(facts, *growth));
  }
  return finding;
}

}  // namespace epochmeter::diagnose
