// SPDX-License-Identifier: Apache-2.0
// Turns captured output into LogText records: thinned, so that a training that prints megabytes a
// second neither fills the run file nor slows the recorder. What was thinned away is a Loss.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "cli/messages.h"
#include "model/sink.h"

namespace epochmeter::cli {

class LogCapture {
 public:
  // Kept per second in the mean (about 350 MB a day before compression), and in one burst.
  static constexpr double kBytesPerSecond = 4 * 1024;
  static constexpr double kBurstBytes = 1024 * 1024;

  explicit LogCapture(model::Sink& sink) : sink_(sink) {}
  // One packet of the relay: a header, which is given back, and its bytes. One that is shorter than
  // a header is none.
  std::optional<CaptureHeader> TakePacket(std::string_view packet);
  void Take(const CaptureHeader& header, std::string_view bytes);
  // Writes what is pending: a loss not yet told.
  void Finish(int64_t now_ns);

 private:
  bool Admit(int64_t t_ns, size_t bytes);
  void TellLosses(int64_t t_ns, bool at_end);

  model::Sink& sink_;
  double budget_ = kBurstBytes;
  int64_t last_ns_ = 0;
  int64_t told_ns_ = 0;
  uint64_t thinned_bytes_ = 0;
  uint64_t copies_dropped_bytes_ = 0;
  uint64_t not_written_bytes_ = 0;
};

}  // namespace epochmeter::cli
