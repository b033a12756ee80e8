// SPDX-License-Identifier: Apache-2.0
#include "cli/open_run.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <fstream>
#include <streambuf>

#include "base/file.h"
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

bool SameFile(const std::string& a, const std::string& b) {
  struct stat first {
  }, second{};
  return ::stat(a.c_str(), &first) == 0 && ::stat(b.c_str(), &second) == 0 &&
         first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

// A stream buffer over descriptor 1 that knows when its reader went away.
class StdoutBuffer : public std::streambuf {
 public:
  StdoutBuffer() { setp(buffer_, buffer_ + sizeof buffer_); }
  bool reader_gone() const { return reader_gone_; }
  int error() const { return error_; }

 protected:
  int_type overflow(int_type c) override {
    if (sync() != 0) return traits_type::eof();
    if (!traits_type::eq_int_type(c, traits_type::eof())) sputc(traits_type::to_char_type(c));
    return traits_type::not_eof(c);
  }
  int sync() override {
    const std::string_view bytes(pbase(), static_cast<size_t>(pptr() - pbase()));
    setp(buffer_, buffer_ + sizeof buffer_);
    if (error_ != 0) return -1;
    const base::Result<> written = base::WriteAll(STDOUT_FILENO, bytes, "stdout");
    if (written.ok()) return 0;
    error_ = written.error().code;
    reader_gone_ = error_ == EPIPE;
    return -1;
  }

 private:
  char buffer_[1 << 16];
  int error_ = 0;
  bool reader_gone_ = false;
};

class StandardOutput : public Output {
 public:
  StandardOutput() : stream_(&buffer_) { ::signal(SIGPIPE, SIG_IGN); }
  std::ostream& stream() override { return stream_; }
  bool reader_gone() const override { return buffer_.reader_gone(); }
  base::Result<> Close() override {
    stream_.flush();
    if (buffer_.error() == 0 || buffer_.reader_gone()) return {};
    return base::SystemError("cannot write", "stdout", buffer_.error());
  }

 private:
  StdoutBuffer buffer_;
  std::ostream stream_;
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
    FoundRun run{.path = base::Join({folder, name}, "/"),
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
    // What is left of a run whose file was removed.
    if (::stat((given + ".tail").c_str(), &info) == 0) return given;
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

bool IsBeingWritten(const std::string& path) {
  // The writer holds a lock of the open file description on the main file.
  const base::Result<base::UniqueFd> fd = base::OpenFile(path, O_RDONLY);
  if (!fd.ok()) return false;
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return ::fcntl(fd->get(), F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

int ExitCodeOf(const Arguments& arguments, const model::Run& run) {
  if (!arguments.Has("strict")) return kExitOk;
  const bool lost = std::any_of(run.losses.begin(), run.losses.end(), [](const model::Loss& loss) {
    return loss.severity != model::LossSeverity::kInfo;
  });
  return lost ? kExitPartial : kExitOk;
}

base::Result<std::unique_ptr<Output>> Output::Open(const std::optional<std::string>& path,
                                                   const std::string& input) {
  if (!path || *path == "-") return std::unique_ptr<Output>(std::make_unique<StandardOutput>());
  if (SameFile(*path, input) || SameFile(*path, input + ".tail")) {
    return base::Error{.what = "refusing to write over the run that is being read",
                       .where = *path,
                       .why = "",
                       .what_to_do = "give another path with -o"};
  }
  auto file = std::make_unique<FileOutput>(*path);
  if (!file->good()) return base::SystemError("cannot write", *path, errno);
  return std::unique_ptr<Output>(std::move(file));
}

}  // namespace epochmeter::cli
