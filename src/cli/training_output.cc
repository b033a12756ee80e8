// SPDX-License-Identifier: Apache-2.0
#include "cli/training_output.h"

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <new>
#include <utility>

namespace epochmeter::cli {

base::Result<> TrainingOutput::SetUp(WriteJournal* journals) {
  journals_ = journals;
  EPM_ASSIGN(capture_, MakeSocketPair());
  EPM_ASSIGN(control_, MakeSocketPair());
  return {};
}

base::Result<> TrainingOutput::Capture() {
  EPM_ASSIGN(plan_, PlanOutput());
  return {};
}

void TrainingOutput::GiveToTraining() const {
  if (plan_.child_stdout.valid()) ::dup2(plan_.child_stdout.get(), STDOUT_FILENO);
  if (plan_.child_stderr.valid()) ::dup2(plan_.child_stderr.get(), STDERR_FILENO);
}

void TrainingOutput::CloseTrainingsEnds() {
  plan_.child_stdout.Reset();
  plan_.child_stderr.Reset();
}

std::optional<ControlMessage> TrainingOutput::StartRelay(int64_t awake_ns) {
  if (plan_.streams.empty()) return std::nullopt;
  const int64_t now_ns = base::MonotonicNs();
  const std::optional<ControlMessage> replacement = relay_.Replacement(now_ns);
  const pid_t pid = ::fork();
  if (pid == 0) {
    std::vector<int> keep = {capture_.ours.get(), control_.theirs.get()};
    for (const RelayStream& stream : plan_.streams) {
      keep.insert(keep.end(),
                  {stream.from, stream.hand.out, stream.hand.in, stream.copy.out, stream.copy.in});
    }
    BecomeHelper(kRelayName, keep);
    HideCommandLine(kRelayName);
    ::_exit(RunRelay(plan_.streams, journals_,
                     {.capture = capture_.ours.get(), .control = control_.theirs.get()}));
  }
  relay_.Started(pid, now_ns, awake_ns);
  if (!relay_.alive()) {
    StandIn();
    return std::nullopt;
  }
  stand_in_.reset();
  return replacement;
}

void TrainingOutput::StandIn() {
  if (stand_in_) return;
  try {
    stand_in_ = std::make_unique<RelayStandIn>(plan_.streams, journals_, capture_.ours.get());
  } catch (const std::bad_alloc&) {
    // The next relay is tried soon.
  }
}

void TrainingOutput::NoteRelayEnd(int wait_status) {
  if (WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == kRelayAllPassedOn) {
    relay_.Retire();
    drained_ = true;
    return;
  }
  StandIn();
  // No time for another try: what is there has to be passed on now.
  if (ended_ && stand_in_ && WIFEXITED(wait_status)) relay_.Retire();
}

void TrainingOutput::AddPolls(std::vector<pollfd>* polls) const {
  polls->push_back({.fd = control_.ours.get(), .events = POLLIN, .revents = 0});
  if (stand_in_) stand_in_->AddPolls(polls);
}

std::vector<HelperMessage> TrainingOutput::Turn() {
  std::vector<HelperMessage> signals;
  HelperMessage message;
  while (::recv(control_.ours.get(), &message, sizeof message, MSG_DONTWAIT) ==
         static_cast<ssize_t>(sizeof message)) {
    if (message.kind == HelperMessage::Kind::kDrained) drained_ = true;
    if (message.kind == HelperMessage::Kind::kStreamClosed) {
      CloseStream(static_cast<size_t>(message.value));
    }
    if (message.kind == HelperMessage::Kind::kSignalSeen) signals.push_back(message);
  }
  if (!stand_in_) return signals;
  stand_in_->Turn();
  for (const size_t index : stand_in_->TakeClosed()) CloseStream(index);
  if (ended_ && stand_in_->drained()) drained_ = true;
  return signals;
}

// The reader of our output is gone: let the training learn it as it would without us.
void TrainingOutput::CloseStream(size_t index) {
  if (index >= plan_.streams.size()) return;
  plan_.streams[index].from = -1;
  plan_.sources[index].Reset();
}

void TrainingOutput::TrainingEnded() {
  ended_ = true;
  ::shutdown(control_.ours.get(), SHUT_WR);
}

bool TrainingOutput::AllPassedOn() const {
  return drained_ || (!relay_.alive() && !relay_.waits_for_restart() && !stand_in_);
}

void TrainingOutput::Leave() {
  for (size_t i = 0; i < plan_.streams.size(); ++i) CloseStream(i);
  relay_.Retire();
  stand_in_.reset();
}

}  // namespace epochmeter::cli
