// SPDX-License-Identifier: Apache-2.0
#include "cli/sampler_channel.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include "base/bytes.h"
#include "cli/helper_process.h"
#include "cli/sampler_child.h"
#include "cli/sampler_records.h"
#include "runfile/record_codec.h"

namespace epochmeter::cli {
namespace {

// One packet with these records.
std::string PacketOf(const std::vector<model::Record>& records) {
  base::Result<SocketPair> pair = MakeSocketPair();
  ChannelSink sink(pair->theirs.get());
  for (const model::Record& record : records) sink.Write(record);
  EXPECT_TRUE(sink.Send());
  std::string packet(64 * 1024, '\0');
  const ssize_t n = ::recv(pair->ours.get(), packet.data(), packet.size(), MSG_DONTWAIT);
  packet.resize(n < 0 ? 0 : static_cast<size_t>(n));
  return packet;
}

// Everything that the recorder would write.
class Collected : public model::Sink {
 public:
  void Write(const model::Record& record) override { records.push_back(record); }
  std::vector<model::Record> records;
};

// What the recorder takes out of packets.
struct Reading {
  Collected out;
  model::Registry registry{out};
  SamplerRecords records{registry, out};

  Reading() { records.Restart(); }
  bool Take(std::string_view packet) {
    const auto inside = OpenPacket(packet);
    return inside && records.Take(*inside);
  }
};

model::Loss SomeLoss(uint64_t count) {
  return {.t_ns = 6, .kind = "k", .count = count, .detail = "d", .help = "h"};
}

TEST(SamplerChannel, GivesTheRecordsOfAPacketBack) {
  Reading reading;
  EXPECT_TRUE(reading.Take(PacketOf({SomeLoss(3), SomeLoss(4)})));
  EXPECT_EQ(reading.out.records, (std::vector<model::Record>{SomeLoss(3), SomeLoss(4)}));
}

TEST(SamplerChannel, TakesNothingOutOfAPacketWithOneWrongBit) {
  const std::string packet = PacketOf({SomeLoss(3)});
  ASSERT_GT(packet.size(), 8U);
  for (size_t bit = 0; bit < 8 * packet.size(); ++bit) {
    std::string wrong = packet;
    wrong[bit / 8] = static_cast<char>(wrong[bit / 8] ^ (1 << bit % 8));
    EXPECT_FALSE(OpenPacket(wrong)) << bit;
  }
}

TEST(SamplerChannel, TakesNoCutPacketAndNoText) {
  const std::string packet = PacketOf({SomeLoss(3), SomeLoss(4)});
  for (size_t size = 0; size < packet.size(); ++size) {
    EXPECT_FALSE(OpenPacket(std::string_view(packet).substr(0, size))) << size;
  }
  EXPECT_FALSE(OpenPacket("NVRM: a library writes its log to a descriptor of ours\n"));
}

TEST(SamplerChannel, RefusesWhatOnlyTheRecorderTells) {
  Reading reading;
  EXPECT_FALSE(reading.Take(PacketOf({SomeLoss(3), model::RunEnd{.t_ns = 7}, SomeLoss(4)})));
  EXPECT_EQ(reading.out.records, (std::vector<model::Record>{SomeLoss(3), SomeLoss(4)}));
}

TEST(SamplerChannel, CountsTheTicksThatAStandingRecorderCosts) {
  base::Result<SocketPair> pair = MakeSocketPair();
  ChannelSink sink(pair->theirs.get());
  const model::Samples big{.t_ns = 1, .values = std::vector<model::SampleValue>(2000)};
  const uint64_t ticks = 400;
  for (uint64_t i = 0; i < ticks; ++i) {
    sink.Write(big);
    ASSERT_TRUE(sink.Send());
  }
  uint64_t seen = 0, lost = 0;
  std::string packet(size_t{256} * 1024, '\0');
  for (uint64_t round = 0; round < ticks; ++round) {
    const ssize_t n = ::recv(pair->ours.get(), packet.data(), packet.size(), MSG_DONTWAIT);
    if (n < 0) {
      ASSERT_TRUE(sink.Send());
    }
    const size_t size = n < 0 ? 0 : static_cast<size_t>(n);
    const auto inside = OpenPacket(std::string_view(packet).substr(0, size));
    ASSERT_EQ(inside.has_value(), n >= 0);
    base::ByteReader reader(inside.value_or(""));
    model::Record record;
    while (runfile::DecodeRecord(reader, &record) == runfile::DecodeStatus::kRecord) {
      const auto* loss = std::get_if<model::Loss>(&record);
      lost += loss != nullptr ? loss->count : 0;
      seen += loss != nullptr ? 0 : 1;
    }
  }
  EXPECT_GT(lost, 0U);
  EXPECT_EQ(seen + lost, ticks);
}

TEST(DescribeEnd, SaysHowTheProcessEnded) {
  EXPECT_EQ(DescribeEnd(11), "ended by signal 11 (Segmentation fault)");
  EXPECT_EQ(DescribeEnd(3 << 8), "ended with exit code 3");
}

}  // namespace
}  // namespace epochmeter::cli
