// SPDX-License-Identifier: Apache-2.0
// A /proc made of files, for tests of the process tree.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "collect/proc_pid.h"
#include "collect/source_test_util.h"

namespace epochmeter::collect {

struct FakeProcess {
  int32_t pid, parent;
  int32_t group = 1, session = 1;
  std::string comm = "python";
  char state = 'S';
  uint64_t user = 0, system = 0, reaped = 0, start = 500, threads = 1, rss_pages = 0;
};

// A /proc made of files.
class FakeProc {
 public:
  void Put(const FakeProcess& p) {
    const std::string folder = std::to_string(p.pid);
    folder_.Write(folder + "/stat",
                  fmt::format("{} ({}) {} {} {} {} 0 -1 4194304 10 20 3 4 {} {} {} 0 20 0 {} 0 {} "
                              "1000000 {} 18446744073709551615 1 1\n",
                              p.pid, p.comm, p.state, p.parent, p.group, p.session, p.user,
                              p.system, p.reaped, p.threads, p.start, p.rss_pages));
    folder_.Write(folder + "/io",
                  "rchar: 9\nwchar: 9\nread_bytes: 4096\nwrite_bytes: 512\n"
                  "cancelled_write_bytes: 0\n");
    folder_.Write(folder + "/smaps_rollup", "0-1 ---p 0 0 [rollup]\nRss: 8 kB\nPss: 6 kB\n");
    folder_.Write(folder + "/fd/0", "");
    folder_.Write(folder + fmt::format("/task/{}/status", p.pid),
                  "Name:\tx\nvoluntary_ctxt_switches:\t7\nnonvoluntary_ctxt_switches:\t2\n");
  }
  // The executable and the command line.
  void Program(int32_t pid, const std::string& program, const std::string& command) {
    const std::string link = folder_.path() + fmt::format("/{}/exe", pid);
    std::filesystem::remove(link);
    std::filesystem::create_symlink(program, link);
    folder_.Write(fmt::format("{}/cmdline", pid), program + '\0' + command + '\0');
  }
  void Environment(int32_t pid, const std::vector<std::pair<std::string, std::string>>& values) {
    std::string text;
    for (const auto& [name, value] : values) text += name + "=" + value + '\0';
    folder_.Write(fmt::format("{}/environ", pid), text);
  }
  // All processes, as a scan reads them.
  std::vector<ProcStat> Stats() const {
    std::vector<ProcStat> stats;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
      std::ifstream file(entry.path() / "stat");
      std::string text;
      std::getline(file, text);
      if (const auto stat = ParseProcStat(text)) stats.push_back(*stat);
    }
    std::sort(stats.begin(), stats.end(),
              [](const ProcStat& a, const ProcStat& b) { return a.key < b.key; });
    return stats;
  }
  void Environ(int32_t pid, const std::string& name, const std::string& value) {
    folder_.Write(fmt::format("{}/environ", pid),
                  fmt::format("A=1{}{}={}{}B=2{}", '\0', name, value, '\0', '\0'));
  }
  void End(int32_t pid) { folder_.Remove(std::to_string(pid)); }
  const TempFolder& folder() const { return folder_; }

 private:
  TempFolder folder_;
};

}  // namespace epochmeter::collect
