// SPDX-License-Identifier: Apache-2.0
#include "ingest/log/templates.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

namespace epochmeter::ingest::log {
namespace {

// Lines of one file, hashed as they are: every other line is a new skeleton.
class Lines {
 public:
  explicit Lines(const TemplateLimits& limits = {}) : table(limits) {}
  uint32_t Add(const std::string& text, uint32_t file = 0) {
    LinePlace place;
    place.file = file;
    place.line = ++line;
    return table.Add(std::hash<std::string>{}(text), text, place);
  }
  TemplateTable table;
  uint64_t line = 0;
};

TEST(Templates, MessagesThatDifferInValuesAreOne) {
  Lines lines;
  const uint32_t first = lines.Add("[03/08 10:00:00] ppdet WARNING: Found an invalid box: id 3");
  EXPECT_EQ(lines.Add("[03/08 10:00:01] ppdet WARNING: Found an invalid box: id 4099"), first);
  EXPECT_NE(lines.Add("[03/08 10:00:01] ppdet INFO: Start training"), first);
  const MessageTemplate& of = lines.table.templates()[first];
  EXPECT_EQ(of.text, "Found an invalid box: id *");
  EXPECT_EQ(of.example, "Found an invalid box: id 3");
  EXPECT_EQ(of.alarm, Alarm::kWarning);
  EXPECT_TRUE(of.logged);
  EXPECT_EQ(of.first_line, 1u);
  EXPECT_EQ(lines.table.counts()[first].count, 2u);
  EXPECT_EQ(lines.table.counts()[first].last_line, 2u);
}

TEST(Templates, WordsThatChangeAreMaskedToo) {
  Lines lines;
  const uint32_t first = lines.Add("worker alice of the queue is done");
  EXPECT_EQ(lines.Add("worker bob of the queue is done"), first);
  EXPECT_EQ(lines.table.templates()[first].text, "worker * of the queue is done");
  EXPECT_EQ(lines.Add("worker carol of the queue is done"), first);
  EXPECT_NE(lines.Add("worker carol has lost its way home"), first);
}

TEST(Templates, AnErrorIsNeverAPartOfAQuietTemplate) {
  Lines lines;
  const uint32_t info = lines.Add("2026-03-08 10:00:00 INFO saving the state of rank 1");
  EXPECT_NE(lines.Add("2026-03-08 10:00:00 ERROR saving the state of rank 1"), info);
}

TEST(Templates, ManyThatBeginAlikeBecomeOne) {
  Lines lines;
  for (int i = 0; i < 40; ++i) {
    std::string text =
        "ERROR: When parsing line x" + std::string(1, static_cast<char>('a' + i % 20));
    for (int word = 0; word < 3 + i % 17; ++word) {
      text += " " + std::string(static_cast<size_t>(word + i + 3), static_cast<char>('a' + word));
    }
    lines.Add(text);
  }
  const auto top = lines.table.Top(1);
  ASSERT_EQ(top.size(), 1u);
  EXPECT_EQ(lines.table.templates()[top[0]].text, "When parsing line *");
  EXPECT_EQ(lines.table.Fold()[top[0]].count, 40u);
}

TEST(Templates, CountsOverTimeKeepTheirSumWhenTheLogGrows) {
  Lines lines;
  for (int i = 0; i < 10000; ++i) lines.Add(i % 10 == 0 ? "beat" : "noise of the day");
  const uint32_t beat = lines.Add("beat");
  uint64_t sum = 0;
  for (const uint32_t bucket : lines.table.counts()[beat].buckets) sum += bucket;
  EXPECT_EQ(sum, 1001u);
  EXPECT_EQ(lines.table.counts()[beat].count, 1001u);
  EXPECT_LT(lines.table.last_line() >> lines.table.shift(), TemplateCounts::kBuckets);
}

TEST(Templates, AFloodOfTextsIsBoundedAndCounted) {
  Lines lines({.most_templates = 100, .free_lines = 5000, .most_new_ratio = 0});
  uint64_t number = 1;
  for (int i = 0; i < 20000; ++i) {
    std::string text;
    for (int word = 0; word < 6; ++word) {
      number = number * 6364136223846793005U + 1442695040888963407U;
      for (int letter = 0; letter < 6; ++letter) {
        text += static_cast<char>('a' + (number >> (20 + 6 * letter)) % 26);
      }
      text += ' ';
    }
    lines.Add(text);
  }
  EXPECT_LE(lines.table.templates().size(), 101u);
  uint64_t sum = 0;
  for (const TemplateCounts& counts : lines.table.counts()) sum += counts.count;
  EXPECT_EQ(sum, 20000u);
  EXPECT_GT(lines.table.counts()[TemplateTable::kNotClustered].count, 19000u);
  // Room for trouble is left.
  const TemplateLimits unlimited{.most_templates = 100, .free_lines = 1000000};
  Lines full(unlimited);
  for (int i = 0; i < 200; ++i) {
    full.Add(std::string(static_cast<size_t>(i + 3), static_cast<char>('a' + i % 26)) + " prose");
  }
  EXPECT_NE(full.Add("RuntimeError: it broke"), TemplateTable::kNotClustered);
}

TEST(Templates, StepsBracketALine) {
  TemplateTable table;
  for (uint64_t i = 1; i <= 20000; ++i) {
    LinePlace place;
    place.line = i * 2;
    table.NoteStep(place, static_cast<double>(i));
  }
  const auto before = table.StepBefore(0, 30001);
  const auto after = table.StepAfter(0, 30001);
  ASSERT_TRUE(before && after);
  EXPECT_LE(*before, 15000);
  EXPECT_GE(*before, 14980);
  EXPECT_GE(*after, 15001);
  EXPECT_LE(*after, 15020);
  EXPECT_FALSE(table.StepBefore(0, 1));
  EXPECT_FALSE(table.StepAfter(0, 40000));
  EXPECT_FALSE(table.StepBefore(1, 500));
}

}  // namespace
}  // namespace epochmeter::ingest::log
