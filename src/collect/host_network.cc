// SPDX-License-Identifier: Apache-2.0
// Traffic of the network devices in the recorder's network namespace, from /proc/net/dev.
// RDMA traffic passes by these counters. Devices that only pass on what another one carries
// (bridges, bonds, VLANs, veth ends) are left out, so that the sum over devices is right.
#include <dirent.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <array>
#include <map>
#include <memory>

#include "base/strings.h"
#include "collect/host_sources.h"
#include "collect/proc_file.h"

namespace epochmeter::collect {

namespace {

consteval model::MetricDef NetCounter(std::string_view name, std::string_view field,
                                      std::string_view prometheus, std::string_view help) {
  return model::Metric({name, "", field, prometheus, "By", model::MetricKind::kCounter,
                        model::Scope::kHost, 1, help, "/proc/net/dev"});
}
constexpr std::array<model::MetricDef, 2> kMetrics = {
    NetCounter("host.network.receive", "network_receive_bytes", "host_network_receive_bytes_total",
               "Bytes that the device received; RDMA is not in it."),
    NetCounter("host.network.transmit", "network_transmit_bytes",
               "host_network_transmit_bytes_total",
               "Bytes that the device sent; RDMA is not in it."),
};

// True when the folder has an entry of that name beginning.
bool HasEntry(const std::string& folder, std::string_view prefix) {
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(::opendir(folder.c_str()), &::closedir);
  if (!dir) return false;
  while (const dirent* entry = ::readdir(dir.get())) {
    if (base::StartsWith(entry->d_name, prefix)) return true;
  }
  return false;
}

struct Device {
  bool counted = false;
  std::array<model::SeriesId, kMetrics.size()> series{};
  std::array<Unwrap32, kMetrics.size()> counters;
};

class HostNetwork : public Source {
 public:
  explicit HostNetwork(const SourceContext& context)
      : context_(context), file_(context.env.proc_root + "/net/dev") {}

  // After two lines of heading a line reads "  eth0: RX_BYTES packets errs drop fifo frame
  // compressed multicast TX_BYTES ..."; old kernels have no space after the colon.
  base::Result<> Sample(model::Samples& out) override {
    EPM_ASSIGN(std::string_view text, file_.Read());
    std::string_view line;
    while (NextLine(text, line)) {
      const size_t colon = line.rfind(':');
      if (colon == std::string_view::npos) continue;
      std::array<uint64_t, 9> field{};
      std::string_view rest = line.substr(colon + 1);
      bool complete = true;
      for (uint64_t& value : field) {
        const auto number = NextUint(rest);
        complete = complete && number.has_value();
        value = number.value_or(0);
      }
      if (complete) Take(base::Trim(line.substr(0, colon)), {field[0], field[8]}, out);
    }
    return {};
  }

 private:
  void Take(std::string_view name, const std::array<uint64_t, 2>& bytes, model::Samples& out) {
    auto found = devices_.find(name);
    if (found == devices_.end()) found = devices_.emplace(std::string(name), Define(name)).first;
    Device& device = found->second;
    if (!device.counted) return;
    for (size_t i = 0; i < bytes.size(); ++i) {
      out.values.push_back({.series = device.series[i],
                            .value = static_cast<double>(device.counters[i].Next(bytes[i]))});
    }
  }

  Device Define(std::string_view name) {
    Device device;
    device.counted = IsCarrier(name);
    if (!device.counted) return device;
    const model::EntityId entity =
        context_.registry.AddEntity({.id = 0,
                                     .scope = model::Scope::kHost,
                                     .name = fmt::format("net:{}", name),
                                     .labels = {{"device", std::string(name)}},
                                     .attributes = {}});
    for (size_t i = 0; i < kMetrics.size(); ++i) {
      device.series[i] = context_.registry.AddSeries(entity, kMetrics[i],
                                                     TierPeriodNs(Tier::kTick, context_.tick_ns));
    }
    return device;
  }

  // A container's own eth0 is one end of a veth pair too, but is not named so.
  bool IsCarrier(std::string_view name) const {
    for (const std::string_view prefix :
         {"veth", "ifb", "dummy", "tap", "virbr", "docker", "cni"}) {
      if (base::StartsWith(name, prefix)) return false;
    }
    const std::string folder = context_.env.sys_root + "/class/net/" + std::string(name);
    struct stat info {};
    const bool bridge = ::stat((folder + "/bridge").c_str(), &info) == 0;
    return name != "lo" && !bridge && !HasEntry(folder, "lower_");
  }

  const SourceContext context_;
  HotFile file_;
  std::map<std::string, Device, std::less<>> devices_;
};

base::Result<std::unique_ptr<Source>> Make(const SourceContext& context) {
  HotFile file(context.env.proc_root + "/net/dev");
  EPM_TRY(file.Read());
  return std::unique_ptr<Source>(std::make_unique<HostNetwork>(context));
}

}  // namespace

const SourceDef kHostNetwork = {.name = "host.network",
                                .summary = "Bytes of each network device",
                                .metrics = kMetrics,
                                .tier = Tier::kTick,
                                .Make = &Make};

}  // namespace epochmeter::collect
