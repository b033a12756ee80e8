// SPDX-License-Identifier: Apache-2.0
#include "cli/sampler_link.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/strings.h"
#include "cli/messages.h"
#include "cli/sampler_channel.h"
#include "cli/sampler_child.h"
#include "cli/sampler_records.h"
#include "model/source_event.h"

namespace epochmeter::cli {
namespace {

constexpr int64_t kFirstRestartNs = 100 * base::kNsPerMs;
constexpr int64_t kLongestRestartNs = 60 * base::kNsPerSecond;
// Silence of this long, or of ten ticks, means that the driver hangs. nvmlInit alone may take
// seconds on a node where many processes start.
constexpr int64_t kLongestSilenceNs = 30 * base::kNsPerSecond;
constexpr int64_t kLastSampleNs = 300 * base::kNsPerMs;
constexpr size_t kLongestPacket = 256 * 1024;
// One look takes no more than this many: a sampler gone wild must not keep the recorder.
constexpr int kPacketsALook = 64;
// A process that closed its channel is about to end; one that does not is killed after this.
constexpr int64_t kLastBreathNs = 500 * base::kNsPerMs;
constexpr int64_t kLookForEndNs = 2 * base::kNsPerMs;
// A library that writes to our channel by mistake costs these packets only; more is no mistake.
constexpr int kMostBadPackets = 100;

// How long the sampler may be silent; tests set less than the 30 s.
int64_t LongestSilenceNs() {
  const char* value = std::getenv("EPOCHMETER_SAMPLER_SILENCE_MS");
  const auto ms = base::ParseInt(value != nullptr ? value : "");
  return ms && *ms > 0 ? *ms * base::kNsPerMs : kLongestSilenceNs;
}

// In the thread of the recorder; only Stop waits, and has a limit. Times are monotonic.
class Link : public SamplerLink {
 public:
  Link(model::Registry& registry, model::Sink& sink, const RunSettings& settings)
      : sink_(sink),
        records_(registry, sink),
        silence_ns_(std::max(LongestSilenceNs(), 10 * settings.interval_ns)),
        task_{.interval_ns = settings.interval_ns,
              .training_pid = 0,
              .all_gpus = settings.all_gpus,
              .cpu_ratio = settings.sampler_cpu_ratio()} {}

  void Start(int32_t training_pid) override {
    task_.training_pid = training_pid;
    if (!child_.running()) Spawn();
  }
  int fd() const override { return closed_at_ns_ > 0 ? -1 : child_.channel(); }

  int64_t NextDueNs() const override {
    if (closed_at_ns_ > 0) return base::MonotonicNs() + kLookForEndNs;
    if (child_.running()) return last_heard_ns_ + silence_ns_;
    return restart_at_ns_ > 0 ? restart_at_ns_ : INT64_MAX;
  }

  void Maintain(int64_t now_ns) override {
    TellOutput(now_ns, false);
    if (child_.running()) Watch(now_ns);
    TellBadPackets(now_ns, false);
    child_.ReapDying();
    if (child_.running() || restart_at_ns_ == 0 || restart_at_ns_ > now_ns) return;
    if (child_.dying()) {
      restart_at_ns_ = now_ns + kFirstRestartNs;
    } else {
      Spawn();
    }
  }

  void SampleNow() override { Send(kSampleNow); }

  void NameGpu(const std::string& name) override {
    if (name.empty() || name.size() > kLongestGpuName || !named_gpus_.insert(name).second) return;
    SendName(name);
  }

  void Stop() override {
    Send(kSampleLast);
    const int64_t asked_ns = base::MonotonicNs();
    while (fd() >= 0 && base::MonotonicNs() - asked_ns < kLastSampleNs) {
      pollfd poll_one{.fd = fd(), .events = POLLIN, .revents = 0};
      if (::poll(&poll_one, 1, 20) > 0 && !Receive()) break;
      if (records_.last_sample_ns() >= asked_ns) break;
    }
    if (fd() >= 0) Receive();
    TellBadPackets(base::MonotonicNs(), true);
    TellOutput(base::MonotonicNs(), true);
    child_.Kill();
    restart_at_ns_ = 0;
  }

 private:
  void Send(char message) {
    if (fd() < 0) return;
    [[maybe_unused]] const ssize_t n = ::send(fd(), &message, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
  }

  void SendName(const std::string& name) {
    if (fd() < 0) return;
    const std::string message = kGpuNamed + name;
    [[maybe_unused]] const ssize_t n =
        ::send(fd(), message.data(), message.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  }

  void Spawn() {
    last_heard_ns_ = started_ns_ = base::MonotonicNs();
    closed_at_ns_ = 0;
    bad_in_a_life_ = 0;
    if (!child_.Start(task_)) return Delay();
    for (const std::string& name : named_gpus_) SendName(name);
    records_.Restart();
  }

  // Each death in a row doubles the wait; a minute of life makes it short again.
  void Delay() {
    restart_at_ns_ = base::MonotonicNs() + delay_ns_;
    delay_ns_ = std::min(2 * delay_ns_, kLongestRestartNs);
  }

  // Notices the end of the process, silence and garbage.
  void Watch(int64_t now_ns) {
    if (closed_at_ns_ == 0 && !Receive()) closed_at_ns_ = now_ns;
    if (closed_at_ns_ > 0) {
      const std::optional<int> status = child_.Ended();
      if (status) return Gone("the sampler process " + DescribeEnd(*status), status);
      if (now_ns - closed_at_ns_ < kLastBreathNs) return;
      Gone("the sampler process closed its channel", std::nullopt);
    } else if (now_ns - last_heard_ns_ > silence_ns_) {
      Gone(
          "the driver did not answer for " + base::FormatDuration(base::SecondsFromNs(silence_ns_)),
          std::nullopt);
    } else if (bad_in_a_life_ > kMostBadPackets) {
      Gone("the sampler process sent what is no record", std::nullopt);
    }
  }

  // False at the end of the stream.
  bool Receive() {
    for (int i = 0; i < kPacketsALook; ++i) {
      packet_.resize(kLongestPacket);
      const ssize_t n = ::recv(child_.channel(), packet_.data(), packet_.size(), MSG_DONTWAIT);
      if (n == 0) return false;
      if (n < 0) return errno == EAGAIN || errno == EINTR;
      const auto size = static_cast<size_t>(n);
      const auto records = OpenPacket(std::string_view(packet_).substr(0, size));
      if (records && TakeRecords(*records)) {
        last_heard_ns_ = base::MonotonicNs();
        if (last_heard_ns_ - started_ns_ > kLongestRestartNs) delay_ns_ = kFirstRestartNs;
      } else {
        ++bad_in_a_life_;
        bad_bytes_ += size;
      }
    }
    return true;
  }

  bool TakeRecords(std::string_view packet) {
    const int64_t before_ns = records_.last_sample_ns();
    const bool good = records_.Take(packet);
    if (away_since_ns_ > 0 && records_.last_sample_ns() > before_ns) TellBack();
    return good;
  }

  // Its series end with the reason, so that no mean bridges the time without it.
  void Gone(const std::string& why, std::optional<int> wait_status) {
    closed_at_ns_ = 0;
    child_.Kill();
    const int64_t now_ns = base::MonotonicNs();
    if (away_since_ns_ == 0) away_since_ns_ = last_heard_ns_;
    ++deaths_;
    records_.TellGone(now_ns, why);
    TellOutput(now_ns, true);
    std::vector<model::EventField> fields = {
        {.key = "detail", .value = why},
        {.key = "times", .value = deaths_},
        {.key = "silent_s", .value = base::SecondsFromNs(now_ns - last_heard_ns_)}};
    if (wait_status && WIFSIGNALED(*wait_status)) {
      fields.push_back({.key = "signal", .value = int64_t{WTERMSIG(*wait_status)}});
    } else if (wait_status) {
      fields.push_back({.key = "exit_code", .value = int64_t{WEXITSTATUS(*wait_status)}});
    }
    TellState(now_ns, "gone", std::move(fields));
    Delay();
  }

  void TellBack() {
    const int64_t now_ns = base::MonotonicNs();
    const int64_t away_ns = now_ns - std::exchange(away_since_ns_, 0);
    TellState(now_ns, "back",
              {{.key = "away_s", .value = base::SecondsFromNs(away_ns)},
               {.key = "times", .value = std::exchange(deaths_, 0)}});
  }

  void TellState(int64_t now_ns, const std::string& state, std::vector<model::EventField> fields) {
    fields.insert(fields.begin(), {.key = "state", .value = state});
    Tell(now_ns, "sampler", std::move(fields));
  }

  // A driver's library may print, a stub does at each call; the training's stderr is not for it.
  void TellOutput(int64_t now_ns, bool ended) {
    const std::string text = child_.TakeOutput(now_ns, ended);
    if (!text.empty()) Tell(now_ns, "sampler.output", {{.key = "detail", .value = text}});
  }

  void Tell(int64_t now_ns, const std::string& name, std::vector<model::EventField> fields) {
    sink_.Write(model::SourceEvent(now_ns, name, std::move(fields)));
  }

  // At most one a second.
  void TellBadPackets(int64_t now_ns, bool last) {
    if (bad_bytes_ == 0 || (!last && now_ns - bad_told_ns_ < base::kNsPerSecond)) return;
    bad_told_ns_ = now_ns;
    sink_.Write(model::Loss{
        .t_ns = now_ns,
        .severity = model::LossSeverity::kDataLoss,
        .kind = "sampler.garbage",
        .count = std::exchange(bad_bytes_, 0),
        .detail = "bytes from the sampler process that are no record",
        .help =
            "The driver's library writes where it must not; try another version of the driver."});
  }

  model::Sink& sink_;
  SamplerRecords records_;
  const int64_t silence_ns_;
  SamplerChild::Task task_;
  std::set<std::string> named_gpus_;
  SamplerChild child_;
  std::string packet_;
  int64_t last_heard_ns_ = 0;
  int64_t started_ns_ = 0;
  int64_t closed_at_ns_ = 0;   // the channel's end was seen, the process's not yet
  int64_t away_since_ns_ = 0;  // 0: it is there, or was never heard of
  int64_t deaths_ = 0;         // since then
  int64_t restart_at_ns_ = 0;
  int64_t delay_ns_ = kFirstRestartNs;
  int bad_in_a_life_ = 0;
  uint64_t bad_bytes_ = 0;  // not yet told
  int64_t bad_told_ns_ = 0;
};

}  // namespace

std::unique_ptr<SamplerLink> SamplerLink::Make(model::Registry& registry, model::Sink& sink,
                                               const RunSettings& settings) {
  return std::make_unique<Link>(registry, sink, settings);
}

}  // namespace epochmeter::cli
