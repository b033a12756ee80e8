// SPDX-License-Identifier: Apache-2.0
// Traffic of RDMA ports (InfiniBand, RoCE), which /proc/net/dev does not see: most of what NCCL
// sends between nodes. Without such a device there is nothing to read and no series; inside a
// container the devices may be hidden.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>

#include "base/file.h"
#include "base/strings.h"
#include "collect/host_sources.h"
#include "collect/proc_dir.h"
#include "collect/proc_file.h"

namespace epochmeter::collect {

namespace {

consteval model::MetricDef PortCounter(std::string_view name, std::string_view field,
                                       std::string_view prometheus, std::string_view help,
                                       std::string_view source) {
  return model::Metric({name, "", field, prometheus, "By", model::MetricKind::kCounter,
                        model::Scope::kHost, 4, help, source});
}
constexpr std::array<model::MetricDef, 2> kMetrics = {
    PortCounter("host.rdma.receive", "rdma_receive_bytes", "host_rdma_receive_bytes_total",
                "Bytes that the RDMA port received.", "port_rcv_data"),
    PortCounter("host.rdma.transmit", "rdma_transmit_bytes", "host_rdma_transmit_bytes_total",
                "Bytes that the RDMA port sent.", "port_xmit_data"),
};
constexpr std::array<const char*, kMetrics.size()> kFiles = {"port_rcv_data", "port_xmit_data"};
constexpr int64_t kLookNs = 60 * base::kNsPerSecond;

struct Port {
  std::vector<HotFile> files;
  std::array<model::SeriesId, kMetrics.size()> series{};
};

// Names of the entries of a folder, without hidden ones, in order.
std::vector<std::string> EntriesOf(const std::string& folder) {
  std::vector<std::string> names;
  const Dir dir(::opendir(folder.c_str()));
  while (dir != nullptr) {
    const dirent* entry = ::readdir(dir.get());
    if (entry == nullptr) break;
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

class HostRdma : public Source {
 public:
  explicit HostRdma(const SourceContext& context)
      : context_(context),
        states_(context.sink),
        folder_(context.env.sys_root + "/class/infiniband") {}

  base::Result<> Sample(model::Samples& out) override {
    if (out.t_ns >= next_look_ns_) Look(out.t_ns);
    for (auto& [name, port] : ports_) {
      for (size_t i = 0; i < kMetrics.size(); ++i) Read(out, port, i);
    }
    return {};
  }

 private:
  void Look(int64_t t_ns) {
    next_look_ns_ = t_ns + kLookNs;
    for (const std::string& device : EntriesOf(folder_)) {
      for (const std::string& number : EntriesOf(folder_ + "/" + device + "/ports")) {
        const std::string name = device + "/" + number;
        if (!ports_.contains(name)) Define(name, device, number);
      }
    }
  }

  void Define(const std::string& name, const std::string& device, const std::string& number) {
    const std::string path = folder_ + "/" + device + "/ports/" + number;
    Port port;
    const auto layer = base::ReadFile(path + "/link_layer", 64);
    model::Labels attributes;
    if (layer.ok()) attributes.emplace_back("link_layer", std::string(base::Trim(*layer)));
    const model::EntityId entity =
        context_.registry.AddEntity({.id = 0,
                                     .scope = model::Scope::kHost,
                                     .name = "rdma:" + name,
                                     .labels = {{"device", device}, {"port", number}},
                                     .attributes = std::move(attributes)});
    for (size_t i = 0; i < kMetrics.size(); ++i) {
      port.files.emplace_back(path + "/counters/" + kFiles[i], 64);
      port.series[i] = context_.registry.AddSeries(entity, kMetrics[i],
                                                   TierPeriodNs(Tier::kTick, context_.tick_ns));
    }
    ports_.emplace(name, std::move(port));
  }

  // The counters are in words of 4 bytes. Those of old devices have 32 bits and stop at the end.
  void Read(model::Samples& out, Port& port, size_t metric) {
    constexpr uint64_t kStopped = 0xFFFFFFFF;
    auto text = port.files[metric].Read();
    const auto words = text.ok() ? NextUint(*text) : std::nullopt;
    const model::SeriesId series = port.series[metric];
    if (words && *words != kStopped) {
      states_.Set(out.t_ns, series, model::SeriesCondition::kOk);
      out.values.push_back({.series = series, .value = static_cast<double>(*words) * 4});
      return;
    }
    states_.Set(out.t_ns, series,
                text.ok() ? model::SeriesCondition::kNotSupported : ConditionOf(text.error().code),
                text.ok() ? "a counter of 32 bits has reached its end and stands still"
                          : text.error().Message());
  }

  const SourceContext context_;
  SeriesStates states_;
  std::string folder_;
  std::map<std::string, Port> ports_;
  int64_t next_look_ns_ = 0;
};

base::Result<std::unique_ptr<Source>> Make(const SourceContext& context) {
  return std::unique_ptr<Source>(std::make_unique<HostRdma>(context));
}

}  // namespace

const SourceDef kHostRdma = {.name = "host.rdma",
                             .summary = "Bytes of each RDMA port, where there are any",
                             .metrics = kMetrics,
                             .tier = Tier::kTick,
                             .Make = &Make};

}  // namespace epochmeter::collect
