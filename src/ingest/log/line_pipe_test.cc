// SPDX-License-Identifier: Apache-2.0
#include "ingest/log/line_pipe.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ingest/log/engine.h"

namespace epochmeter::ingest::log {
namespace {

class Kept : public LineSink {
 public:
  void OnLine(const Payload& payload, const Skeleton& skeleton) override {
    texts.emplace_back(payload.text);
    sources.emplace_back(payload.source);
    lines.push_back(payload.line);
    std::string places;
    for (uint32_t i = 0; i < skeleton.numbers; ++i) {
      places += std::to_string(skeleton.begin[i]) + ' ';
    }
    numbers.push_back(places);
  }
  std::vector<std::string> texts, sources, numbers;
  std::vector<uint64_t> lines;
};

void PutAll(const std::vector<std::string>& texts, const std::vector<std::string>& sources,
            LinePipe* pipe, LineSink* sink) {
  Skeleton skeleton;
  for (size_t i = 0; i < texts.size(); ++i) {
    // What is put may be gone at once.
    const std::string text = texts[i], source = sources[i];
    ReadSkeleton(text, &skeleton);
    Payload payload;
    payload.text = text;
    payload.source = source;
    payload.line = i + 1;
    pipe->Put(sink, payload, skeleton);
  }
}

TEST(LinePipe, EachLineArrivesInOrderWithItsSourceAndNumbers) {
  std::vector<std::string> texts, sources;
  for (size_t i = 0; i < 20000; ++i) {
    texts.push_back("rank " + std::to_string(i % 7) + " loss: " + std::to_string(i));
    sources.push_back(i % 3 == 0 ? "" : i % 3 == 1 ? "node-a" : "node-b");
  }
  Kept kept;
  LinePipe pipe;
  ASSERT_TRUE(pipe.running());
  PutAll(texts, sources, &pipe, &kept);
  pipe.Drain();
  EXPECT_EQ(kept.texts, texts);
  EXPECT_EQ(kept.sources, sources);
  EXPECT_EQ(kept.lines.front(), 1u);
  EXPECT_EQ(kept.lines.back(), texts.size());
  EXPECT_EQ(kept.numbers[0], "5 13 ");
}

TEST(LinePipe, ALineLongerThanABatchArrivesWhole) {
  const std::vector<std::string> texts = {"short", std::string(900'000, 'x') + " 1", "after"};
  Kept kept;
  LinePipe pipe;
  PutAll(texts, {"", "", ""}, &pipe, &kept);
  pipe.Drain();
  EXPECT_EQ(kept.texts, texts);
  EXPECT_EQ(kept.numbers[1], "900001 ");
}

TEST(LinePipe, LinesMayBePutAgainAfterADrain) {
  Kept kept;
  LinePipe pipe;
  for (size_t round = 1; round <= 3; ++round) {
    PutAll({"a 1", "b 2"}, {"", ""}, &pipe, &kept);
    pipe.Drain();
    EXPECT_EQ(kept.texts.size(), 2 * round);
  }
}

// All that a sink gets, as text.
class Told : public LogSink {
 public:
  void OnRecord(const LogRecord& record) override {
    text += std::to_string(record.place.line) + ' ' + std::string(record.stamp) + ' ' +
            std::to_string(record.place.wall_ns.value_or(-1)) + ' ' + std::string(record.text);
    for (const LogValue& value : record.values) {
      text += '|' + std::string(value.key) + '=' + std::string(value.text);
    }
    text += '\n';
  }
  void OnEvent(const LogEvent& event) override {
    text += std::to_string(event.place.line) + ' ' + event.kind + ' ' + event.text + '\n';
  }
  std::string text;
};

std::string Read(const std::string& log, size_t piece, unsigned threads) {
  Told told;
  LogEngine engine(told, {.threads = threads});
  const uint32_t first = engine.Open({.name = "a", .modified_ns = 1'700'000'000'000'000'000});
  const uint32_t second = engine.Open({.name = "b", .modified_ns = 1'700'000'000'000'000'000});
  for (size_t at = 0; at < log.size(); at += piece) {
    engine.Feed(first, std::string_view(log).substr(at, piece), 1'600'000'000 + int64_t(at));
    engine.Feed(second, std::string_view(log).substr(at, piece));
  }
  engine.Close(first);
  engine.Finish();
  return told.text + std::to_string(engine.counts().records) + '/' +
         std::to_string(engine.counts().lines);
}

TEST(LinePipe, TheEngineTellsTheSameWithAnyNumberOfThreads) {
  std::string log;
  for (int i = 0; i < 3000; ++i) {
    const std::string n = std::to_string(i);
    log += "[rank" + std::to_string(i % 2) + "]: 2026-03-0" + std::to_string(1 + i % 9) +
           " 10:11:12 INFO step " + n + "/3000 loss: 0." + n + " time: 0.5 s\n";
    if (i % 500 == 7) {
      log += "Traceback (most recent call last):\n  File \"a.py\", line " + n +
             ", in main\nValueError: bad " + n + "\n";
    }
    if (i % 100 == 0) log += " 50%|#####     | " + n + "/3000\r";
  }
  const std::string one = Read(log, 1000, 1);
  EXPECT_NE(one.find("loss=0.2999"), std::string::npos);
  EXPECT_NE(one.find("traceback"), std::string::npos);
  EXPECT_EQ(one, Read(log, 1000, 2));
  EXPECT_EQ(one, Read(log, 1000, 3));
}

}  // namespace
}  // namespace epochmeter::ingest::log
