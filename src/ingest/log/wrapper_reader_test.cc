// SPDX-License-Identifier: Apache-2.0
#include "ingest/log/wrapper_reader.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ingest/log/text_decoder.h"

namespace epochmeter::ingest::log {
namespace {

struct Line {
  std::string text;
  uint64_t line = 0;
  std::string source = {};
  int rank = -1;
  bool redrawn = false;
  bool operator==(const Line&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Line& line) {
  return out << line.line << " <" << line.source << "> rank " << line.rank
             << (line.redrawn ? " redrawn" : "") << " \"" << line.text << "\"";
}

class Lines : public PayloadSink {
 public:
  void OnPayload(const Payload& payload) override {
    all.push_back({std::string(payload.text), payload.line, std::string(payload.source),
                   payload.rank.value_or(-1), payload.redrawn});
    walls.push_back(payload.wall_ns.value_or(-1));
    stamps.emplace_back(payload.stamp);
  }
  std::vector<Line> all;
  std::vector<int64_t> walls;
  std::vector<std::string> stamps;
};

Lines Read(std::string_view bytes, std::optional<int32_t> file_rank = std::nullopt) {
  Lines lines;
  WrapperReader reader(lines, file_rank);
  SegmentSplitter splitter(reader);
  splitter.Feed(bytes);
  splitter.Finish();
  reader.Finish();
  return lines;
}

using Expected = std::vector<Line>;

TEST(WrapperReader, TakesOffThePodAndKeepsABarWithItsPod) {
  const Lines lines = Read(
      "[pod/run-0/main] step 1\n[pod/run-1/main] \r 10%|#  |\r 20%|## |\n[pod/run-0/main] step 2\n"
      "[pod/run-1/main] \nplain\n");
  EXPECT_EQ(lines.all, (Expected{{"step 1", 1, "pod/run-0/main"},
                                 {" 10%|#  |", 2, "pod/run-1/main", -1, true},
                                 {" 20%|## |", 2, "pod/run-1/main"},
                                 {"step 2", 3, "pod/run-0/main"},
                                 {"plain", 5}}));
}

TEST(WrapperReader, JoinsWhatTheContainerRuntimeCut) {
  const Lines lines = Read(
      "2024-05-06T07:08:09.123456789Z stdout P begin of \n"
      "2024-05-06T07:08:10.5Z stderr F a warning\n"
      "2024-05-06T07:08:11Z stdout P a long \n"
      "2024-05-06T07:08:12.000000001+02:00 stdout F line\n"
      "2024-05-06T07:08:13Z stderr F 1%\r2%\n"
      "2024-05-06T07:08:14Z stdout F \n"
      "2024-05-06T07:08:15Z stdout P the end\n");
  EXPECT_EQ(lines.all, (Expected{{"a warning", 2},
                                 {"begin of a long line", 1},
                                 {"1%", 5, "", -1, true},
                                 {"2%", 5},
                                 {"the end", 7}}));
  EXPECT_EQ(lines.walls[0], 1714979290'500000000);
  EXPECT_EQ(lines.walls[1], 1714972092'000000001);
}

TEST(WrapperReader, KeepsTheRankOfACutLine) {
  const Lines lines = Read(
      "2024-05-06T07:08:09Z stdout P [rank3]:loss \n"
      "2024-05-06T07:08:09Z stdout F 0.5\n");
  EXPECT_EQ(lines.all, (Expected{{"loss 0.5", 1, "rank3", 3}}));
}

TEST(WrapperReader, UnpacksDockersLines) {
  const Lines lines = Read(
      R"({"log":"\u001b[1mstep 1\u001b[0m\n","stream":"stdout","time":"2024-05-06T07:08:09.1Z"})"
      "\n"
      R"({"log":"cut ","stream":"stdout","time":"2024-05-06T07:08:10Z"})"
      "\n"
      R"({"log":"\r 1%\r 2%","stream":"stderr","time":"2024-05-06T07:08:11Z"})"
      "\n"
      R"({"log":"line \"q\" \u8fdb\ud83d\ude00\\\nnext\n","stream":"stdout",)"
      R"("attrs":{"a":"b"},"time":"2024-05-06T07:08:12Z"})"
      "\n"
      R"({"log":" 3%\n","stream":"stderr","time":"2024-05-06T07:08:13Z"})"
      "\n"
      R"({"log":"broken)"
      "\n");
  EXPECT_EQ(lines.all, (Expected{{"step 1", 1},
                                 {" 1%", 3, "", -1, true},
                                 {"cut line \"q\" 进😀\\", 2},
                                 {"next", 4},
                                 {" 2% 3%", 3},
                                 {"{\"log\":\"broken", 6}}));
  EXPECT_EQ(lines.walls[0], 1714979289'100000000);
  EXPECT_EQ(lines.stamps[0], "2024-05-06T07:08:09.1Z");
}

TEST(WrapperReader, TakesOffTheJournalsPrefix) {
  const Lines lines = Read(
      "Dec  9 10:45:45 gpu01 train.sh[2536]: step 1\n"
      "Dec 09 10:45:45.123456 gpu01 train.sh[2536]:   indented\n"
      "2024-12-09T10:45:45+0100 gpu01 kernel: NVRM: Xid\n"
      "2024-12-09T10:45:45.123456+01:00 gpu01 python3[7]: step 2\n"
      "Mon 2024-12-09 10:45:45 UTC gpu01 user@1000.service[7]: step 3\n"
      "Dec 09 10:45:45 Epoch 3: loss 0.5\n");
  EXPECT_EQ(lines.all, (Expected{{"step 1", 1, "gpu01 train.sh[2536]"},
                                 {"  indented", 2, "gpu01 train.sh[2536]"},
                                 {"NVRM: Xid", 3, "gpu01 kernel"},
                                 {"step 2", 4, "gpu01 python3[7]"},
                                 {"step 3", 5, "gpu01 user@1000.service[7]"},
                                 {"Dec 09 10:45:45 Epoch 3: loss 0.5", 6}}));
  EXPECT_EQ(lines.stamps[0], "Dec  9 10:45:45");
  EXPECT_EQ(lines.walls[0], -1);
  EXPECT_EQ(lines.walls[3], 1733737545'123456000);
}

TEST(WrapperReader, TakesOffWhatMpiLaunchersWrite) {
  const Lines lines = Read(
      "[1,0]<stderr>:warn\n[1,12]<stdout>:  step 1\n"
      "Mon Dec  9 10:45:45 2024[1,3]<stdout>:step 2\nMon Dec  9 10:45:45 2024<stdout>:step 3\n"
      "[prterun-node-1@1,4]<stdout>: step 4\n");
  EXPECT_EQ(lines.all, (Expected{{"warn", 1, "1,0", 0},
                                 {"  step 1", 2, "1,12", 12},
                                 {"step 2", 3, "1,3", 3},
                                 {"step 3", 4},
                                 {"step 4", 5, "prterun-node-1@1,4", 4}}));
}

TEST(WrapperReader, TakesOffRankTags) {
  const Lines lines = Read(
      "[rank0]:step 1\n[rank1]: Traceback (most recent call last):\n[rank1]:   File \"a.py\"\n"
      "[default0]:  File \"b.py\"\n[rank3]:[titan] 2025-01-02 03:04:05,678 - root - step: 1\n"
      "[rank2] step 5\n[rank1]:[rank1]: twice\n[Rank 0] stays\n[epoch3]: stays\n[rank] stays\n");
  EXPECT_EQ(lines.all, (Expected{{"step 1", 1, "rank0", 0},
                                 {"Traceback (most recent call last):", 2, "rank1", 1},
                                 {"  File \"a.py\"", 3, "rank1", 1},
                                 {"  File \"b.py\"", 4, "default0", 0},
                                 {"2025-01-02 03:04:05,678 - root - step: 1", 5, "rank3", 3},
                                 {"step 5", 6, "rank2", 2},
                                 {"twice", 7, "rank1", 1},
                                 {"[Rank 0] stays", 8},
                                 {"[epoch3]: stays", 9},
                                 {"[rank] stays", 10}}));
}

TEST(WrapperReader, TakesOffRaysPrefixAndItsCount) {
  const Lines lines = Read(
      "\x1b[36m(TaskRunner pid=12)\x1b[0m step:1\n(Worker pid=1, ip=10.0.0.1) x\n(pid=3) y\n"
      "(Map(f) pid=4) loaded [repeated 3x across cluster]\n(raylet) died\n(see pid=4) (a) b\n"
      "a [repeated 3x across cluster]\n");
  EXPECT_EQ(lines.all, (Expected{{"step:1", 1, "TaskRunner pid=12"},
                                 {"x", 2, "Worker pid=1, ip=10.0.0.1"},
                                 {"y", 3, "pid=3"},
                                 {"loaded", 4, "Map(f) pid=4"},
                                 {"died", 5, "raylet"},
                                 {"(a) b", 6, "see pid=4"},
                                 {"a [repeated 3x across cluster]", 7}}));
}

// What a task of a job prints, so that lines differ as those of a program do.
std::string Message(int i) {
  constexpr const char* kTexts[] = {"loading data",   "building model",   "using 8 workers",
                                    "Epoch 1 begins", "step 10 loss 0.5", "saved checkpoint"};
  return kTexts[i % 6];
}

TEST(WrapperReader, LearnsHostNamesFromTheirFirstLineOn) {
  std::string bytes = "starting\n";
  Expected expected = {{"starting", 1}};
  for (int i = 0; i < 40; ++i) {
    const std::string host = i % 3 == 0 ? "vm-07-05" : "vm-07-14";
    bytes += host + ": " + Message(i / 3) + "\n";
    expected.push_back({Message(i / 3), static_cast<uint64_t>(i + 2), host});
  }
  bytes += "vm-08-01: joined\nlayer-1: 0.5\nWARNING: x\n";
  expected.push_back({"joined", 42, "vm-08-01"});
  expected.push_back({"layer-1: 0.5", 43});
  expected.push_back({"WARNING: x", 44});
  EXPECT_EQ(Read(bytes).all, expected);
}

TEST(WrapperReader, LearnsTaskNumbersThatComeInAnyOrder) {
  for (const char* form : {"%d: ", "[%d] ", " %d: "}) {
    std::string bytes;
    Expected expected;
    for (int i = 0; i < 64; ++i) {
      const int task = i * 7 % 4;
      char mark[16];
      snprintf(mark, sizeof mark, form, task);
      bytes += mark + Message(i / 4) + "\n";
      expected.push_back(
          {Message(i / 4), static_cast<uint64_t>(i + 1), std::to_string(task), task});
    }
    EXPECT_EQ(Read(bytes).all, expected) << form;
  }
}

TEST(WrapperReader, LearnsTasksThatTakeTurnsAndSayTheSame) {
  std::string bytes;
  for (int i = 0; i < 40; ++i) {
    bytes += std::to_string(i % 4) + ": step " + std::to_string(i / 4) + " loss 0.5\n";
  }
  const Lines lines = Read(bytes);
  EXPECT_EQ(lines.all[0], (Line{"step 0 loss 0.5", 1, "0", 0}));
  EXPECT_EQ(lines.all[39], (Line{"step 9 loss 0.5", 40, "3", 3}));
}

TEST(WrapperReader, LearnsTheOnlyTaskAndTheOnlyService) {
  std::string task, service;
  for (int i = 0; i < 20; ++i) {
    const std::string text = "step " + std::to_string(i) + " loss 0.5\n";
    task += "0: " + text;
    service += "trainer-1  | " + text;
  }
  EXPECT_EQ(Read(task).all[19], (Line{"step 19 loss 0.5", 20, "0", 0}));
  EXPECT_EQ(Read(service).all[19], (Line{"step 19 loss 0.5", 20, "trainer-1"}));
}

TEST(WrapperReader, LearnsContainerNames) {
  std::string bytes;
  for (int i = 0; i < 40; ++i) {
    bytes += (i % 2 == 0 ? "trainer-1  | " : "store-1    | ") + Message(i / 2) + "\n";
  }
  const Lines lines = Read(bytes);
  EXPECT_EQ(lines.all[0], (Line{"loading data", 1, "trainer-1"}));
  EXPECT_EQ(lines.all[39], (Line{Message(19), 40, "store-1"}));
}

TEST(WrapperReader, LearnsTimesThatNoLoggerPrints) {
  std::string bytes;
  for (int i = 0; i < 40; ++i) {
    bytes += "2024-05-06T07:08:" + std::to_string(10 + i) + ".1234567Z " + Message(i) + "\n";
  }
  const Lines lines = Read(bytes);
  EXPECT_EQ(lines.all[0], (Line{"loading data", 1}));
  EXPECT_EQ(lines.walls[0], 1714979290'123456700);
  const std::string one = "2024-05-06T07:08:09.123Z INFO step 1\n";
  EXPECT_EQ(Read(one + one + one + one).all[0].text, "2024-05-06T07:08:09.123Z INFO step 1");
}

TEST(WrapperReader, WrappersStandInEachOther) {
  std::string bytes;
  Expected expected;
  for (int i = 0; i < 64; ++i) {
    const int task = i * 3 % 2;
    bytes += "[pod/a/b] 2024-05-06T07:08:09.123456789Z " + std::to_string(task) +
             ": [default1]:" + Message(i / 2) + "\n";
    expected.push_back({Message(i / 2), static_cast<uint64_t>(i + 1),
                        "pod/a/b " + std::to_string(task) + " default1"});
  }
  EXPECT_EQ(Read(bytes).all, expected);
}

// Each line stays as it is, and nobody is named.
void ExpectUntouched(const std::string& bytes) {
  const Lines lines = Read(bytes);
  std::string joined;
  for (const Line& line : lines.all) {
    joined += line.text + "\n";
    EXPECT_EQ(line.source, "") << line.text;
    EXPECT_EQ(line.rank, -1) << line.text;
  }
  EXPECT_EQ(joined, bytes);
}

TEST(WrapperReader, NothingOfATrainingsOwnTextIsTakenOff) {
  std::string boosted, rounds, epochs, phases, layers, settings, status, listing;
  for (int i = 0; i < 400; ++i) {
    const std::string n = std::to_string(i);
    boosted += "[" + n + "]\ttrain-rmse:0." + n + "\n";
    rounds += "[" + n + "] train loss 0.5\n[" + n + "] val loss 0.4\n";
    epochs += n + ": loss 0.5\n";
    phases += n + ": train loss 0.5\n" + n + ": val loss 0.6\n" + n + ": saved it\n" + n +
              ": learning rate 0.1\n";
    layers += "layer" + n + ": mean 0.5\nconv" + n + ": std 0.5\n";
    settings += "lr: 0.1\nepoch-" + n + ": 3\nstep: 3\nINFO: x\nWARNING: careful\n";
    status += "gpu" + std::to_string(i % 4) + ": " + n + " MiB used\n";
    listing += n + ": import a" + n + "\n";
  }
  for (const std::string& bytes :
       {boosted, rounds, epochs, phases, layers, settings, status, listing}) {
    ExpectUntouched(bytes);
  }
}

TEST(WrapperReader, AMarkThatStandsOnceIsText) {
  ExpectUntouched("15: foo\ngpu-01: bar\ntrainer-1  | x\n2024-05-06T07:08:09.1234567Z y\n");
}

TEST(WrapperReader, LinesThatWaitGoOutWhenALiveFileRests) {
  Lines lines;
  WrapperReader reader(lines, std::nullopt);
  SegmentSplitter splitter(reader);
  splitter.Feed("vm-1: one\n");
  EXPECT_TRUE(lines.all.empty());
  reader.Flush();
  EXPECT_EQ(lines.all, (Expected{{"vm-1: one", 1}}));
  for (int i = 0; i < 40; ++i) {
    splitter.Feed("vm-" + std::to_string(i % 2) + ": " + Message(i / 2) + "\n");
    reader.Flush();
  }
  EXPECT_EQ(lines.all.back(), (Line{Message(19), 41, "vm-1"}));
}

TEST(WrapperReader, TheRankOfTheFileStandsForLinesWithoutOne) {
  EXPECT_EQ(Read("step 1\n[rank5]: step 2\n", 3).all,
            (Expected{{"step 1", 1, "", 3}, {"step 2", 2, "rank5", 5}}));
}

TEST(WrapperReader, TheClockOfTheCaptureStandsForLinesWithoutATime) {
  Lines lines;
  WrapperReader reader(lines, std::nullopt);
  SegmentSplitter splitter(reader);
  reader.SetWallNs(5);
  splitter.Feed("a\r");
  reader.SetWallNs(7);
  splitter.Feed("b\n");
  EXPECT_EQ(lines.walls, (std::vector<int64_t>{7, 7}));
}

}  // namespace
}  // namespace epochmeter::ingest::log
