// SPDX-License-Identifier: Apache-2.0
// /dev/shm as the training sees it. Data loader workers pass batches through it, and a write beyond
// its size kills them with SIGBUS; containers give it 64 MB unless told otherwise.
#include <fmt/format.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>

#include "collect/host_sources.h"
#include "collect/proc_file.h"

namespace epochmeter::collect {

namespace {

consteval model::MetricDef FsGauge(std::string_view name, std::string_view field,
                                   std::string_view prometheus, std::string_view help) {
  return model::Metric({name, "", field, prometheus, "By", model::MetricKind::kGauge,
                        model::Scope::kHost, 4096, help, "statfs"});
}
constexpr std::array<model::MetricDef, 3> kMetrics = {
    FsGauge("host.fs.size", "fs_size_bytes", "host_fs_size_bytes", "Size of the file system."),
    FsGauge("host.fs.used", "fs_used_bytes", "host_fs_used_bytes",
            "Bytes in use; of /dev/shm they count as shared memory of cgroups, too."),
    FsGauge("host.fs.free", "fs_free_bytes", "host_fs_free_bytes",
            "Bytes that a user without privileges can still write."),
};

constexpr long kTmpfsMagic = 0x01021994;

// Where a link such as "ns/mnt" leads; empty when it can't be read.
std::string Target(const std::string& link) {
  char text[128];
  const ssize_t size = ::readlink(link.c_str(), text, sizeof text);
  return size > 0 ? std::string(text, static_cast<size_t>(size)) : std::string();
}

class HostFs : public Source {
 public:
  explicit HostFs(const SourceContext& context) : context_(context), states_(context.sink) {
    const std::string& proc = context.env.proc_root;
    process_ =
        proc + "/" + (context.job.root_pid > 0 ? std::to_string(context.job.root_pid) : "self");
    entity_ = Describe({});
    for (size_t i = 0; i < kMetrics.size(); ++i) {
      series_[i] = context.registry.AddSeries(entity_, kMetrics[i],
                                              TierPeriodNs(Tier::kMid, context.tick_ns));
    }
  }

  // statfs of a tmpfs never waits. Through /proc/PID/root it is the training's, also in a container
  // with a mount namespace of its own. That path is closed to other users.
  base::Result<> Sample(model::Samples& out) override {
    struct statfs info {};
    const std::string through = process_ + "/root/dev/shm";
    std::string seen = "training";
    int error = ::statfs(through.c_str(), &info) == 0 ? 0 : errno;
    if (error == EACCES || error == EPERM) {
      seen = SharesMounts() ? "training" : "recorder";
      error = ::statfs("/dev/shm", &info) == 0 ? 0 : errno;
    }
    // A training that has ended is no reason of its own.
    if (error == ENOENT && ::access(process_.c_str(), F_OK) != 0) return {};
    if (error != 0) {
      for (const model::SeriesId series : series_) {
        states_.Set(out.t_ns, series, ConditionOf(error),
                    base::SystemError("cannot look at", through, error).Message());
      }
      return {};
    }
    const auto block = static_cast<double>(info.f_bsize);
    const std::array<double, kMetrics.size()> values = {
        static_cast<double>(info.f_blocks) * block,
        static_cast<double>(info.f_blocks - info.f_bfree) * block,
        static_cast<double>(info.f_bavail) * block};
    for (size_t i = 0; i < values.size(); ++i) {
      // A tmpfs with size=0 has no limit of its own and says 0.
      if (info.f_blocks == 0 && i != 1) continue;
      states_.Set(out.t_ns, series_[i], model::SeriesCondition::kOk);
      out.values.push_back({.series = series_[i], .value = values[i]});
    }
    Describe({{"path", "/dev/shm"},
              {"type", info.f_type == kTmpfsMagic ? "tmpfs" : fmt::format("{:#x}", info.f_type)},
              {"seen_by", seen}});
    return {};
  }

 private:
  model::EntityId Describe(model::Labels attributes) {
    return context_.registry.AddEntity({.id = 0,
                                        .scope = model::Scope::kHost,
                                        .name = "fs:/dev/shm",
                                        .labels = {{"path", "/dev/shm"}},
                                        .attributes = std::move(attributes)});
  }

  bool SharesMounts() const {
    const std::string own = Target(context_.env.proc_root + "/self/ns/mnt");
    return !own.empty() && own == Target(process_ + "/ns/mnt");
  }

  const SourceContext context_;
  SeriesStates states_;
  std::string process_;
  model::EntityId entity_ = 0;
  std::array<model::SeriesId, kMetrics.size()> series_{};
};

base::Result<std::unique_ptr<Source>> Make(const SourceContext& context) {
  return std::unique_ptr<Source>(std::make_unique<HostFs>(context));
}

}  // namespace

const SourceDef kHostFs = {.name = "host.fs",
                           .summary = "Size and use of /dev/shm as the training sees it",
                           .metrics = kMetrics,
                           .tier = Tier::kMid,
                           .Make = &Make};

}  // namespace epochmeter::collect
