// SPDX-License-Identifier: Apache-2.0
#include "cli/core_keeper.h"

#include <dirent.h>
#include <sched.h>
#include <unistd.h>

#include <memory>

#include "base/clock.h"
#include "base/file.h"
#include "base/strings.h"
#include "model/source_event.h"

namespace epochmeter::cli {
namespace {

// Soon after the start, when a wrapper has pinned the training; then as often as it may pin itself.
constexpr int64_t kFirstLookNs = base::kNsPerSecond;
constexpr int64_t kSecondLookNs = 5 * base::kNsPerSecond;
constexpr int64_t kPeriodNs = 60 * base::kNsPerSecond;

std::vector<int32_t> NumbersIn(const std::string& folder) {
  std::vector<int32_t> numbers;
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(::opendir(folder.c_str()), &::closedir);
  while (dir != nullptr) {
    const dirent* entry = ::readdir(dir.get());
    if (entry == nullptr) break;
    if (const auto number = base::ParseInt(entry->d_name)) {
      numbers.push_back(static_cast<int32_t>(*number));
    }
  }
  return numbers;
}

collect::CpuSet OwnCpus() {
  collect::CpuSet cpus;
  cpu_set_t set;
  CPU_ZERO(&set);
  // A machine with more than CPU_SETSIZE CPUs refuses: then all stays as it is.
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.insert(cpu);
  }
  return cpus;
}

}  // namespace

CoreKeeper::CoreKeeper(const model::Env& env, model::Sink& sink)
    : env_(env), sink_(sink), allowed_(OwnCpus()), current_(allowed_) {}

void CoreKeeper::Follow(int32_t training_pid, int64_t now_ns) {
  training_pid_ = training_pid;
  looks_ = 0;
  next_ns_ = now_ns + kFirstLookNs;
}

void CoreKeeper::Maintain(int64_t now_ns) {
  if (now_ns < next_ns_) return;
  next_ns_ = now_ns + (++looks_ == 1 ? kSecondLookNs : kPeriodNs);
  const auto training = collect::TrainingCpus(env_, training_pid_);
  if (!training) return;
  const collect::CpuSet free = collect::CpusLeftFree(allowed_, *training);
  const collect::CpuSet& wanted = free.empty() ? allowed_ : free;
  // A relay or sampler that was started since begins on all cores again.
  if (wanted != allowed_) MoveTo(wanted);
  if (wanted == current_) return;
  if (wanted == allowed_) MoveTo(wanted);
  current_ = wanted;
  sink_.Write(
      model::SourceEvent(now_ns, "recorder.cores",
                         {{.key = "cpus", .value = collect::FormatCpuList(wanted)},
                          {.key = "training_cpus", .value = collect::FormatCpuList(*training)}}));
}

// This process, and those of ours among its children and its siblings.
std::vector<int32_t> CoreKeeper::OurProcesses() const {
  std::vector<int32_t> ours = {static_cast<int32_t>(::getpid())};
  for (const int32_t parent : {::getpid(), ::getppid()}) {
    const std::string process = env_.proc_root + "/" + std::to_string(parent);
    for (const int32_t thread : NumbersIn(process + "/task")) {
      const auto children =
          base::ReadFile(process + "/task/" + std::to_string(thread) + "/children");
      if (!children.ok()) continue;
      for (const std::string_view word : base::SplitWhitespace(*children)) {
        const std::string child(word);
        const auto name = base::ReadFile(env_.proc_root + "/" + child + "/comm");
        const auto pid = base::ParseInt(child);
        if (pid && name.ok() && base::StartsWith(*name, "epm-")) {
          ours.push_back(static_cast<int32_t>(*pid));
        }
      }
    }
  }
  return ours;
}

// Failure is fine: then that thread stays where it is.
void CoreKeeper::MoveTo(const collect::CpuSet& cpus) const {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : cpus) CPU_SET(cpu, &set);
  for (const int32_t pid : OurProcesses()) {
    for (const int32_t thread : NumbersIn(env_.proc_root + "/" + std::to_string(pid) + "/task")) {
      ::sched_setaffinity(thread, sizeof set, &set);
    }
  }
}

}  // namespace epochmeter::cli
