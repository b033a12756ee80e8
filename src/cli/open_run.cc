// SPDX-License-Identifier: Apache-2.0
#include "cli/open_run.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <fstream>
#include <iostream>

#include "base/strings.h"
#include "cli/run_settings.h"
#include "runfile/run_reader.h"

namespace epochmeter::cli {
namespace {

constexpr std::string_view kSuffix = ".emr";

class FileOutput : public Output {
 public:
  explicit FileOutput(std::string path) : path_(std::move(path)), file_(path_, std::ios::binary) {}
  bool good() const { return file_.good(); }
  std::ostream& stream() override { return file_; }
  base::Result<> Close() override {
    file_.close();
    if (file_.fail()) return base::SystemError("cannot write", path_, errno);
    return {};
  }

 private:
  std::string path_;
  std::ofstream file_;
};

class StandardOutput : public Output {
 public:
  StandardOutput() { ::signal(SIGPIPE, SIG_IGN); }
  std::ostream& stream() override { return std::cout; }
  base::Result<> Close() override {
    errno = 0;
    std::cout.flush();
    if (std::cout.fail() && errno != EPIPE)
      return base::SystemError("cannot write", "stdout", errno);
    return {};
  }
};

}  // namespace

base::Result<std::vector<FoundRun>> FindRuns(const std::string& folder) {
  DIR* dir = ::opendir(folder.c_str());
  if (dir == nullptr) {
    return base::SystemError("cannot list runs", folder, errno,
                             "record one with 'epochmeter run -- COMMAND', or give --dir");
  }
  std::vector<FoundRun> runs;
  for (const dirent* entry = ::readdir(dir); entry != nullptr; entry = ::readdir(dir)) {
    const std::string name = entry->d_name;
    if (!base::EndsWith(name, kSuffix)) continue;
    FoundRun run{.path = folder + "/" + name,
                 .run_id = name.substr(0, name.size() - kSuffix.size())};
    struct stat info {};
    if (::stat(run.path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    run.bytes = static_cast<uint64_t>(info.st_size);
    run.modified_wall_ns = info.st_mtim.tv_sec * base::kNsPerSecond + info.st_mtim.tv_nsec;
    if (::stat((run.path + ".tail").c_str(), &info) == 0) {
      run.live_tail = true;
      run.bytes += static_cast<uint64_t>(info.st_size);
      run.modified_wall_ns = std::max(
          run.modified_wall_ns, info.st_mtim.tv_sec * base::kNsPerSecond + info.st_mtim.tv_nsec);
    }
    runs.push_back(std::move(run));
  }
  ::closedir(dir);
  std::sort(runs.begin(), runs.end(), [](const FoundRun& a, const FoundRun& b) {
    return a.modified_wall_ns > b.modified_wall_ns;
  });
  return runs;
}

base::Result<std::string> RunPath(const Arguments& arguments) {
  std::string folder = RunsFolder(arguments);
  if (!arguments.positionals.empty()) {
    const std::string& given = arguments.positionals.front();
    struct stat info {};
    if (::stat(given.c_str(), &info) == 0 && !S_ISDIR(info.st_mode)) return given;
    const std::string by_id = folder + "/" + given + std::string(kSuffix);
    if (::stat(by_id.c_str(), &info) == 0) return by_id;
    if (::stat(given.c_str(), &info) != 0) {
      return base::SystemError("cannot open the run", given, errno, "see 'epochmeter ls'");
    }
    folder = given;
  }
  EPM_ASSIGN(const std::vector<FoundRun> runs, FindRuns(folder));
  if (runs.empty()) {
    return base::Error{.what = "no run",
                       .where = folder,
                       .why = "",
                       .what_to_do = "record one with 'epochmeter run -- COMMAND'"};
  }
  return runs.front().path;
}

base::Result<OpenedRun> OpenNamedRun(const Arguments& arguments) {
  EPM_ASSIGN(const std::string path, RunPath(arguments));
  EPM_ASSIGN(model::Run run, runfile::OpenRun(path));
  return OpenedRun{.path = path, .run = std::move(run)};
}

int ExitCodeOf(const Arguments& arguments, const model::Run& run) {
  if (!arguments.Has("strict")) return kExitOk;
  const bool lost = std::any_of(run.losses.begin(), run.losses.end(), [](const model::Loss& loss) {
    return loss.severity != model::LossSeverity::kInfo;
  });
  return lost ? kExitPartial : kExitOk;
}

base::Result<std::unique_ptr<Output>> Output::Open(const std::optional<std::string>& path) {
  if (!path || *path == "-") return std::unique_ptr<Output>(std::make_unique<StandardOutput>());
  auto file = std::make_unique<FileOutput>(*path);
  if (!file->good()) return base::SystemError("cannot write", *path, errno);
  return std::unique_ptr<Output>(std::move(file));
}

}  // namespace epochmeter::cli
