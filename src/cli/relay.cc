// SPDX-License-Identifier: Apache-2.0
#include "cli/relay.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>

#include "cli/messages.h"
#include "cli/signals.h"

namespace epochmeter::cli {
namespace {

// What the threads of a relay share.
struct Shared {
  RelayChannels channels;
  const std::vector<RelayStream>& streams;
  int signals = -1;  // for the first thread
  std::atomic<size_t> drained = 0;
};

void Tell(const Shared& shared, const HelperMessage& message) {
  [[maybe_unused]] const ssize_t n =
      ::send(shared.channels.control, &message, sizeof message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

// Passes one stream on, on a thread of its own: a reader that takes nothing from stdout must not
// hold stderr as well.
class StreamRelay {
 public:
  StreamRelay(Shared& shared, size_t index, WriteJournal& journal)
      : shared_(shared),
        index_(index),
        from_(shared.streams[index].from),
        to_(shared.streams[index].to),
        mover_(shared.streams[index], journal, shared.channels.capture, true) {}

  void Run() {
    while (!reader_gone_ && (from_ >= 0 || mover_.HasInHand())) {
      if (mover_.HasInHand()) {
        Note(mover_.PassOn());
      } else if (Wait()) {
        if (mover_.TakeIn() == StreamMover::Step::kSourceEnded) from_ = -1;
      } else if (training_ended_) {
        Answer();
      }
    }
    Answer();
  }

 private:
  // Waits for output, or for the training's end; true when there is output. After the end it only
  // looks whether more is there, answers, and waits again: grandchildren may hold the pipe for
  // long.
  bool Wait() {
    pollfd polls[3] = {
        {.fd = from_, .events = POLLIN, .revents = 0},
        {.fd = training_ended_ ? -1 : shared_.channels.control, .events = POLLIN, .revents = 0},
        {.fd = index_ == 0 ? shared_.signals : -1, .events = POLLIN, .revents = 0}};
    if (::poll(polls, 3, training_ended_ && !answered_ ? 0 : -1) < 0) return false;
    if (polls[1].revents != 0) training_ended_ = true;
    if (polls[2].revents != 0) TakeSignals();
    return polls[0].revents != 0;
  }

  void Note(StreamMover::Step step) {
    if (step == StreamMover::Step::kWouldWait) {
      pollfd writable{.fd = to_, .events = POLLOUT, .revents = 0};
      ::poll(&writable, 1, -1);
    }
    if (step != StreamMover::Step::kReaderGone) return;
    // Nobody of ours may keep it open: the training has to learn that its reader left.
    if (from_ >= 0) ::close(std::exchange(from_, -1));
    Tell(shared_, {.kind = HelperMessage::Kind::kStreamClosed, .value = static_cast<int>(index_)});
    reader_gone_ = true;
  }

  void TakeSignals() {
    signalfd_siginfo info{};
    while (::read(shared_.signals, &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
      Tell(shared_, SeenSignal(info));
    }
  }

  void Answer() {
    if (std::exchange(answered_, true)) return;
    if (shared_.drained.fetch_add(1) + 1 < shared_.streams.size()) return;
    Tell(shared_, {.kind = HelperMessage::Kind::kDrained, .value = 0});
  }

  Shared& shared_;
  const size_t index_;
  int from_;
  const int to_;
  StreamMover mover_;
  bool training_ended_ = false;
  bool answered_ = false;
  bool reader_gone_ = false;
};

}  // namespace

void CopyWindowSizes(const std::vector<RelayStream>& streams) {
  for (const RelayStream& stream : streams) {
    winsize size{};
    if (::ioctl(stream.to, TIOCGWINSZ, &size) == 0) ::ioctl(stream.from, TIOCSWINSZ, &size);
  }
}

int RunRelay(const std::vector<RelayStream>& streams, WriteJournal* journals,
             RelayChannels channels) {
  const base::UniqueFd signals = WatchSignalsOfTheGroup();
  Shared shared{.channels = channels, .streams = streams, .signals = signals.get()};
  std::vector<std::unique_ptr<StreamRelay>> relays;
  for (size_t i = 0; i < streams.size(); ++i) {
    relays.push_back(std::make_unique<StreamRelay>(shared, i, journals[i]));
  }
  std::vector<std::thread> threads;
  try {
    for (size_t i = 1; i < relays.size(); ++i) {
      threads.emplace_back([&relays, i] { relays[i]->Run(); });
    }
  } catch (const std::system_error&) {
    return kRelayCannotRun;  // of two streams: no thread runs yet
  }
  if (!relays.empty()) relays[0]->Run();
  for (std::thread& thread : threads) thread.join();
  return kRelayAllPassedOn;
}

}  // namespace epochmeter::cli
