// SPDX-License-Identifier: Apache-2.0
// Bytes that the job's cgroup had read from and written to disks: what its processes cause, also
// those that ended, and the write-back of their pages (v2).
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <map>
#include <memory>

#include "base/strings.h"
#include "collect/cgroup.h"
#include "collect/disk_name.h"
#include "collect/host_sources.h"
#include "collect/proc_file.h"

namespace epochmeter::collect {

namespace {

consteval model::MetricDef Counter(std::string_view name, std::string_view field,
                                   std::string_view prometheus, std::string_view help) {
  return model::Metric({name, "", field, prometheus, "By", model::MetricKind::kCounter,
                        model::Scope::kCgroup, 1, help,
                        "io.stat, blkio.throttle.io_service_bytes"});
}
constexpr std::array<model::MetricDef, 2> kMetrics = {
    Counter("cgroup.io.read", "io_read_bytes", "cgroup_io_read_bytes_total",
            "Bytes that the job's cgroup had read from disks; network file systems are not in it."),
    Counter("cgroup.io.written", "io_written_bytes", "cgroup_io_written_bytes_total",
            "Bytes that the job's cgroup had written to disks; v1 leaves out write-back."),
};

struct Bytes {
  uint64_t read = 0, written = 0;
};

// "253:0 rbytes=1 wbytes=2 rios=3 ..." gives the words after the device.
Bytes ParseV2(std::string_view words) {
  Bytes bytes;
  std::string_view word;
  while (NextWord(words, word)) {
    const size_t equals = word.find('=');
    if (equals == std::string_view::npos) continue;
    const auto number = base::ParseUint(word.substr(equals + 1));
    if (!number) continue;
    if (word.substr(0, equals) == "rbytes") bytes.read = *number;
    if (word.substr(0, equals) == "wbytes") bytes.written = *number;
  }
  return bytes;
}

// v1 has a line each: "8:0 Read 123".
Bytes ParseV1(std::string_view words) {
  Bytes bytes;
  std::string_view kind;
  if (!NextWord(words, kind)) return bytes;
  const uint64_t number = NextUint(words).value_or(0);
  if (kind == "Read") bytes.read = number;
  if (kind == "Write") bytes.written = number;
  return bytes;
}

class CgroupIo : public Source {
 public:
  CgroupIo(const SourceContext& context, JobCgroup job) : context_(context), job_(std::move(job)) {
    const model::EntityId entity = AddJobCgroup(context);
    for (size_t i = 0; i < kMetrics.size(); ++i) {
      series_[i] = context.registry.AddSeries(entity, kMetrics[i],
                                              TierPeriodNs(Tier::kMid, context.tick_ns));
    }
    Open();
  }

  // Without any I/O yet the file is empty, which is 0.
  base::Result<> Sample(model::Samples& out) override {
    if (job_.Refresh(out.t_ns)) Open();
    const base::Result<std::string_view> read = file_->Read();
    if (!read.ok()) return NoController(read.error());
    std::string_view text = *read;
    Bytes sum;
    std::string_view line;
    while (NextLine(text, line)) {
      std::string_view device;
      if (!NextWord(line, device) || !Carries(device)) continue;
      const Bytes bytes = job_.chain().v2 ? ParseV2(line) : ParseV1(line);
      sum.read += bytes.read;
      sum.written += bytes.written;
    }
    out.values.push_back({.series = series_[0], .value = static_cast<double>(sum.read)});
    out.values.push_back({.series = series_[1], .value = static_cast<double>(sum.written)});
    return {};
  }

 private:
  base::Error NoController(const base::Error& error) const {
    if (!job_.chain().v2) return error;
    return {.what = "the job's cgroup counts no I/O",
            .where = job_.chain().levels.front().name,
            .why = "its io controller is not enabled",
            .what_to_do = "",
            .code = error.code};
  }

  void Open() {
    const CgroupChain& chain = job_.chain();
    file_.emplace(chain.levels.front().folder +
                  (chain.v2 ? "/io.stat" : "/blkio.throttle.io_service_bytes"));
  }

  // A device that is made of others counts the same bytes again. `device` is "MAJOR:MINOR"; the
  // total line of v1 has none.
  bool Carries(std::string_view device) {
    if (device.find(':') == std::string_view::npos) return false;
    const auto known = carries_.find(device);
    if (known != carries_.end()) return known->second;
    char target[256];
    const std::string link = fmt::format("{}/dev/block/{}", context_.env.sys_root, device);
    const ssize_t size = ::readlink(link.c_str(), target, sizeof target);
    const std::string_view path(target, size > 0 ? static_cast<size_t>(size) : 0);
    constexpr std::string_view kLoopMajor = "7:", kMdMajor = "9:";
    const bool stacked = IsStackedDisk(path.substr(path.rfind('/') + 1)) ||
                         base::StartsWith(device, kLoopMajor) || base::StartsWith(device, kMdMajor);
    carries_.emplace(std::string(device), !stacked);
    return !stacked;
  }

  const SourceContext context_;
  JobCgroup job_;
  std::optional<HotFile> file_;
  std::map<std::string, bool, std::less<>> carries_;
  std::array<model::SeriesId, kMetrics.size()> series_{};
};

base::Result<std::unique_ptr<Source>> Make(const SourceContext& context) {
  EPM_ASSIGN(JobCgroup job, JobCgroup::Make(context, "blkio"));
  auto source = std::make_unique<CgroupIo>(context, std::move(job));
  return std::unique_ptr<Source>(std::move(source));
}

}  // namespace

const SourceDef kCgroupIo = {.name = "cgroup.io",
                             .summary = "Bytes that the job's cgroup read from and wrote to disks",
                             .metrics = kMetrics,
                             .tier = Tier::kMid,
                             .Make = &Make};

}  // namespace epochmeter::collect
