// SPDX-License-Identifier: Apache-2.0
#include "ingest/protocol.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace epochmeter::ingest {
namespace {

using model::EventKind;

// Decodes at a time that suits each datagram and keeps what comes out.
class ProtocolTest : public testing::Test {
 protected:
  const model::Event* Give(std::string_view datagram, int64_t now_ns = 1'000'000,
                           std::optional<int32_t> pid = std::nullopt) {
    return decoder_.Decode(datagram, now_ns, pid);
  }
  const model::Event* Mark(int64_t pid, int64_t seq, int64_t dropped, int64_t now_ns) {
    return Give(R"({"v":1,"kind":"mark","name":"m","t_ns":5,"pid":)" + std::to_string(pid) +
                    R"(,"seq":)" + std::to_string(seq) + R"(,"dropped":)" +
                    std::to_string(dropped) + "}",
                now_ns);
  }
  uint64_t Lost(std::string_view kind) {
    uint64_t count = 0;
    for (const auto& record : sink_.records) {
      const auto* loss = std::get_if<model::Loss>(&record);
      if (loss && loss->kind == kind) count += loss->count;
    }
    return count;
  }
  template <typename T>
  std::vector<T> Records() const {
    std::vector<T> found;
    for (const auto& record : sink_.records) {
      if (const T* typed = std::get_if<T>(&record)) found.push_back(*typed);
    }
    return found;
  }

  model::MemorySink sink_;
  model::Registry registry_{sink_};
  ProtocolDecoder decoder_{registry_, sink_};
};

TEST_F(ProtocolTest, StepBecomesOneEventAndAllocatorSamples) {
  ASSERT_NE(Give(R"({"v":1,"kind":"step","t_ns":9000,"pid":42,"seq":0,"rank":3,"step":7,"epoch":1,
    "duration_s":0.5,"scalars":{"loss":"NaN"},"memory":{"device":"gpu:0","framework":"torch",
    "allocated_bytes":11,"max_reserved_bytes":22}})"),
            nullptr);
  const auto events = Records<model::Event>();
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].kind, EventKind::kStep);
  EXPECT_EQ(events[0].rank, 3);
  EXPECT_EQ(events[0].step, 7);
  EXPECT_EQ(events[0].Number("duration_s"), 0.5);
  EXPECT_TRUE(std::isnan(events[0].Number("scalar.loss").value()));
  EXPECT_FALSE(events[0].Number("pid")) << "the rank says who it was";
  const auto samples = Records<model::Samples>();
  ASSERT_EQ(samples.size(), 1U);
  EXPECT_EQ(samples[0].t_ns, 9000);
  ASSERT_EQ(samples[0].values.size(), 2U);
  const auto& series = registry_.series(samples[0].values[1].series);
  EXPECT_EQ(series.metric.field, "max_reserved_bytes");
  EXPECT_EQ(series.metric.kind, model::MetricKind::kPeak);
  EXPECT_EQ(series.period_ns, 0);
  EXPECT_EQ(samples[0].values[1].value, 22);
  const auto& entity = registry_.entity(series.entity);
  EXPECT_EQ(entity.name, "rank:3");
  EXPECT_EQ(entity.scope, model::Scope::kRank);
  EXPECT_EQ(entity.labels, (model::Labels{{"rank", "3"}}));
}

TEST_F(ProtocolTest, FailureTellsWhereInTheTrainingItWas) {
  const char* const kPlace = R"(,"type":"ValueError","message":"boom","epoch":2,"step":17})";
  for (const char* kind : {"train_end", "exception"}) {
    const std::string text = R"({"v":1,"t_ns":9000,"pid":42,"seq":0,"kind":")";
    const model::Event* event = Give(text + kind + '"' + kPlace);
    ASSERT_NE(event, nullptr) << kind;
    EXPECT_EQ(event->epoch, 2) << kind;
    EXPECT_EQ(event->step, 17) << kind;
  }
}

TEST_F(ProtocolTest, TwoDevicesOfOneRankNeverShareASeries) {
  for (const char* device : {"gpu:0", "gpu:1", "gpu:0"}) {
    Give(R"({"v":1,"kind":"memory","t_ns":1,"pid":4,"seq":0,"rank":0,"framework":"torch",
      "allocated_bytes":5,"device":")" +
         std::string(device) + "\"}");
  }
  const auto samples = Records<model::Samples>();
  ASSERT_EQ(samples.size(), 3U);
  EXPECT_NE(samples[0].values[0].series, samples[1].values[0].series);
  EXPECT_EQ(samples[0].values[0].series, samples[2].values[0].series);
}

TEST_F(ProtocolTest, WithoutRankTheKernelsPidNamesTheSender) {
  Give(R"({"v":1,"kind":"memory","t_ns":1,"pid":4,"seq":0,"framework":"torch","ooms":1})", 5, 777);
  EXPECT_EQ(registry_.entities().at(0).name, "pid:777");
  EXPECT_EQ(Records<model::Event>().at(0).Number("pid"), 777);
}

TEST_F(ProtocolTest, DropsAreToldOnceByTheirRise) {
  Mark(42, 0, 0, 0);
  Mark(42, 1, 0, 0);
  Mark(42, 5, 3, 2'000'000'000);  // 2, 3, 4 were dropped
  Mark(42, 6, 3, 4'000'000'000);
  EXPECT_EQ(Lost("client.dropped"), 3U);
  EXPECT_EQ(Lost("client.sequence_gap"), 0U) << "the drops explain the gap";
}

TEST_F(ProtocolTest, GapBeyondTheDropsIsALossOfItsOwn) {
  Mark(42, 0, 0, 0);
  Mark(42, 9, 2, 0);
  EXPECT_EQ(Lost("client.dropped"), 2U);
  EXPECT_EQ(Lost("client.sequence_gap"), 6U);
}

TEST_F(ProtocolTest, SequenceFromZeroIsANewSender) {
  Mark(42, 8, 0, 0);
  Mark(42, 0, 0, 0);
  Mark(42, 1, 0, 0);
  Mark(43, 5, 0, 0);
  EXPECT_EQ(Lost("client.sequence_gap"), 0U) << "what came before us is not known to be lost";
}

TEST_F(ProtocolTest, StormOfGarbageIsOneLossASecondAndReason) {
  for (int i = 0; i < 5000; ++i) {
    EXPECT_EQ(Give("garbage", i * 1'000'000LL), nullptr);  // 1 ms apart: 5 s
    Give("[]", i * 1'000'000LL);
  }
  decoder_.Flush(5'000'000'000, true);
  EXPECT_EQ(Lost("client.not_json"), 5000U);
  EXPECT_EQ(Lost("client.not_object"), 5000U);
  EXPECT_LE(Records<model::Loss>().size(), 12U);
  EXPECT_EQ(decoder_.refused(), 10000U);
  for (const auto& loss : Records<model::Loss>()) EXPECT_FALSE(loss.help.empty());
}

TEST_F(ProtocolTest, TimeThatCannotBeIsReplacedByTheArrival) {
  const auto* event =
      Give(R"({"v":1,"kind":"mark","t_ns":9223372036854775807,"pid":42,"seq":7,"name":"a"})", 1000);
  ASSERT_NE(event, nullptr);
  EXPECT_EQ(event->t_ns, 1000);
  EXPECT_EQ(Lost("client.clock"), 1U);
}

TEST_F(ProtocolTest, NumbersBeyondSixtyFourBitsCostTheirFieldOnly) {
  const auto* event =
      Give(R"({"v":1,"kind":"step","t_ns":1,"pid":42,"seq":7,"step":1,"epoch":1e999,)"
           R"("duration_s":1e400,"scalars":{"a":123456789012345678901234,"b":-1e400,"c":1e-400}})");
  ASSERT_NE(event, nullptr);
  EXPECT_FALSE(event->epoch);
  EXPECT_FALSE(event->Number("duration_s"));
  EXPECT_EQ(event->Number("scalar.a"), 123456789012345678901234.0);
  EXPECT_FALSE(event->Number("scalar.b"));
  EXPECT_EQ(event->Number("scalar.c"), 0);
  EXPECT_EQ(decoder_.last_bad_fields(), 3U);
}

TEST_F(ProtocolTest, HalfSurrogatesAreNotJsonWhereverTheyStand) {
  const auto with = [this](const std::string& escape) {
    return Give(R"({"v":1,"kind":"mark","t_ns":1,"pid":42,"seq":7,"name":"a)" + escape + "\"}");
  };
  EXPECT_EQ(with(R"(\udc00)"), nullptr);
  EXPECT_EQ(with(R"(\ud83d\ud83d)"), nullptr);
  EXPECT_EQ(with(R"(\ud83dx)"), nullptr);
  EXPECT_NE(with(R"(\\ud83d)"), nullptr) << "an escaped backslash starts no escape";
  EXPECT_NE(with(R"(\ud83d\ude00)"), nullptr);
}

}  // namespace
}  // namespace epochmeter::ingest
