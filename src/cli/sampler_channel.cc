// SPDX-License-Identifier: Apache-2.0
#include "cli/sampler_channel.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstring>
#include <utility>
#include <variant>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/crc32c.h"
#include "runfile/record_codec.h"

namespace epochmeter::cli {
namespace {

// A packet must fit the socket buffer (about 200 KiB); a record of ours is far below.
constexpr size_t kPacketBytes = 60 * 1024;

// One packet; false when it was not sent, with errno.
bool SendPacket(int channel, std::string_view records) {
  uint32_t crc = base::Crc32c(0, records);
  iovec parts[2] = {{.iov_base = &crc, .iov_len = sizeof crc},
                    {.iov_base = const_cast<char*>(records.data()), .iov_len = records.size()}};
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = 2;
  return ::sendmsg(channel, &message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}

}  // namespace

void ChannelSink::Write(const model::Record& record) {
  base::ByteWriter bytes;
  runfile::EncodeRecord(record, bytes);
  const bool definition = !std::holds_alternative<model::Samples>(record);
  if (!definition && waiting_.size() > kPacketBytes) {
    ++dropped_;
    return;
  }
  if (waiting_.size() + bytes.size() > kPacketBytes && packet_end_ != waiting_.size()) Cut();
  waiting_ += bytes.bytes();
}

bool ChannelSink::Send() {
  Cut();
  while (!packets_.empty()) {
    if (!SendPacket(channel_, std::string_view(waiting_).substr(0, packets_.front()))) {
      return errno == EAGAIN || errno == EINTR || errno == ENOBUFS;
    }
    waiting_.erase(0, packets_.front());
    packet_end_ -= packets_.front();
    packets_.erase(packets_.begin());
  }
  ReportDrops();
  return true;
}

void ChannelSink::Cut() {
  if (waiting_.size() > packet_end_) packets_.push_back(waiting_.size() - packet_end_);
  packet_end_ = waiting_.size();
}

void ChannelSink::ReportDrops() {
  if (dropped_ == 0) return;
  Write(model::Loss{.t_ns = base::MonotonicNs(),
                    .severity = model::LossSeverity::kDataLoss,
                    .kind = "sampler.dropped_ticks",
                    .count = std::exchange(dropped_, 0),
                    .detail = "ticks of the GPU sampler",
                    .help = "The recorder did not read for some time; is the node overloaded?"});
}

std::optional<std::string_view> OpenPacket(std::string_view packet) {
  uint32_t crc = 0;
  if (packet.size() <= sizeof crc) return std::nullopt;
  std::memcpy(&crc, packet.data(), sizeof crc);
  const std::string_view records = packet.substr(sizeof crc);
  if (base::Crc32c(0, records) != crc) return std::nullopt;
  return records;
}

}  // namespace epochmeter::cli
