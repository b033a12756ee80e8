// SPDX-License-Identifier: Apache-2.0
// Memory of each NUMA node, and how often memory came from another node than was wanted. A machine
// with one node has no series here: its memory is that of host.memory.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>

#include "base/strings.h"
#include "collect/host_sources.h"
#include "collect/proc_dir.h"
#include "collect/proc_file.h"
#include "collect/proc_pid.h"

namespace epochmeter::collect {

namespace {

consteval model::MetricDef NodeMemory(std::string_view name, std::string_view field,
                                      std::string_view prometheus, std::string_view help) {
  return model::Metric({name, "", field, prometheus, "By", model::MetricKind::kGauge,
                        model::Scope::kHost, 1024, help, "/sys/devices/system/node/nodeN/meminfo"});
}
consteval model::MetricDef NodePages(std::string_view name, std::string_view field,
                                     std::string_view prometheus, std::string_view help) {
  return model::Metric({name, "", field, prometheus, "{page}", model::MetricKind::kCounter,
                        model::Scope::kHost, 1, help, "/sys/devices/system/node/nodeN/numastat"});
}
constexpr std::array<model::MetricDef, 4> kMetrics = {
    NodeMemory("host.numa.total", "numa_total_bytes", "host_numa_capacity_bytes",
               "Memory of the node."),
    NodeMemory("host.numa.free", "numa_free_bytes", "host_numa_free_bytes",
               "Memory of the node that nothing uses, not even the page cache."),
    NodePages("host.numa.miss", "numa_miss_pages", "host_numa_miss_pages_total",
              "Pages that the node gave because the wanted node had none."),
    NodePages("host.numa.other_node", "numa_other_node_pages", "host_numa_other_node_pages_total",
              "Pages of the node that a process took while it ran on another node."),
};

struct Node {
  HotFile meminfo, numastat;
  std::array<model::SeriesId, kMetrics.size()> series{};
};

class HostNuma : public Source {
 public:
  HostNuma(const SourceContext& context, const std::string& folder,
           const std::vector<uint64_t>& numbers)
      : states_(context.sink) {
    if (numbers.size() < 2) return;
    for (const uint64_t number : numbers) {
      const std::string node = fmt::format("{}/node{}", folder, number);
      nodes_.push_back({.meminfo = HotFile(node + "/meminfo"),
                        .numastat = HotFile(node + "/numastat"),
                        .series = {}});
      const model::EntityId entity =
          context.registry.AddEntity({.id = 0,
                                      .scope = model::Scope::kHost,
                                      .name = fmt::format("numa:{}", number),
                                      .labels = {{"numa_node", std::to_string(number)}},
                                      .attributes = {}});
      for (size_t i = 0; i < kMetrics.size(); ++i) {
        nodes_.back().series[i] = context.registry.AddSeries(
            entity, kMetrics[i], TierPeriodNs(Tier::kSlow, context.tick_ns));
      }
    }
  }

  base::Result<> Sample(model::Samples& out) override {
    for (Node& node : nodes_) {
      const auto memory = node.meminfo.Read();
      Give(out, node, 0, KibOf(memory, "MemTotal:"), memory);
      Give(out, node, 1, KibOf(memory, "MemFree:"), memory);
      const auto pages = node.numastat.Read();
      Give(out, node, 2, CountOf(pages, "numa_miss "), pages);
      Give(out, node, 3, CountOf(pages, "other_node "), pages);
    }
    return {};
  }

 private:
  // A line reads "Node 0 MemTotal:       131981020 kB".
  static std::optional<uint64_t> KibOf(const base::Result<std::string_view>& text,
                                       std::string_view key) {
    if (!text.ok()) return std::nullopt;
    std::string_view rest = *text, line, word;
    while (NextLine(rest, line)) {
      if (!NextWord(line, word) || !NextUint(line) || !NextWord(line, word) || word != key)
        continue;
      const auto kib = NextUint(line);
      return kib ? std::optional(*kib * 1024) : std::nullopt;
    }
    return std::nullopt;
  }
  static std::optional<uint64_t> CountOf(const base::Result<std::string_view>& text,
                                         std::string_view key) {
    return text.ok() ? NumberOfKey(*text, key) : std::nullopt;
  }

  void Give(model::Samples& out, const Node& node, size_t metric, std::optional<uint64_t> value,
            const base::Result<std::string_view>& text) {
    if (value) {
      states_.Set(out.t_ns, node.series[metric], model::SeriesCondition::kOk);
      out.values.push_back({.series = node.series[metric], .value = static_cast<double>(*value)});
      return;
    }
    states_.Set(out.t_ns, node.series[metric],
                text.ok() ? model::SeriesCondition::kNotSupported : ConditionOf(text.error().code),
                text.ok() ? "the kernel has no such line for the node" : text.error().Message());
  }

  SeriesStates states_;
  std::vector<Node> nodes_;
};

base::Result<std::unique_ptr<Source>> Make(const SourceContext& context) {
  const std::string folder = context.env.sys_root + "/devices/system/node";
  const Dir dir(::opendir(folder.c_str()));
  std::vector<uint64_t> numbers;
  while (dir != nullptr) {
    const dirent* entry = ::readdir(dir.get());
    if (entry == nullptr) break;
    const std::string_view name = entry->d_name;
    if (!base::StartsWith(name, "node")) continue;
    if (const auto number = base::ParseUint(name.substr(4))) numbers.push_back(*number);
  }
  std::sort(numbers.begin(), numbers.end());
  return std::unique_ptr<Source>(std::make_unique<HostNuma>(context, folder, numbers));
}

}  // namespace

const SourceDef kHostNuma = {.name = "host.numa",
                             .summary = "Memory of each NUMA node, on machines with several",
                             .metrics = kMetrics,
                             .tier = Tier::kSlow,
                             .Make = &Make};

}  // namespace epochmeter::collect
