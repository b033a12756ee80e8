// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/crc32c.h"
#include "base/json_writer.h"
#include "base/result.h"
#include "base/strings.h"

namespace epochmeter::base {
namespace {

TEST(Crc32c, MatchesThePublishedVectors) {
  // RFC 3720 B.4: 32 zero bytes, 32 bytes of ones; and the usual check string.
  EXPECT_EQ(Crc32c(0, std::string(32, '\0')), 0x8A9136AAU);
  EXPECT_EQ(Crc32c(0, std::string(32, '\xFF')), 0x62A8AB43U);
  EXPECT_EQ(Crc32c(0, "123456789"), 0xE3069283U);
}

TEST(Crc32c, IsTheSameWithAndWithoutTheInstruction) {
  std::string bytes;
  for (int i = 0; i < 300; ++i) {
    EXPECT_EQ(Crc32c(7, bytes), Crc32cByTables(7, bytes)) << bytes.size();
    bytes.push_back(static_cast<char>(i * i + 17 * i));
  }
  EXPECT_EQ(Crc32cByTables(0, "123456789"), 0xE3069283U);
}

TEST(Crc32c, ContinuesOverParts) {
  EXPECT_EQ(Crc32c(Crc32c(0, "12345"), "6789"), Crc32c(0, "123456789"));
}

TEST(Bytes, ReadBackWhatWasWritten) {
  ByteWriter writer;
  writer.Varint(0);
  writer.Varint(UINT64_MAX);
  writer.Signed(INT64_MIN);
  writer.Signed(-1);
  writer.F64(0.1);
  writer.Text("abc");
  ByteReader reader(writer.bytes());
  uint64_t zero = 1, most = 0;
  int64_t least = 0, minus = 0;
  double tenth = 0;
  std::string text;
  ASSERT_TRUE(reader.Varint(&zero) && reader.Varint(&most) && reader.Signed(&least) &&
              reader.Signed(&minus) && reader.F64(&tenth) && reader.Text(&text));
  EXPECT_EQ(zero, 0U);
  EXPECT_EQ(most, UINT64_MAX);
  EXPECT_EQ(least, INT64_MIN);
  EXPECT_EQ(minus, -1);
  EXPECT_EQ(tenth, 0.1);
  EXPECT_EQ(text, "abc");
  EXPECT_TRUE(reader.done());
}

TEST(Bytes, NeverReadPastTheEnd) {
  ByteWriter writer;
  writer.Varint(300);
  writer.Text("hello");
  for (size_t cut = 0; cut < writer.size(); ++cut) {
    ByteReader reader(std::string_view(writer.bytes()).substr(0, cut));
    uint64_t number = 0;
    std::string text;
    EXPECT_FALSE(reader.Varint(&number) && reader.Text(&text)) << cut;
  }
  uint64_t number = 0;
  EXPECT_FALSE(ByteReader(std::string(11, '\xFF')).Varint(&number));
}

TEST(Json, WritesNestedValuesAndNeverInventsNumbers) {
  JsonWriter json;
  json.BeginObject().Field("a", 1).Field("b", std::nan("")).Field("c", "x\"\n\xFF");
  json.Key("d").BeginArray().Double(0.1).Double(1e300).Bool(true).EndArray();
  json.Field("e", std::optional<double>()).EndObject();
  EXPECT_EQ(
      json.text(),
      "{\"a\":1,\"b\":null,\"c\":\"x\\\"\\n\xEF\xBF\xBD\",\"d\":[0.1,1e+300,true],\"e\":null}");
}

TEST(Strings, ParseWholeNumbersOnly) {
  EXPECT_EQ(ParseInt("-12"), -12);
  EXPECT_FALSE(ParseInt("12x"));
  EXPECT_FALSE(ParseInt(""));
  EXPECT_FALSE(ParseInt("99999999999999999999"));
  EXPECT_EQ(ParseUint("ff", 16), 255U);
  EXPECT_EQ(ParseDurationSeconds("500ms"), 0.5);
  EXPECT_EQ(ParseDurationSeconds("2 min"), 120.0);
  EXPECT_EQ(ParseDurationSeconds("3"), 3.0);
  EXPECT_FALSE(ParseDurationSeconds("5 parsecs"));
}

TEST(Strings, SuggestsTheNearestWord) {
  EXPECT_EQ(NearestWord("reprot", {"run", "report", "export"}), "report");
  EXPECT_FALSE(NearestWord("zzzzzz", {"run", "report"}));
}

TEST(Clock, FormatsUtcAlsoBefore1970) {
  EXPECT_EQ(FormatUtc(1796021074731484433), "2026-11-30T06:44:34.731Z");
  EXPECT_EQ(FormatUtc(-1), "1969-12-31T23:59:59.999Z");
  EXPECT_EQ(FormatUtcCompact(1796021074731484433), "20261130T064434Z");
}

TEST(Clock, FormatsDurationsForPeople) {
  EXPECT_EQ(FormatDuration(0.0042), "4.2 ms");
  EXPECT_EQ(FormatDuration(4.123), "4.12 s");
  EXPECT_EQ(FormatDuration(252), "4 min 12 s");
  EXPECT_EQ(FormatDuration(7380), "2 h 03 min");
  EXPECT_EQ(FormatDuration(1e19), "1e+19 s");
  EXPECT_EQ(FormatDuration(-1.2e300), "-1.2e+300 s");
}

Result<int> Half(int n) {
  if (n % 2 != 0) return Error{.what = "odd", .where = "n", .why = "", .what_to_do = "use even"};
  return n / 2;
}
Result<int> Quarter(int n) {
  EPM_ASSIGN(const int half, Half(n));
  return Half(half);
}

TEST(ResultTest, PassesErrorsUp) {
  EXPECT_EQ(Quarter(8).value(), 2);
  EXPECT_EQ(Quarter(6).error().Message(), "odd: n (use even)");
}

}  // namespace
}  // namespace epochmeter::base
