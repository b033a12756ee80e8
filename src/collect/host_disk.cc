// SPDX-License-Identifier: Apache-2.0
// Traffic of the host's disks, from /proc/diskstats. Whole disks only: a partition, and a device
// that is made of other disks (dm, md), would count the same bytes twice.
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <map>
#include <memory>

#include "collect/disk_name.h"
#include "collect/host_sources.h"
#include "collect/proc_file.h"

namespace epochmeter::collect {

namespace {

consteval model::MetricDef DiskCounter(std::string_view name, std::string_view field,
                                       std::string_view prometheus, std::string_view unit,
                                       double resolution, std::string_view help) {
  return model::Metric({name, "", field, prometheus, unit, model::MetricKind::kCounter,
                        model::Scope::kHost, resolution, help, "/proc/diskstats"});
}
constexpr std::array<model::MetricDef, 3> kMetrics = {
    DiskCounter("host.disk.read", "disk_read_bytes", "host_disk_read_bytes_total", "By", 512,
                "Bytes read from the disk, whoever asked."),
    DiskCounter("host.disk.written", "disk_written_bytes", "host_disk_written_bytes_total", "By",
                512, "Bytes written to the disk, whoever asked."),
    DiskCounter("host.disk.io_time", "disk_io_time_s", "host_disk_io_time_seconds_total", "s", 1e-3,
                "Time in which the disk had at least one request; parallel disks are busy long "
                "before they are full."),
};

struct Disk {
  bool counted = false;
  std::array<model::SeriesId, kMetrics.size()> series{};
  Unwrap32 io_time_ms;
};

class HostDisk : public Source {
 public:
  explicit HostDisk(const SourceContext& context)
      : context_(context), file_(context.env.proc_root + "/diskstats") {}

  // A line reads: major minor NAME reads merged SECTORS_READ ms writes merged SECTORS_WRITTEN ms
  // in_flight IO_MS weighted_ms, and more on newer kernels. Sectors are always 512 bytes here.
  base::Result<> Sample(model::Samples& out) override {
    EPM_ASSIGN(std::string_view text, file_.Read());
    std::string_view line;
    while (NextLine(text, line)) {
      std::string_view name;
      if (!NextUint(line) || !NextUint(line) || !NextWord(line, name)) continue;
      std::array<uint64_t, 10> field{};
      bool complete = true;
      for (uint64_t& value : field) {
        const auto number = NextUint(line);
        complete = complete && number.has_value();
        value = number.value_or(0);
      }
      if (complete) Take(name, field, out);
    }
    return {};
  }

 private:
  void Take(std::string_view name, const std::array<uint64_t, 10>& field, model::Samples& out) {
    // A disk that was never used (spare nbd devices, say) has no series.
    if (field[0] == 0 && field[4] == 0) return;
    auto found = disks_.find(name);
    if (found == disks_.end()) found = disks_.emplace(std::string(name), Define(name)).first;
    Disk& disk = found->second;
    if (!disk.counted) return;
    const std::array<double, kMetrics.size()> values = {
        static_cast<double>(field[2]) * 512, static_cast<double>(field[6]) * 512,
        static_cast<double>(disk.io_time_ms.Next(field[9])) * 1e-3};
    for (size_t i = 0; i < values.size(); ++i) {
      out.values.push_back({.series = disk.series[i], .value = values[i]});
    }
  }

  Disk Define(std::string_view name) {
    Disk disk;
    disk.counted = IsWholeDisk(name);
    if (!disk.counted) return disk;
    const model::EntityId entity =
        context_.registry.AddEntity({.id = 0,
                                     .scope = model::Scope::kHost,
                                     .name = fmt::format("disk:{}", name),
                                     .labels = {{"device", std::string(name)}},
                                     .attributes = {}});
    for (size_t i = 0; i < kMetrics.size(); ++i) {
      disk.series[i] = context_.registry.AddSeries(entity, kMetrics[i],
                                                   TierPeriodNs(Tier::kTick, context_.tick_ns));
    }
    return disk;
  }

  // /sys/block lists no partitions; a '/' in a device name is a '!' there.
  bool IsWholeDisk(std::string_view name) const {
    if (IsStackedDisk(name)) return false;
    std::string device(name);
    std::replace(device.begin(), device.end(), '/', '!');
    const std::string folder = context_.env.sys_root + "/block/" + device;
    struct stat info {};
    return ::stat(folder.c_str(), &info) == 0;
  }

  const SourceContext context_;
  HotFile file_;
  std::map<std::string, Disk, std::less<>> disks_;
};

base::Result<std::unique_ptr<Source>> Make(const SourceContext& context) {
  HotFile file(context.env.proc_root + "/diskstats");
  EPM_TRY(file.Read());
  struct stat info {};
  const std::string block = context.env.sys_root + "/block";
  if (::stat(block.c_str(), &info) != 0) {
    return base::SystemError("cannot tell disks from partitions", block, errno,
                             "make /sys visible to the recorder");
  }
  return std::unique_ptr<Source>(std::make_unique<HostDisk>(context));
}

}  // namespace

const SourceDef kHostDisk = {.name = "host.disk",
                             .summary = "Bytes and busy time of each whole disk",
                             .metrics = kMetrics,
                             .tier = Tier::kTick,
                             .Make = &Make};

}  // namespace epochmeter::collect
