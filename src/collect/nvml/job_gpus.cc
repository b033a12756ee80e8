// SPDX-License-Identifier: Apache-2.0
// Keeps the sampler to the GPUs of this job: those that the environments of its processes allow,
// those that the training names, and those on which a process of its own was found. Without
// any word every GPU is read, and the report chooses. A scan of the job's processes each 2 s, each
// tick while the job starts, and each 10 s once it has run for a minute: it costs 0.3 ms and more.
//
// Entities get the attribute job=yes, no or unknown; an event of kind source, "gpu.choice", tells
// each change with what it rests on.
#include <algorithm>
#include <cerrno>
#include <ctime>
#include <map>
#include <set>

#include "base/strings.h"
#include "collect/job_choice.h"
#include "collect/nvml/mig_instances.h"
#include "collect/nvml/nvml_sources.h"
#include "collect/nvml/session.h"
#include "collect/proc_file.h"
#include "collect/tree_members.h"
#include "model/source_event.h"

namespace epochmeter::collect::nvml {
namespace {

constexpr size_t kEnvironLimit = size_t{256} << 10;
// A new process may still exec, and then has another environment.
constexpr int kReadAgainScans = 15;
constexpr int64_t kScanNs = 2 * base::kNsPerSecond;
constexpr int64_t kStartNs = 5 * base::kNsPerSecond;
constexpr int64_t kSettledNs = 60 * base::kNsPerSecond;
constexpr int64_t kSettledScanNs = 10 * base::kNsPerSecond;
constexpr int64_t kMigNs = 30 * base::kNsPerSecond;  // instances are seldom made anew
// A process in the middle of exec(2) shows an empty environment for a moment.
constexpr int kExecWaits = 20;
constexpr int64_t kExecWaitNs = base::kNsPerMs;

int DriverBranch(const std::string& version) {
  const auto number = base::ParseInt(base::Split(version, '.').front());
  return number && *number > 0 && *number < 100000 ? static_cast<int>(*number) : 0;
}

bool SameBusId(const std::string& a, const std::string& b) {
  return !a.empty() && SysfsBusId(a) == SysfsBusId(b);
}

class JobGpuSource final : public Source {
 public:
  explicit JobGpuSource(const SourceContext& context)
      : session_(*context.nvml),
        registry_(context.registry),
        sink_(context.sink),
        job_(context.job),
        proc_root_(context.env.proc_root) {
    const int64_t now_ns = context.env.monotonic_ns();
    started_ns_ = now_ns;
    WaitForExec();
    Update(now_ns);  // before any other source reads a device
  }

  base::Result<> Sample(model::Samples& out) override {
    session_.Maintain(out.t_ns);
    const int64_t age_ns = out.t_ns - started_ns_;
    const int64_t scan_ns = age_ns < kSettledNs ? kScanNs : kSettledScanNs;
    if (age_ns < kStartNs || out.t_ns - scanned_ns_ >= scan_ns) Update(out.t_ns);
    return {};
  }

 private:
  struct Known {
    JobProcess process;
    int reads = 0;
    bool seen = false;
  };

  void WaitForExec() {
    for (int i = 0; i < kExecWaits && job_.root_pid > 0 && Scan(); ++i) {
      std::string text;
      const std::string name = std::to_string(job_.root_pid) + "/environ";
      if (ReadAt(tree_->proc_fd(), name.c_str(), text, kEnvironLimit) != 0 || !text.empty()) return;
      const timespec wait{.tv_sec = 0, .tv_nsec = kExecWaitNs};
      ::nanosleep(&wait, nullptr);
    }
  }

  void Update(int64_t t_ns) {
    scanned_ns_ = t_ns;
    LookForInstances(t_ns);
    const std::vector<GpuIdentity> gpus = Identities();
    Apply(choice_.Decide(Processes(), gpus, DriverBranch(session_.library().driver_version())),
          t_ns);
  }

  std::vector<GpuIdentity> Identities() const {
    std::vector<GpuIdentity> gpus;
    for (const Device& device : session_.devices()) {
      const auto mig = mig_.find(device.uuid);
      gpus.push_back({.uuid = device.uuid,
                      .bus_id = device.bus_id,
                      .model = ModelOf(device),
                      .mig = mig == mig_.end() ? std::vector<MigIdentity>() : mig->second});
    }
    return gpus;
  }

  // A list that can't be read now stays as it was: a choice is never taken back for that.
  void LookForInstances(int64_t t_ns) {
    const bool starting = t_ns - started_ns_ < kStartNs;
    if (!session_.usable() || (!starting && t_ns - mig_looked_ns_ < kMigNs)) return;
    mig_looked_ns_ = t_ns;
    for (const Device& device : session_.devices()) {
      if (device.lost) continue;
      auto instances = ListMigInstances(session_.api(), device.handle);
      if (!instances) continue;
      std::vector<MigIdentity>& known = mig_[device.uuid];
      known.clear();
      for (MigInstance& found : *instances) {
        if (found.uuid.empty()) continue;
        known.push_back({.uuid = std::move(found.uuid),
                         .gpu_instance = found.gpu_instance,
                         .compute_instance = found.compute_instance});
      }
    }
  }

  std::string ModelOf(const Device& device) const {
    for (const auto& [key, value] : registry_.entity(device.entity).attributes) {
      if (key == "name") return value;
    }
    return {};
  }

  std::vector<JobProcess> Processes() {
    if (job_.root_pid <= 0 || !Scan()) return {};
    for (auto& [key, known] : known_) known.seen = false;
    std::vector<JobProcess> processes;
    for (const ProcStat& stat : tree_->members()) {
      if (stat.ended()) continue;
      Known& known = known_[stat.key];
      known.seen = true;
      if (known.reads < kReadAgainScans) Read(stat, &known);
      if (known.process.key.pid == 0) continue;  // never said anything
      known.process.parent = stat.parent;
      processes.push_back(known.process);
    }
    std::erase_if(known_, [](const auto& item) { return !item.second.seen; });
    return processes;
  }

  bool Scan() {
    if (!tree_) {
      auto tree = TreeMembers::Make(proc_root_, job_.root_pid, job_.excluded_pids);
      if (!tree.ok()) return false;
      tree_ = std::move(tree).value();
    }
    return tree_->Scan().ok();
  }

  // One that another user's process keeps to itself says nothing, as one without the variables. An
  // empty one is that of a process in exec(2) or on its way out: it has no word, or its last.
  void Read(const ProcStat& stat, Known* known) {
    ++known->reads;
    std::string comm;
    std::string text;
    const std::string folder = std::to_string(stat.key.pid);
    const int error = ReadAt(tree_->proc_fd(), (folder + "/environ").c_str(), text, kEnvironLimit);
    if (text.empty() && error != EACCES && error != EPERM) return;
    if (ReadAt(tree_->proc_fd(), (folder + "/comm").c_str(), comm) != 0) comm.clear();
    known->process = DescribeJobProcess(stat, comm, text);
  }

  bool IsNamed(const Device& device) const {
    return std::any_of(job_.named_gpus.begin(), job_.named_gpus.end(), [&](const auto& name) {
      return name == device.uuid || SameBusId(name, device.bus_id);
    });
  }

  void Apply(const JobChoice::Answer& answer, int64_t t_ns) {
    std::vector<std::string> own;
    std::set<std::string> by = {answer.restricted ? "environment" : "nothing"};
    std::vector<Device>& devices = session_.devices();
    for (size_t place = 0; place < devices.size(); ++place) {
      Device& device = devices[place];
      const bool chosen = answer.restricted && answer.gpus.contains(place);
      const bool named = IsNamed(device);
      if (named && !chosen) by.insert("training");
      if (device.used_by_job && !chosen) by.insert("processes");
      const bool is_own = chosen || named || device.used_by_job;
      SetJob(device, is_own ? "yes" : answer.restricted ? "no" : "");
      device.excluded = answer.restricted && !is_own && !job_.all_gpus;
      if (is_own || !answer.restricted) own.push_back(std::to_string(device.index));
    }
    if (by.size() > 1) by.erase("nothing");
    Tell(base::Join(own, ","), base::Join({by.begin(), by.end()}, ","), answer.note, t_ns);
  }

  void SetJob(Device& device, const std::string& word) {
    if (device.job == word) return;
    device.job = word;
    session_.SetAttribute(device, "job", word.empty() ? "unknown" : word);
  }

  void Tell(const std::string& gpus, const std::string& by, const std::string& note, int64_t t_ns) {
    std::string text = base::Join({gpus, by, note}, "|");
    if (text == told_) return;
    told_ = std::move(text);
    sink_.Write(model::SourceEvent(t_ns, "gpu.choice",
                                   {{.key = "gpus", .value = gpus},
                                    {.key = "by", .value = by},
                                    {.key = "note", .value = note}}));
  }

  Session& session_;
  model::Registry& registry_;
  model::Sink& sink_;
  const JobScope& job_;
  std::string proc_root_;
  std::optional<TreeMembers> tree_;
  std::map<ProcKey, Known> known_;
  JobChoice choice_;
  std::string told_;
  int64_t started_ns_ = 0;
  int64_t scanned_ns_ = 0;
  std::map<std::string, std::vector<MigIdentity>> mig_;  // by the UUID of the GPU
  int64_t mig_looked_ns_ = 0;
};

base::Result<std::unique_ptr<Source>> Make(const SourceContext& context) {
  EPM_CHECK(context.nvml != nullptr) << "NVML sources need a session";
  EPM_TRY(context.nvml->Open(context));
  return std::unique_ptr<Source>(std::make_unique<JobGpuSource>(context));
}

}  // namespace

const SourceDef kGpuJob{.name = "gpu.job",
                        .summary = "which GPUs are this job's",
                        .metrics = {},
                        .tier = Tier::kTick,
                        .vital = true,
                        .Make = &Make};

}  // namespace epochmeter::collect::nvml
