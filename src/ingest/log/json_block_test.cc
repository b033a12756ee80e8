// SPDX-License-Identifier: Apache-2.0
#include "ingest/log/json_block.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "base/strings.h"

namespace epochmeter::ingest::log {
namespace {

class Lines : public PayloadSink {
 public:
  void OnPayload(const Payload& payload) override {
    lines.emplace_back(payload.line, std::string(payload.text));
  }
  std::vector<std::pair<uint64_t, std::string>> lines;
};

std::vector<std::pair<uint64_t, std::string>> Read(std::string_view text) {
  Lines lines;
  JsonBlock block(lines);
  uint64_t number = 0;
  for (const std::string_view line : base::Split(text, '\n')) {
    block.OnPayload({.text = line, .line = ++number});
  }
  block.Flush();
  return lines.lines;
}

using Pairs = std::vector<std::pair<uint64_t, std::string>>;

TEST(JsonBlock, MakesOneLineOfEachInnermostObject) {
  const Pairs lines = Read(
      "{\n  \"best\": null,\n  \"log_history\": [\n    {\n      \"epoch\": 0.5,\n"
      "      \"loss\": 1.25,\n      \"step\": 10\n    },\n    {\n      \"loss\": 1.5,\n"
      "      \"epoch\": 1\n    }\n  ]\n}");
  const Pairs wanted = {{1, "{"},
                        {2, "  \"best\": null,"},
                        {3, "  \"log_history\": ["},
                        {7, "{ \"epoch\": 0.5, \"loss\": 1.25, \"step\": 10 }"},
                        {11, "{ \"loss\": 1.5, \"epoch\": 1 }"},
                        {13, "  ]"},
                        {14, "}"}};
  EXPECT_EQ(lines, wanted);
}

TEST(JsonBlock, PassesOnWhatIsNoObject) {
  const Pairs lines = Read("loss 0.5 {\n{\nint main() {\n\"a\": 1\n{\n\"a\": 1");
  ASSERT_EQ(lines.size(), 6U);
  for (uint64_t i = 0; i < 6; ++i) EXPECT_EQ(lines[i].first, i + 1);
}

TEST(JsonBlock, IsBounded) {
  std::string text = "{";
  for (int i = 0; i < 1000; ++i) text += "\n\"a\": 1,";
  EXPECT_EQ(Read(text + "\n}").size(), 1002U);
}

}  // namespace
}  // namespace epochmeter::ingest::log
