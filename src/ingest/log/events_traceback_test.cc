// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "ingest/log/events_test_util.h"

namespace epochmeter::ingest::log {
namespace {

constexpr char kStack[] =
    "Traceback (most recent call last):\n"
    "  File \"/x/train.py\", line 71, in <module>\n"
    "    main()\n"
    "  File \"/x/data.py\", line 9, in load\n"
    "    return table[key]\n";

void Train(EventsOf* events, uint64_t line) {
  LogRecord record;
  record.place.line = line;
  events->reader().Record(record);
}

void Feed(EventsOf* events, uint64_t first, const std::string& text) {
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) events->Line(first++, line);
}

TEST(Traceback, TellsWhatEndedItAndWhere) {
  const EventsOf events(std::string(kStack) + "KeyError: 'seven'\nstep 8\n");
  EXPECT_EQ(events.Kinds(), "traceback@1");
  const LogEvent& traceback = events.First("traceback");
  EXPECT_EQ(traceback.last_line, 6U);
  EXPECT_EQ(FindText(traceback, "type"), "KeyError");
  EXPECT_EQ(FindText(traceback, "message"), "'seven'");
  EXPECT_EQ(FindText(traceback, "at"), "/x/data.py:9");
  EXPECT_EQ(FindText(traceback, "function"), "load");
  EXPECT_EQ(FindInt(traceback, "frames"), 2);
}

TEST(Traceback, ThatEndsATrainingUnderWayIsAnExceptionToo) {
  EventsOf events;
  Train(&events, 3);
  Feed(&events, 10, std::string(kStack) + "KeyError: 'seven'\n");
  events.reader().Finish();
  EXPECT_EQ(events.Kinds(), "traceback@10 exception@15");
}

TEST(Traceback, IsAnExceptionOnceARecordBeforeItIsKnown) {
  EventsOf events;
  Feed(&events, 10, std::string(kStack) + "KeyError: 'seven'\n");
  events.reader().Finish();
  EXPECT_EQ(events.Kinds(), "traceback@10");
  Train(&events, 90);
  EXPECT_EQ(events.Kinds(), "traceback@10");
  Train(&events, 3);
  EXPECT_EQ(events.Kinds(), "traceback@10 exception@15");
}

TEST(Traceback, IsNoExceptionWhenAnotherKindTellsIt) {
  for (const char* end :
       {"KeyboardInterrupt\n", "RuntimeError: CUDA error: out of memory\n", "SystemExit: 1\n",
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n",
        "OSError: [Errno 28] No space left on device\n"}) {
    EventsOf events;
    Train(&events, 3);
    Feed(&events, 10, std::string(kStack) + end);
    events.reader().Finish();
    EXPECT_TRUE(events.First("exception").kind.empty()) << end;
  }
}

TEST(Traceback, ThatALoggerReportedIsNoException) {
  EventsOf events;
  Train(&events, 3);
  Feed(&events, 10,
       ", error happened with msg: Traceback (most recent call last):\n"
       "  File \"d.py\", line 3, in f\n    g()\nException: a.jpg does not exist!\n");
  events.reader().Finish();
  EXPECT_EQ(events.Kinds(), "traceback@10");
  EXPECT_EQ(FindInt(events.First("traceback"), "logged"), 1);
}

TEST(Traceback, IsReadBehindAPrefixOfEachLine) {
  const EventsOf events(
      "worker 7| Traceback (most recent call last):\n"
      "worker 7|   File \"d.py\", line 3, in f\n"
      "worker 7|     g()\n"
      "worker 7| ValueError: bad\n");
  EXPECT_EQ(FindText(events.First("traceback"), "type"), "ValueError");
  EXPECT_FALSE(FindInt(events.First("traceback"), "logged"));
}

TEST(Traceback, OfAChainNamesTheOneBefore) {
  const EventsOf events(
      "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\nKeyError: 1\n\n"
      "The above exception was the direct cause of the following exception:\n\n"
      "Traceback (most recent call last):\n  File \"b.py\", line 2, in g\nValueError: no key\n");
  ASSERT_EQ(events.Kinds(), "traceback@1 traceback@7");
  EXPECT_EQ(FindText(events.all[1], "chained"), "cause");
  EXPECT_EQ(FindInt(events.all[1], "chained_to_line"), 1);
}

TEST(Traceback, LinesOfOtherRanksInsideItAreTheirs) {
  const EventsOf events(
      "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\n"
      "step 7 loss 0.1\n    f()\nKilled\nValueError: no\n");
  EXPECT_EQ(events.Kinds(), "traceback@1 killed@5");
  EXPECT_EQ(FindText(events.First("traceback"), "type"), "ValueError");
}

TEST(Traceback, ThatBreaksOffEndsSoon) {
  std::string text = "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\n";
  for (int i = 0; i < 20; ++i) text += "step " + std::to_string(i) + "\n";
  EventsOf events;
  Feed(&events, 1, text);
  EXPECT_FALSE(events.reader().WantsNext(0));
  EXPECT_EQ(events.Kinds(), "traceback@1");
}

TEST(Traceback, BetweenEachOtherAreCountedEach) {
  const EventsOf events(
      "Traceback (most recent call last):\nTraceback (most recent call last):\n"
      "  File \"a.py\", line 1, in f\n  File \"a.py\", line 1, in f\nKeyError: 1\nKeyError: 1\n");
  EXPECT_EQ(events.Kinds(), "traceback@1 traceback@2");
}

TEST(Traceback, OfPaddleHasTheMessageOfItsSummary) {
  const EventsOf events(
      "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\n"
      "paddle.fluid.core_avx.EnforceNotMet: \n\n"
      "-------------------\nC++ Call Stacks (More useful to developers):\n-------------------\n"
      "0   paddle::f()\n1   paddle::g()\n\n------\nError Message Summary:\n------\n"
      "ResourceExhaustedError: \n\n"
      "Out of memory error on GPU 0. Cannot allocate 2.000000GB memory on GPU 0, available memory "
      "is only 1.000000GB.\n");
  EXPECT_EQ(events.Kinds(), "traceback@1 oom_gpu@16");
  EXPECT_NE(FindText(events.First("traceback"), "message").find("Out of memory error on GPU 0"),
            std::string_view::npos);
}

TEST(Traceback, OfCppIsApart) {
  EXPECT_EQ(EventsOf("C++ Traceback (most recent call last):\n0 paddle::f()\n").Kinds(),
            "cpp_traceback@1");
}

TEST(Traceback, InsideOneLineIsRead) {
  const EventsOf events(
      "error: Traceback (most recent call last):\\n  File \\\"a.py\\\", line 1\\nKeyError: 'k'\\n");
  EXPECT_EQ(FindText(events.First("traceback"), "type"), "KeyError");
  EXPECT_EQ(FindText(events.First("traceback"), "message"), "'k'");
}

TEST(Traceback, FarBehindInALineIsNone) {
  EXPECT_EQ(EventsOf(std::string(300, 'x') + "Traceback (most recent call last):").Kinds(), "");
}

}  // namespace
}  // namespace epochmeter::ingest::log
