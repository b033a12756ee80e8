// SPDX-License-Identifier: Apache-2.0
// A host made of files, for tests of what reads cgroups: process 700 is the training.
#pragma once

#include <filesystem>
#include <string>

#include "collect/source_test_util.h"

namespace epochmeter::collect {

inline constexpr int32_t kTraining = 700;
inline constexpr const char* kInitialNamespace = "cgroup:[4026531835]";

class FakeCgroups {
 public:
  // `cgroups` is the text of /proc/700/cgroup, `mountinfo` that of the reader.
  FakeCgroups(const std::string& cgroups, const std::string& mountinfo,
              const std::string& name_space = kInitialNamespace) {
    Write("proc/700/cgroup", cgroups);
    Write("proc/700/stat",
          "700 (python) S 1 700 700 0 -1 4 1 2 3 4 5 6 7 8 20 0 9 0 12345 1000 77 18446 1\n");
    Write("proc/700/status", "Name:\tpython\nCpus_allowed_list:\t0-7\n");
    Write("proc/self/mountinfo", mountinfo);
    std::filesystem::create_directories(root_.path() + "/proc/self/ns");
    std::filesystem::create_symlink(name_space, root_.path() + "/proc/self/ns/cgroup");
  }
  void Write(const std::string& name, const std::string& text) const { root_.Write(name, text); }
  // A file of a cgroup below /sys/fs/cgroup.
  void Put(const std::string& name, const std::string& text) const {
    Write("sys/fs/cgroup/" + name, text);
  }
  void Remove(const std::string& name) const { root_.Remove(name); }
  std::string folder(const std::string& name) const {
    return root_.path() + "/sys/fs/cgroup" + name;
  }
  model::Env env() const {
    return {.proc_root = root_.path() + "/proc", .sys_root = root_.path() + "/sys"};
  }
  SourceBench Bench() const {
    return SourceBench(env().proc_root, env().sys_root, {.root_pid = kTraining, .cgroup = ""});
  }

 private:
  TempFolder root_;
};

inline constexpr const char* kMountV2 = "24 22 0:23 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
inline constexpr const char* kMountsV1 =
    "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n"
    "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
    "33 31 0:30 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
    "34 31 0:31 / /sys/fs/cgroup/blkio rw - cgroup cgroup rw,blkio\n"
    "35 31 0:32 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";

}  // namespace epochmeter::collect
