// SPDX-License-Identifier: Apache-2.0
#include "runfile/record_codec.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "runfile/random_records.h"

namespace epochmeter::runfile {
namespace {

TEST(RecordCodec, GivesBackEveryKindOfRecord) {
  RandomRecords random(1);
  for (int i = 0; i < 5000; ++i) {
    const model::Record record = random.Any();
    base::ByteWriter out;
    EncodeRecord(record, out);
    base::ByteReader in(out.bytes());
    model::Record back;
    ASSERT_EQ(DecodeRecord(in, &back), DecodeStatus::kRecord);
    ASSERT_EQ(back, record) << "kind " << record.index();
    ASSERT_TRUE(in.done());
  }
}

TEST(RecordCodec, KeepsEveryBitOfADouble) {
  for (const double value :
       {0.0, -0.0, 0.1, 0.8601, 1e300, 5e-324, 702.4, -3.0, 9.007199254740993e15, 1e15,
        std::numeric_limits<double>::infinity(), std::nan("7")}) {
    base::ByteWriter out;
    EncodeRecord(model::Samples{.t_ns = 1, .values = {{.series = 7, .value = value}}}, out);
    base::ByteReader in(out.bytes());
    model::Record back;
    ASSERT_EQ(DecodeRecord(in, &back), DecodeStatus::kRecord);
    EXPECT_EQ(std::bit_cast<uint64_t>(std::get<model::Samples>(back).values[0].value),
              std::bit_cast<uint64_t>(value));
  }
}

TEST(RecordCodec, AskForMoreAtEveryCutAndNeverMoves) {
  RandomRecords random(2);
  for (int i = 0; i < 100; ++i) {
    base::ByteWriter out;
    EncodeRecord(random.Any(), out);
    for (size_t size = 0; size < out.size(); ++size) {
      base::ByteReader in(std::string_view(out.bytes()).substr(0, size));
      model::Record back;
      ASSERT_EQ(DecodeRecord(in, &back), DecodeStatus::kIncomplete);
      ASSERT_EQ(in.remaining(), size);
    }
  }
}

TEST(RecordCodec, SkipsARecordOfANewerVersionAndFieldsAfterOurs) {
  base::ByteWriter out;
  out.Text(std::string("\x7Fnew", 4));
  base::ByteWriter longer;
  EncodeRecord(model::Anchor{.clocks = {.mono_ns = 1, .boot_ns = 2, .wall_ns = 3}}, longer);
  out.Text(longer.bytes().substr(1) + "more");
  base::ByteReader in(out.bytes());
  model::Record back;
  EXPECT_EQ(DecodeRecord(in, &back), DecodeStatus::kUnknown);
  ASSERT_EQ(DecodeRecord(in, &back), DecodeStatus::kRecord);
  EXPECT_EQ(std::get<model::Anchor>(back).clocks.wall_ns, 3);
  EXPECT_TRUE(in.done());
}

TEST(RecordCodec, SurvivesEveryFlippedByte) {
  RandomRecords random(3);
  for (int i = 0; i < 200; ++i) {
    base::ByteWriter out;
    EncodeRecord(random.Any(), out);
    for (size_t at = 0; at < out.size(); ++at) {
      std::string bytes = out.bytes();
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << (at % 8)));
      base::ByteReader in(bytes);
      model::Record back;
      while (DecodeRecord(in, &back) != DecodeStatus::kIncomplete && !in.done()) continue;
    }
  }
}

}  // namespace
}  // namespace epochmeter::runfile
