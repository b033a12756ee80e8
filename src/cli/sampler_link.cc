// SPDX-License-Identifier: Apache-2.0
#include "cli/sampler_link.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <set>
#include <string>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/unique_fd.h"
#include "cli/helper_output.h"
#include "cli/messages.h"
#include "runfile/record_codec.h"

namespace epochmeter::cli {
namespace {

constexpr int64_t kFirstRestartNs = 100 * base::kNsPerMs;
constexpr int64_t kLongestRestartNs = 60 * base::kNsPerSecond;
// Silence of this long, or of ten ticks, means that the driver hangs. nvmlInit alone may take
// seconds on a node where many processes start.
constexpr int64_t kLongestSilenceNs = 30 * base::kNsPerSecond;
constexpr int64_t kLastSampleNs = 300 * base::kNsPerMs;
constexpr size_t kLongestPacket = 256 * 1024;

// Passes records on and notes which series they name, for when the sampler dies.
class SeenSeriesSink : public model::Sink {
 public:
  explicit SeenSeriesSink(model::Sink& out) : out_(out) {}
  void Write(const model::Record& record) override {
    if (const auto* samples = std::get_if<model::Samples>(&record)) {
      for (const model::SampleValue& value : samples->values) MarkLive(value.series);
    }
    out_.Write(record);
  }
  void TellGone(int64_t t_ns, const std::string& detail) {
    for (model::SeriesId id = 0; id < live_.size(); ++id) {
      if (!live_[id]) continue;
      live_[id] = false;
      out_.Write(model::SeriesState{.t_ns = t_ns,
                                    .series = id,
                                    .condition = model::SeriesCondition::kSourceGone,
                                    .detail = detail});
      gone_.resize(std::max(gone_.size(), live_.size()));
      gone_[id] = true;
    }
  }

 private:
  void MarkLive(model::SeriesId id) {
    if (live_.size() <= id) live_.resize(id + 1);
    live_[id] = true;
    if (id >= gone_.size() || !gone_[id]) return;
    gone_[id] = false;
    out_.Write(model::SeriesState{.t_ns = base::MonotonicNs(),
                                  .series = id,
                                  .condition = model::SeriesCondition::kOk,
                                  .detail = "the sampler is back"});
  }
  model::Sink& out_;
  std::vector<bool> live_, gone_;
};

// In the thread of the recorder; only Stop waits, and has a limit. Times are monotonic.
class Link : public SamplerLink {
 public:
  Link(model::Registry& registry, model::Sink& sink, const RunSettings& settings)
      : registry_(registry),
        sink_(sink),
        interval_ns_(settings.interval_ns),
        all_gpus_(settings.all_gpus) {}
  ~Link() override { Kill(); }

  void Start(int32_t training_pid) override {
    training_pid_ = training_pid;
    if (pid_ < 0) Spawn();
  }
  int fd() const override { return channel_.get(); }

  int64_t NextDueNs() const override {
    if (pid_ > 0) return last_heard_ns_ + SilenceNs();
    return restart_at_ns_ > 0 ? restart_at_ns_ : INT64_MAX;
  }

  void Maintain(int64_t now_ns) override {
    TellOutput(now_ns, false);
    if (channel_.valid() && !Receive()) {
      Reap("the sampler process ended");
    } else if (pid_ > 0 && now_ns - last_heard_ns_ > SilenceNs()) {
      ::kill(pid_, SIGKILL);
      Reap("the driver did not answer for " +
           base::FormatDuration(base::SecondsFromNs(SilenceNs())));
    }
    ReapDying();
    if (pid_ < 0 && restart_at_ns_ > 0 && restart_at_ns_ <= now_ns) {
      // One that is stuck in the driver can't be killed yet: two would wait for the same lock.
      if (dying_pid_ > 0) {
        restart_at_ns_ = now_ns + kFirstRestartNs;
      } else {
        Spawn();
      }
    }
  }

  void SampleNow() override {
    if (!channel_.valid()) return;
    [[maybe_unused]] const ssize_t n =
        ::send(channel_.get(), &kSampleNow, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
  }

  void NameGpu(const std::string& name) override {
    if (name.empty() || name.size() > kLongestGpuName || !named_gpus_.insert(name).second) return;
    SendName(name);
  }

  void Stop() override {
    SampleNow();
    const int64_t asked_ns = base::MonotonicNs();
    while (channel_.valid() && base::MonotonicNs() - asked_ns < kLastSampleNs) {
      pollfd poll_one{.fd = channel_.get(), .events = POLLIN, .revents = 0};
      if (::poll(&poll_one, 1, 20) > 0 && !Receive()) break;
      if (last_sample_ns_ >= asked_ns) break;
    }
    if (channel_.valid()) Receive();
    TellOutput(base::MonotonicNs(), true);
    Kill();
    restart_at_ns_ = 0;
  }

 private:
  void SendName(const std::string& name) {
    if (!channel_.valid()) return;
    const std::string message = kGpuNamed + name;
    [[maybe_unused]] const ssize_t n =
        ::send(channel_.get(), message.data(), message.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  }

  int64_t SilenceNs() const { return std::max(kLongestSilenceNs, 10 * interval_ns_); }

  void Spawn() {
    int ends[2];
    last_heard_ns_ = base::MonotonicNs();
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return Delay();
    channel_ = base::UniqueFd(ends[0]);
    const base::UniqueFd theirs(ends[1]);
    // Only async-signal-safe calls between fork and exec: other threads are running.
    std::vector<std::string> words = {
        "epochmeter",    "internal-sampler",           "--channel",  std::to_string(theirs.get()),
        "--interval-ns", std::to_string(interval_ns_), "--root-pid", std::to_string(training_pid_)};
    if (all_gpus_) words.emplace_back("--all-gpus");
    std::vector<char*> argv;
    argv.reserve(words.size() + 1);
    for (std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    const int bytes = 1 << 20;
    ::setsockopt(theirs.get(), SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
    const int printed = output_.Make();
    pid_ = ::fork();
    if (pid_ == 0) {
      if (printed >= 0) ::dup2(printed, STDOUT_FILENO);
      if (printed >= 0) ::dup2(printed, STDERR_FILENO);
      const int fd = theirs.get();
      ::fcntl(fd, F_SETFD, 0);
      ::execv("/proc/self/exe", argv.data());
      ::_exit(127);
    }
    output_.Started(base::MonotonicNs());
    if (pid_ < 0) {
      channel_.Reset();
      return Delay();
    }
    for (const std::string& name : named_gpus_) SendName(name);
    started_ns_ = base::MonotonicNs();
    remap_ = std::make_unique<model::RemapSink>(registry_, seen_);
  }

  // Each death in a row doubles the wait; a minute of life makes it short again.
  void Delay() {
    restart_at_ns_ = base::MonotonicNs() + delay_ns_;
    delay_ns_ = std::min(2 * delay_ns_, kLongestRestartNs);
  }

  // False at the end of the stream.
  bool Receive() {
    for (;;) {
      packet_.resize(kLongestPacket);
      const ssize_t n = ::recv(channel_.get(), packet_.data(), packet_.size(), MSG_DONTWAIT);
      if (n == 0) return false;
      if (n < 0) return errno == EAGAIN || errno == EINTR;
      last_heard_ns_ = base::MonotonicNs();
      if (last_heard_ns_ - started_ns_ > kLongestRestartNs) delay_ns_ = kFirstRestartNs;
      Decode(std::string_view(packet_).substr(0, static_cast<size_t>(n)));
    }
  }

  // A record of an unknown kind is passed over; one that is cut off ends its packet.
  void Decode(std::string_view bytes) {
    base::ByteReader reader(bytes);
    model::Record record;
    for (;;) {
      const runfile::DecodeStatus status = runfile::DecodeRecord(reader, &record);
      if (status == runfile::DecodeStatus::kIncomplete) return;
      if (status != runfile::DecodeStatus::kRecord) continue;
      // A source may write samples of an earlier time as well.
      if (const auto* samples = std::get_if<model::Samples>(&record)) {
        last_sample_ns_ = std::max(last_sample_ns_, samples->t_ns);
      }
      remap_->Write(record);
    }
  }

  // Its series end with the reason, so that no mean bridges the time without it.
  void Reap(const std::string& why) {
    channel_.Reset();
    KillProcess();
    const std::string& detail = why;
    const int64_t now_ns = base::MonotonicNs();
    seen_.TellGone(now_ns, detail);
    TellOutput(now_ns, true);
    sink_.Write(model::Event{.t_ns = now_ns,
                             .kind = model::EventKind::kSource,
                             .rank = {},
                             .epoch = {},
                             .step = {},
                             .name = "sampler",
                             .fields = {{.key = "state", .value = std::string("gone")},
                                        {.key = "detail", .value = detail}}});
    Delay();
  }

  void Kill() {
    channel_.Reset();
    KillProcess();
  }

  // A driver's library may print, a stub does at each call; the training's stderr is not for it.
  void TellOutput(int64_t now_ns, bool ended) {
    const std::string text = output_.Take(now_ns, ended);
    if (text.empty()) return;
    sink_.Write(model::Event{.t_ns = now_ns,
                             .kind = model::EventKind::kSource,
                             .rank = {},
                             .epoch = {},
                             .step = {},
                             .name = "sampler.output",
                             .fields = {{.key = "detail", .value = text}}});
  }

  // Never waits: a process that hangs in the driver dies when the driver lets it.
  void KillProcess() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    dying_pid_ = std::exchange(pid_, -1);
    ReapDying();
  }

  void ReapDying() {
    if (dying_pid_ > 0 && ::waitpid(dying_pid_, nullptr, WNOHANG) != 0) dying_pid_ = -1;
  }

  model::Registry& registry_;
  model::Sink& sink_;
  int64_t interval_ns_;
  bool all_gpus_;
  std::set<std::string> named_gpus_;
  HelperOutput output_;
  int32_t training_pid_ = 0;
  pid_t pid_ = -1;
  pid_t dying_pid_ = -1;  // killed, not yet dead
  base::UniqueFd channel_;
  SeenSeriesSink seen_{sink_};
  std::unique_ptr<model::RemapSink> remap_;
  std::string packet_;
  int64_t last_heard_ns_ = 0;
  int64_t last_sample_ns_ = 0;
  int64_t started_ns_ = 0;
  int64_t restart_at_ns_ = 0;
  int64_t delay_ns_ = kFirstRestartNs;
};

}  // namespace

std::unique_ptr<SamplerLink> SamplerLink::Make(model::Registry& registry, model::Sink& sink,
                                               const RunSettings& settings) {
  return std::make_unique<Link>(registry, sink, settings);
}

}  // namespace epochmeter::cli
