// SPDX-License-Identifier: Apache-2.0
#include "cli/log_capture.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"

namespace epochmeter::cli {
namespace {
constexpr int64_t kTellPeriodNs = 10 * base::kNsPerSecond;
}  // namespace

bool LogCapture::Admit(int64_t t_ns, size_t bytes) {
  if (last_ns_ > 0 && t_ns > last_ns_) {
    budget_ += base::SecondsFromNs(t_ns - last_ns_) * kBytesPerSecond;
    budget_ = std::min(budget_, 10 * kBytesPerSecond);
  }
  last_ns_ = std::max(last_ns_, t_ns);
  if (static_cast<double>(bytes) > budget_) return false;
  budget_ -= static_cast<double>(bytes);
  return true;
}

void LogCapture::Take(const CaptureHeader& header, std::string_view bytes) {
  relay_dropped_ = std::max(relay_dropped_, header.dropped_bytes);
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
  if (thinned_bytes_ > 0) {
    sink_.Write(model::Loss{.t_ns = t_ns,
                            .severity = model::LossSeverity::kInfo,
                            .kind = "log.thinned",
                            .count = std::exchange(thinned_bytes_, 0),
                            .detail = "bytes of output not kept in the run file",
                            .help = "More than 64 KiB/s was printed; the output itself was passed "
                                    "on whole."});
  }
  if (relay_dropped_ > relay_dropped_told_) {
    sink_.Write(model::Loss{.t_ns = t_ns,
                            .severity = model::LossSeverity::kDataLoss,
                            .kind = "log.copy_dropped",
                            .count = relay_dropped_ - relay_dropped_told_,
                            .detail = "bytes of output whose copy found the recorder busy",
                            .help = "The output itself was passed on whole."});
    relay_dropped_told_ = relay_dropped_;
  }
  told_ns_ = t_ns;
}

void LogCapture::Finish(int64_t now_ns) { TellLosses(now_ns, true); }

}  // namespace epochmeter::cli
