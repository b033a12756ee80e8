// SPDX-License-Identifier: Apache-2.0
#include "cli/log_follow.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/file.h"
#include "cli/followed_file.h"
#include "cli/log_text.h"
#include "cli/say.h"
#include "ingest/log/file_rank.h"
#include "ingest/log/unpacker.h"

namespace epochmeter::cli {
namespace {

using ingest::log::LogEngine;
using ingest::log::LogFile;
using ingest::log::LogFinder;
using ingest::log::LogInput;

constexpr size_t kBatchBytes = size_t{4} << 20;
constexpr size_t kPipeBytes = size_t{1} << 18;
// Files are looked at: what tells of changes (inotify) tells nothing of another machine's, and of
// few changes in containers. A look takes microseconds.
constexpr int kLeastWaitMs = 10;
constexpr int kMostWaitMs = 100;
// New files are looked for each second, and where that takes long less often.
constexpr int64_t kFindPeriodNs = base::kNsPerSecond;
constexpr int64_t kFindShare = 200;
// A log that is quiet for so long has said what it had to say for now; where it stopped within a
// line, which is how a buffer that is full looks, a little later.
constexpr int64_t kQuietNs = 200 * base::kNsPerMs;
constexpr int64_t kMostQuietNs = 600 * base::kNsPerMs;
// What was written before the end was asked for is read as long as this.
constexpr int64_t kEndNs = 5 * base::kNsPerSecond;

// The first of the signals that ask to end; the second does as if nothing were here.
class EndSignals {
 public:
  EndSignals() {
    sigemptyset(&signals_);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals_, signal);
    ::sigprocmask(SIG_BLOCK, &signals_, &before_);
    fd_ = base::UniqueFd(::signalfd(-1, &signals_, SFD_CLOEXEC | SFD_NONBLOCK));
  }
  ~EndSignals() { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }

  int fd() const { return fd_.get(); }
  bool Came() {
    signalfd_siginfo info{};
    if (came_ || ::read(fd_.get(), &info, sizeof info) != sizeof info) return came_;
    came_ = true;
    ::sigprocmask(SIG_SETMASK, &before_, nullptr);
    return true;
  }

 private:
  sigset_t signals_{}, before_{};
  base::UniqueFd fd_;
  bool came_ = false;
};

// Each file that is followed has a descriptor.
void AllowManyFiles() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

// A log that is followed.
class Followed : public FollowSink {
 public:
  Followed(LogEngine* engine, const LogFile& file) : text_(engine, file) {}

  void OnText(std::string_view bytes) override { text_.Give(bytes); }
  void OnTold(const std::string& sentence) override { SayAtOnce("epochmeter: " + sentence); }

  LogText text_;
  std::unique_ptr<FollowedFile> file_;  // or a pipe:
  base::UniqueFd pipe_;
  std::unique_ptr<ingest::log::Unpacker> unpacker_;
  int64_t fed_ns_ = 0;
  bool undecided_ = false;  // fed since the engine was told of a pause
};

}  // namespace

class LogFollower::Impl {
 public:
  Impl(LogEngine* engine, std::vector<LogFile>* files, std::vector<std::string>* failures,
       const LogReading& reading)
      : engine_(*engine), files_(*files), failures_(*failures), reading_(reading) {}

  base::Result<> Run(LogFinder* finder, const std::vector<std::string>& words,
                     const std::vector<LogInput>& inputs) {
    AllowManyFiles();
    for (size_t i = 0; i < inputs.size() && !ended_; ++i) EPM_TRY(Add(inputs[i], files_[i]));
    if (inputs.empty()) SayAtOnce("epochmeter: no file is there yet; waiting for one");
    int64_t find_ns = base::MonotonicNs() + kFindPeriodNs;
    while (!ended_) {
      const int64_t now_ns = base::MonotonicNs();
      if (finder->open() && now_ns >= find_ns) {
        EPM_TRY(AddNew(finder, words));
        const int64_t end_ns = base::MonotonicNs();
        find_ns = end_ns + std::max(kFindPeriodNs, kFindShare * (end_ns - now_ns));
      }
      const size_t got = LookAtAll(now_ns);
      const bool paused = TellPause(now_ns);
      if ((got > 0 || paused) && !AfterBatch()) break;
      if (!finder->open() && AllEnded()) break;
      Wait(got);
    }
    return End();
  }

 private:
  // Reads the older files of a log, and opens the one that is followed before: its name may go to
  // another meanwhile.
  base::Result<> Add(const LogInput& input, const LogFile& file) {
    LogFile known = file;
    known.modified_ns.reset();  // lines will be later than that
    auto log = std::make_unique<Followed>(&engine_, known);
    const bool pipe = input.there && !IsFile(input.name);
    if (input.there && !pipe) log->text_.Survey(input.parts.front(), input.parts.back());
    for (size_t i = 0; i + 1 < input.parts.size(); ++i) {
      base::Result<> read = log->text_.Read(
          input.parts[i], [this] { return GoOn(); }, &failures_);
      if (!read.ok()) failures_.push_back(read.error().Message());
    }
    if (pipe) {
      base::Result<> opened = OpenPipe(input.name, log.get());
      if (!opened.ok() && files_.size() == 1) return opened;
      if (!opened.ok()) failures_.push_back(opened.error().Message());
    } else {
      log->text_.EndLine();
      log->file_ = std::make_unique<FollowedFile>(input.name, *log, log->text_.lines());
    }
    logs_.push_back(std::move(log));
    return {};
  }

  base::Result<> AddNew(LogFinder* finder, const std::vector<std::string>& words) {
    for (const LogInput& input : finder->Find(words)) {
      std::vector<LogFile> found = {{.name = input.name, .modified_ns = {}}};
      ingest::log::NameRanks(&found);
      files_.push_back(found.front());
      SayAtOnce("epochmeter: " + input.name + " is there now");
      EPM_TRY(Add(input, files_.back()));
    }
    return {};
  }

  static bool IsFile(const std::string& name) {
    struct stat info {};
    return name != "-" && ::stat(name.c_str(), &info) == 0 && S_ISREG(info.st_mode);
  }

  // Without waiting for a writer.
  static base::Result<> OpenPipe(const std::string& name, Followed* log) {
    if (name == "-") {
      log->pipe_ = base::UniqueFd(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3));
    } else {
      log->pipe_ = base::UniqueFd(::open(name.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    }
    if (!log->pipe_.valid()) return base::SystemError("cannot read the log", name, errno);
    log->unpacker_ = std::make_unique<ingest::log::Unpacker>(
        [log](std::string_view text) { log->text_.Give(text); });
    return {};
  }

  size_t LookAtAll(int64_t now_ns) {
    size_t sum = 0;
    for (const auto& log : logs_) {
      const size_t got =
          log->file_ != nullptr ? log->file_->Look(now_ns, kBatchBytes) : ReadPipe(log.get());
      if (got == 0) continue;
      log->fed_ns_ = now_ns;
      log->undecided_ = true;
      sum += got;
    }
    return sum;
  }

  // What is there. A pipe that nobody has opened yet has no end.
  size_t ReadPipe(Followed* log) {
    size_t sum = 0;
    buffer_.resize(kPipeBytes);
    while (log->pipe_.valid() && sum < kBatchBytes) {
      pollfd ready{.fd = log->pipe_.get(), .events = POLLIN, .revents = 0};
      if (::poll(&ready, 1, 0) <= 0) break;
      const ssize_t got = ::read(log->pipe_.get(), buffer_.data(), buffer_.size());
      if (got < 0 && (errno == EINTR || errno == EAGAIN)) break;
      if (got > 0) {
        log->unpacker_->Feed(std::string_view(buffer_).substr(0, static_cast<size_t>(got)));
        sum += static_cast<size_t>(got);
        continue;
      }
      if (got < 0)
        failures_.push_back(base::SystemError("cannot read on", "a pipe", errno).Message());
      const std::string problem = log->unpacker_->Finish();
      if (!problem.empty()) failures_.push_back(problem);
      log->pipe_.Reset();
    }
    return sum;
  }

  // When logs paused, what is decided goes out.
  bool TellPause(int64_t now_ns) {
    int64_t first_ns = now_ns, last_ns = 0;
    bool undecided = false, open_line = false;
    for (const auto& log : logs_) {
      last_ns = std::max(last_ns, log->fed_ns_);
      if (!log->undecided_) continue;
      undecided = true;
      first_ns = std::min(first_ns, log->fed_ns_);
      open_line = open_line || log->text_.open_line();
    }
    const bool all = now_ns - last_ns >= kQuietNs && !open_line;
    if (!undecided || (!all && now_ns - first_ns < kMostQuietNs)) return false;
    engine_.Idle();
    for (const auto& log : logs_) log->undecided_ = false;
    return true;
  }

  bool AllEnded() const {
    return std::all_of(logs_.begin(), logs_.end(), [](const auto& log) {
      return log->file_ == nullptr && !log->pipe_.valid();
    });
  }

  bool AfterBatch() { return !reading_.after_batch || reading_.after_batch(); }

  // While a large file is read.
  bool GoOn() {
    if (AfterBatch() && !Asked(0)) return true;
    ended_ = true;
    return false;
  }

  void Wait(size_t got) {
    wait_ms_ = got > 0 ? kLeastWaitMs : std::min(2 * std::max(wait_ms_, kLeastWaitMs), kMostWaitMs);
    ended_ = Asked(got >= kBatchBytes ? 0 : wait_ms_);
  }

  // Whether the end was asked for, or nobody reads the output any more. Waits that long, or until a
  // pipe has something.
  bool Asked(int most_ms) {
    std::vector<pollfd> watched = {{.fd = signals_.fd(), .events = POLLIN, .revents = 0},
                                   {.fd = reading_.output_fd, .events = 0, .revents = 0}};
    for (const auto& log : logs_) {
      if (log->pipe_.valid()) {
        watched.push_back({.fd = log->pipe_.get(), .events = POLLIN, .revents = 0});
      }
    }
    ::poll(watched.data(), watched.size(), most_ms);
    return signals_.Came() || (watched[1].revents & (POLLERR | POLLHUP)) != 0;
  }

  base::Result<> End() {
    const int64_t begin_ns = base::MonotonicNs();
    for (const auto& log : logs_) {
      if (log->file_ != nullptr) log->file_->Hurry();
    }
    while (LookAtAll(begin_ns) >= kBatchBytes && AfterBatch()) {
      if (base::MonotonicNs() - begin_ns < kEndNs) continue;
      SayAtOnce("epochmeter: asked to end while there was more to read; the rest is left out");
      break;
    }
    for (const auto& log : logs_) {
      if (log->file_ != nullptr) log->file_->End();
      log->text_.Close();
    }
    return {};
  }

  LogEngine& engine_;
  std::vector<LogFile>& files_;
  std::vector<std::string>& failures_;
  const LogReading& reading_;
  EndSignals signals_;
  std::vector<std::unique_ptr<Followed>> logs_;
  std::string buffer_;
  int wait_ms_ = 0;
  bool ended_ = false;
};

LogFollower::LogFollower(LogEngine* engine, std::vector<LogFile>* files,
                         std::vector<std::string>* failures, const LogReading& reading)
    : impl_(std::make_unique<Impl>(engine, files, failures, reading)) {}
LogFollower::~LogFollower() = default;

base::Result<> LogFollower::Run(LogFinder* finder, const std::vector<std::string>& words,
                                const std::vector<LogInput>& inputs) {
  return impl_->Run(finder, words, inputs);
}

}  // namespace epochmeter::cli
