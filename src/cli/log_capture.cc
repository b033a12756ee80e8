// SPDX-License-Identifier: Apache-2.0
#include "cli/log_capture.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/clock.h"
#include "model/limits.h"

namespace epochmeter::cli {
namespace {
constexpr int64_t kTellPeriodNs = 10 * base::kNsPerSecond;
}  // namespace

bool LogCapture::Admit(int64_t t_ns, size_t bytes) {
  if (last_ns_ > 0 && t_ns > last_ns_) {
    budget_ += base::SecondsFromNs(t_ns - last_ns_) * kBytesPerSecond;
    budget_ = std::min(budget_, kBurstBytes);
  }
  last_ns_ = std::max(last_ns_, t_ns);
  if (static_cast<double>(bytes) > budget_) return false;
  budget_ -= static_cast<double>(bytes);
  return true;
}

std::optional<CaptureHeader> LogCapture::TakePacket(std::string_view packet) {
  CaptureHeader header;
  if (packet.size() < sizeof header) return {};
  std::memcpy(&header, packet.data(), sizeof header);
  // No clock shows such a time; what was printed counts all the same.
  if (!model::IsPossibleTime(header.t_ns)) header.t_ns = last_ns_;
  Take(header, packet.substr(sizeof header));
  return header;
}

void LogCapture::Take(const CaptureHeader& header, std::string_view bytes) {
  copies_dropped_bytes_ += header.dropped_bytes;
  not_written_bytes_ += header.not_written_bytes;
  if (Admit(header.t_ns, bytes.size())) {
    sink_.Write(model::LogText{.t_ns = header.t_ns,
                               .stream = static_cast<uint8_t>(header.stream),
                               .text = std::string(bytes)});
  } else {
    thinned_bytes_ += bytes.size();
  }
  TellLosses(header.t_ns, false);
}

void LogCapture::TellLosses(int64_t t_ns, bool at_end) {
  if (!at_end && t_ns - told_ns_ < kTellPeriodNs) return;
  const auto tell = [&](uint64_t& count, model::LossSeverity severity, const char* kind,
                        const char* detail, const char* help) {
    if (count == 0) return;
    sink_.Write(model::Loss{.t_ns = t_ns,
                            .severity = severity,
                            .kind = kind,
                            .count = std::exchange(count, 0),
                            .detail = detail,
                            .help = help});
  };
  tell(thinned_bytes_, model::LossSeverity::kInfo, "log.thinned",
       "bytes of output not kept in the run file",
       "The training printed more than 4 KiB/s for long; the output itself was passed on whole.");
  tell(copies_dropped_bytes_, model::LossSeverity::kDataLoss, "log.copy_dropped",
       "bytes of output whose copy found the recorder busy",
       "The output itself was passed on whole.");
  tell(not_written_bytes_, model::LossSeverity::kError, "output.not_written",
       "bytes of output that their destination refused", "Is the disk of the log file full?");
  told_ns_ = t_ns;
}

void LogCapture::Finish(int64_t now_ns) { TellLosses(now_ns, true); }

}  // namespace epochmeter::cli
