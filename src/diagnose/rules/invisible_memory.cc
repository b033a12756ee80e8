// SPDX-License-Identifier: Apache-2.0
// Device memory that is in use and that the framework's allocator knows nothing of.
//
// Used less reserved, by samples taken while neither grew, less what the driver lists for other
// processes. A context, kernels and buffers of collectives take a gigabyte or two. False positives:
// an allocator of a second framework in the same process, such as a loader that decodes on the
// device; where other processes can't be told apart it is only remarked on.
#include <algorithm>

#include "diagnose/memory.h"
#include "diagnose/rules/all.h"
#include "diagnose/say.h"

namespace epochmeter::diagnose {
namespace {

using model::Finding;
using model::Severity;

struct Hidden {
  int32_t gpu = 0;
  double beside_bytes = 0, others_bytes = 0, limit_bytes = 0;
  bool others_known = false;  // else another process may hold it
  double bytes() const { return std::max(0.0, beside_bytes - others_bytes); }
};

std::optional<Hidden> HiddenOf(const Facts& facts, const RankFacts& rank) {
  const auto gpu = AllocatorGpu(facts, rank);
  if (!gpu) return {};
  const auto room = RoomOf(facts, *gpu);
  const auto beside = BesideAllocator(facts, rank, *gpu);
  if (!room || !beside) return {};
  const auto others = LastOf(facts.GpuCurve(*gpu, "others_memory_bytes"));
  const auto processes = HighestOf(facts.GpuCurve(*gpu, "processes"));
  return Hidden{.gpu = *gpu,
                .beside_bytes = *beside,
                .others_bytes = others.value_or(0),
                .limit_bytes = room->limit_bytes,
                .others_known = others.has_value() || processes.value_or(2) <= 1};
}

Finding Found(const RankFacts& rank, const Hidden& hidden, const Limits& limits) {
  const double ratio = hidden.bytes() / hidden.limit_bytes;
  Finding finding;
  const bool much = ratio >= limits["invisible_memory.warning_ratio"] && hidden.others_known;
  finding.severity = much ? Severity::kWarning : Severity::kInfo;
  finding.rank = rank.rank;
  finding.pid = rank.pid;
  finding.gpu = hidden.gpu;
  finding.confidence = hidden.others_known ? 0.85 : 0.5;
  finding.summary = Say("{} of GPU {} ({}) are in use beside the allocator of {}.",
                        "GPU {1} 上有 {0}（{2}）在 {3} 的分配器之外被占用。",
                        SayBytes(hidden.bytes()), hidden.gpu, SayPercent(ratio), rank.name);
  finding.explanation =
      Say("Contexts, kernels and buffers of collectives take a gigabyte or two; more are libraries "
          "that allocate by themselves, a second framework, or a process that the driver does not "
          "list.",
          "上下文、内核和集合通信缓冲区通常占一两 GB；更多则来自自行分配的库、第二个框架，或驱动未"
          "列出的进程。");
  finding.advice.push_back(
      {.framework = "",
       .text = Say("See which library allocates: load them one by one, and keep a second framework "
                   "off the device.",
                   "逐个加载库以查看是谁在分配；不要让第二个框架使用该设备。"),
       .code = "tf.config.set_visible_devices([], 'GPU')\nNCCL_BUFFSIZE=2097152"});
  finding.evidence.push_back({.series = "gpu" + std::to_string(hidden.gpu) + " memory_used_bytes",
                              .interval = rank.training,
                              .values = {{"invisible_bytes", hidden.bytes()},
                                         {"beside_allocator_bytes", hidden.beside_bytes},
                                         {"others_bytes", hidden.others_bytes},
                                         {"device_bytes", hidden.limit_bytes}}});
  return finding;
}

Judgement Judge(const Facts& facts) {
  Judgement judgement;
  bool any = false;
  for (const RankFacts& rank : facts.ranks()) {
    const auto hidden = HiddenOf(facts, rank);
    if (!hidden) continue;
    any = true;
    const double least = facts.limits()["invisible_memory.info_ratio"] * hidden->limit_bytes;
    if (hidden->bytes() >= least) {
      judgement.findings.push_back(Found(rank, *hidden, facts.limits()));
    }
  }
  FoldRanks("invisible_bytes", &judgement.findings);
  if (any) return judgement;
  return NotApplicable(
      Say("no rank tells what its allocator has reserved on a GPU whose use is "
          "known",
          "没有任何 rank 在用量已知的 GPU 上报告分配器保留的显存"));
}

}  // namespace

namespace rules {

const RuleDef kInvisibleMemory = {
    .id = "invisible_memory",
    .Title =
        [] {
          return Say("Device memory that the framework does not know of", "框架不知道的显存占用");
        },
    .Judge = Judge};

}  // namespace rules
}  // namespace epochmeter::diagnose
