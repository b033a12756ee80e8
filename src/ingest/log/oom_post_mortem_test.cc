// SPDX-License-Identifier: Apache-2.0
#include "ingest/log/oom_post_mortem.h"

#include <gtest/gtest.h>

#include "ingest/log/events/event_text.h"

namespace epochmeter::ingest::log {
namespace {

void Record(OomPostMortem* post_mortem, uint64_t line, double step, double bytes) {
  const LogValue values[] = {
      {.key = "step", .text = "", .unit = "", .number = step, .value = step, .role = Role::kStep},
      {.key = "mem",
       .text = "",
       .unit = "",
       .number = bytes,
       .value = bytes,
       .role = Role::kMemory}};
  LogRecord record;
  record.place.line = line;
  record.values = values;
  post_mortem->Record(record);
}

LogEvent Explained(const OomPostMortem& post_mortem) {
  LogEvent event;
  event.kind = "oom_gpu";
  post_mortem.Explain(&event);
  return event;
}

TEST(OomPostMortem, TellsHowPrintedMemoryGrew) {
  OomPostMortem post_mortem;
  for (int i = 0; i < 1000; ++i) Record(&post_mortem, 10 + i, 50 + i, 4e9 + i * 1e7);
  const LogEvent event = Explained(post_mortem);
  EXPECT_EQ(FindText(event, "memory_growth"), "leak");
  EXPECT_GT(FindInt(event, "memory_from_bytes"), 4'000'000'000);
  EXPECT_EQ(FindInt(event, "memory_to_bytes"), 13'990'000'000);
}

TEST(OomPostMortem, TellsAJumpAtTheEndFromGrowth) {
  OomPostMortem post_mortem;
  for (int i = 0; i < 50; ++i) Record(&post_mortem, 10 + i, i, i == 49 ? 9e9 : 4e9);
  EXPECT_EQ(FindText(Explained(post_mortem), "memory_growth"), "spike");
}

TEST(OomPostMortem, MemoryThatStaysIsFlat) {
  OomPostMortem post_mortem;
  for (int i = 0; i < 50; ++i) Record(&post_mortem, 10 + i, i, 4e9 + (i % 3) * 1e6);
  EXPECT_EQ(FindText(Explained(post_mortem), "memory_growth"), "flat");
}

TEST(OomPostMortem, SaysNothingOfGrowthFromAFewRecords) {
  OomPostMortem post_mortem;
  for (int i = 0; i < 5; ++i) Record(&post_mortem, 10 + i, i, 4e9);
  EXPECT_EQ(FindText(Explained(post_mortem), "memory_growth"), "");
}

TEST(OomPostMortem, NamesTheBatchSizePrintedNearest) {
  for (const auto& [text, size] : std::vector<std::pair<std::string, int64_t>>{
           {"  batch_size: 32", 32},
           {"'batch_size': 16,", 16},
           {"python t.py --batch_size 64 --lr 1", 64},
           {"per_device_train_batch_size=8", 8},
           {"  micro_batch_size ................ 4", 4},
           {"batch_size_per_card : 12", 12},
           {"Instantaneous batch size per device = 2", 2}}) {
    OomPostMortem post_mortem;
    const LinePlace early{.file = 0, .stream = 0, .line = 3, .rank = {}, .wall_ns = {}};
    const LinePlace late{.file = 0, .stream = 0, .line = 9, .rank = {}, .wall_ns = {}};
    post_mortem.Line({early, "batch_size: 1"});
    post_mortem.Line({late, text});
    const LogEvent event = Explained(post_mortem);
    EXPECT_EQ(FindInt(event, "batch_size"), size) << text;
    EXPECT_EQ(FindInt(event, "batch_size_line"), 9) << text;
  }
}

TEST(OomPostMortem, LinesWithoutASizeNameNone) {
  OomPostMortem post_mortem;
  const LinePlace place{.file = 0, .stream = 0, .line = 3, .rank = {}, .wall_ns = {}};
  for (const char* text :
       {"batch_size: None", "def f(batch_size, x):", "batch_sizes", "batch_size"}) {
    post_mortem.Line({place, text});
  }
  EXPECT_FALSE(FindInt(Explained(post_mortem), "batch_size"));
}

TEST(OomPostMortem, AdviceFollowsFromWhatIsKnown) {
  LogEvent event;
  AddNumber(&event, "fragmented", std::optional<int64_t>(1));
  AddText(&event, "memory_growth", "leak");
  AddNumber(&event, "batch_size", std::optional<int64_t>(8));
  const auto advice = OomAdvice(event);
  ASSERT_EQ(advice.size(), 3U);
  EXPECT_NE(advice[0].en.find("fragmented"), std::string::npos);
  EXPECT_NE(advice[1].en.find("kept from step to step"), std::string::npos);
  EXPECT_NE(advice[2].en.find("smaller batch than 8"), std::string::npos);
}

}  // namespace
}  // namespace epochmeter::ingest::log
