// SPDX-License-Identifier: Apache-2.0
#include "cli/event_intake.h"

#include <iterator>
#include <utility>

#include "base/clock.h"
#include "cli/predecessor.h"

namespace epochmeter::cli {

// The words are read before anything is received.
EventIntake::EventIntake(RecorderWords* words)
    : words_(words), lost_before_(words == nullptr ? 0 : TakeLostEvents(*words)) {}

base::Result<std::unique_ptr<EventIntake>> EventIntake::Start(int socket_fd, RecorderWords* words) {
  std::unique_ptr<EventIntake> intake(new EventIntake(words));
  EPM_ASSIGN(intake->receiver_, EventReceiver::Start(socket_fd, words));
  return intake;
}

void EventIntake::Begin(model::Registry& registry, model::Sink& sink,
                        ingest::ProtocolDecoder::Options options) {
  sink_ = &sink;
  decoder_ = std::make_unique<ingest::ProtocolDecoder>(registry, sink, options);
  if (lost_before_ > 0) TellLostEvents(lost_before_, base::MonotonicNs(), sink);
}

void EventIntake::Take(int64_t until_ns) {
  if (backlog_.empty()) backlog_ = receiver_->Take(&dropped_);
  Decode(until_ns);
}

void EventIntake::Decode(int64_t until_ns) {
  const int64_t now_ns = base::MonotonicNs();
  size_t taken = 0;
  for (const Datagram& datagram : backlog_) {
    if (taken % 64 == 63 && base::MonotonicNs() > until_ns) break;
    ++taken;
    const std::optional<int32_t> sender =
        datagram.pid > 0 ? std::optional<int32_t>(datagram.pid) : std::nullopt;
    decoder_->Decode(datagram.bytes, now_ns, sender);
  }
  backlog_.erase(backlog_.begin(), backlog_.begin() + static_cast<std::ptrdiff_t>(taken));
  decoder_->Flush(now_ns);
  if (words_ != nullptr) words_->events_decoded += taken;
}

// A flood may end with us, so it is not left to the end.
void EventIntake::TellDropped(int64_t now_ns) {
  if (now_ns - told_ns_ >= base::kNsPerSecond) TellFresh(now_ns);
}

void EventIntake::TellFresh(int64_t now_ns) {
  const uint64_t fresh = dropped_ - std::exchange(told_, dropped_);
  if (fresh == 0) return;
  told_ns_ = now_ns;
  sink_->Write(model::Loss{.t_ns = now_ns,
                           .severity = model::LossSeverity::kDataLoss,
                           .kind = "recorder.events_dropped",
                           .count = fresh,
                           .detail = "client events that came faster than they could be taken",
                           .help = "Send fewer events, or give the recorder a core."});
}

void EventIntake::Drain(int64_t until_ns) {
  Decode(until_ns);
  std::vector<Datagram> last = receiver_->Drain(until_ns, &dropped_);
  std::move(last.begin(), last.end(), std::back_inserter(backlog_));
  Decode(until_ns);
  dropped_ += backlog_.size();
}

void EventIntake::Finish(int64_t now_ns) {
  decoder_->Flush(now_ns, true);
  TellFresh(now_ns);
}

}  // namespace epochmeter::cli
