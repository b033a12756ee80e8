// SPDX-License-Identifier: Apache-2.0
// The pipe from the sampler to the recorder: records in the codec of runfile/record_codec.h,
// several a packet, over a SOCK_SEQPACKET socket. A packet begins with the CRC-32C of the rest: a
// driver's library lives in the sampler, and what it writes to a descriptor that isn't its own is
// no record.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/sink.h"

namespace epochmeter::cli {

// The sampler's side: encodes records and sends them in packets. A full buffer means that the
// recorder stands still: samples are dropped and counted, definitions are kept until they fit.
class ChannelSink : public model::Sink {
 public:
  explicit ChannelSink(int channel) : channel_(channel) {}
  void Write(const model::Record& record) override;
  // Sends what waits, without waiting itself; false when the recorder is gone.
  bool Send();

 private:
  void Cut();
  void ReportDrops();

  int channel_;
  std::string waiting_;  // encoded, cut into packets up to packet_end_
  size_t packet_end_ = 0;
  std::vector<size_t> packets_;  // sizes, in order
  uint64_t dropped_ = 0;
};

// The recorder's side: the records of a packet, for SamplerRecords; nothing when it is not one that
// ChannelSink made.
std::optional<std::string_view> OpenPacket(std::string_view packet);

}  // namespace epochmeter::cli
