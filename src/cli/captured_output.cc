// SPDX-License-Identifier: Apache-2.0
#include "cli/captured_output.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <limits>
#include <string_view>

#include "cli/messages.h"
#include "model/output_events.h"

namespace epochmeter::cli {
namespace {

// Between two looks at the clock: a chatty training must not hold samples.
constexpr int kPacketsAtOnce = 64;
constexpr size_t kPacketBytes = sizeof(CaptureHeader) + kCaptureBytes;

}  // namespace

void CapturedOutput::ClientSink::Write(const model::Record& record) {
  sink_.Write(record);
  const auto* event = std::get_if<model::Event>(&record);
  if (event == nullptr || !model::IsProgress(event->kind)) return;
  if (output_.progress_) output_.progress_->LeaveToClient();
}

CapturedOutput::CapturedOutput(model::Registry& registry, model::Sink& sink, const model::Env& env,
                               const Options& options)
    : client_sink_(sink, *this), fd_(options.fd), text_(sink) {
  if (options.progress && fd_ >= 0) progress_.emplace(registry, sink, env, options.resumed);
}

void CapturedOutput::Take() {
  char buffer[kPacketBytes];
  for (int i = 0; i < kPacketsAtOnce && fd_ >= 0; ++i) {
    const ssize_t n = ::recv(fd_, buffer, sizeof buffer, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n <= 0) fd_ = -1;  // nobody sends any more
    if (n <= 0) return;
    const std::string_view packet(buffer, static_cast<size_t>(n));
    const std::optional<CaptureHeader> header = text_.TakePacket(packet);
    if (header && progress_) progress_->Take(*header, packet.substr(sizeof(CaptureHeader)));
  }
}

int64_t CapturedOutput::NextDueNs() const {
  return progress_ ? progress_->NextDueNs() : std::numeric_limits<int64_t>::max();
}

void CapturedOutput::Maintain(int64_t now_ns) {
  if (progress_) progress_->Maintain(now_ns);
}

void CapturedOutput::Finish(const model::RunEnd& end, int64_t now_ns) {
  if (progress_) progress_->Finish(end.exit_code == 0, now_ns);
  text_.Finish(now_ns);
}

}  // namespace epochmeter::cli
