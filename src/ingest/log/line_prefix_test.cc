// SPDX-License-Identifier: Apache-2.0
#include "ingest/log/line_prefix.h"

#include <gtest/gtest.h>

#include <string>

#include "ingest/log/stamp_text.h"

namespace epochmeter::ingest::log {
namespace {

struct Case {
  std::string_view line;
  std::string_view stamp;  // empty: none
  LogLevel level;
  std::string_view logger;
  std::string_view message;
};

void Check(const Case& want) {
  const LinePrefix got = ReadLinePrefix(want.line);
  EXPECT_EQ(got.stamp ? got.stamp->text : "", want.stamp) << want.line;
  EXPECT_EQ(got.level, want.level) << want.line;
  EXPECT_EQ(got.logger, want.logger) << want.line;
  EXPECT_EQ(want.line.substr(got.message), want.message) << want.line;
}

TEST(LinePrefix, GlogAndItsKin) {
  Check({"I0308 09:14:55.004512  7781 nccl.cc:88] init", "I0308 09:14:55.004512", LogLevel::kInfo,
         "nccl.cc:88", "init"});
  Check({"I20260308 09:14:55 77 root utils.py:128] hi", "I20260308 09:14:55", LogLevel::kInfo,
         "utils.py:128", "hi"});
  Check({"E0000 00:00:1772961295.807767 1234 dnn.cc:83] no", "E0000 00:00:1772961295.807767",
         LogLevel::kError, "dnn.cc:83", "no"});
  Check({"W0308 09:14:55.693000 97 torch/x/run.py:803]   File \"a\"", "W0308 09:14:55.693000",
         LogLevel::kWarning, "torch/x/run.py:803", "  File \"a\""});
}

TEST(LinePrefix, LoggersOfTheTrainingSuites) {
  Check({"[03/08 09:14:55] ppdet.engine INFO: Epoch: [0]", "[03/08 09:14:55]", LogLevel::kInfo,
         "ppdet.engine", "Epoch: [0]"});
  Check({"[2026/03/08 09:14:55] ppocr INFO: epoch: [1/2]", "2026/03/08 09:14:55", LogLevel::kInfo,
         "ppocr", "epoch: [1/2]"});
  Check({"2026-03-08 09:14:55 [INFO]\t[TRAIN] epoch: 1", "2026-03-08 09:14:55", LogLevel::kInfo, "",
         "[TRAIN] epoch: 1"});
  Check({"2026-03-08 09:14:55,845-INFO: [topo.py:16:__init__] Info", "2026-03-08 09:14:55,845",
         LogLevel::kInfo, "topo.py:16:__init__", "Info"});
  Check({"[2026-03-08 09:14:55,097] [    INFO] - loss: 1", "2026-03-08 09:14:55,097",
         LogLevel::kInfo, "", "loss: 1"});
  Check({"2026-03-08 09:14:55,849 - mmdet - INFO - Epoch [1]", "2026-03-08 09:14:55,849",
         LogLevel::kInfo, "mmdet", "Epoch [1]"});
}

TEST(LinePrefix, LoggersOfTheTorchWorld) {
  Check({"2026-03-08 09:14:55 | INFO | train_inner | epoch 001", "2026-03-08 09:14:55",
         LogLevel::kInfo, "train_inner", "epoch 001"});
  Check({"2026-03-08 09:14:55 | INFO | valid | epoch 001", "2026-03-08 09:14:55", LogLevel::kInfo,
         "", "valid | epoch 001"});
  Check({"[2026-03-08 09:14:55,965][train_inner][INFO] - {\"a\": 1}", "2026-03-08 09:14:55,965",
         LogLevel::kInfo, "train_inner", "{\"a\": 1}"});
  Check({"[03/08 09:14:55 d2.utils.events]:  eta: 1:00", "03/08 09:14:55", LogLevel::kNone,
         "d2.utils.events", " eta: 1:00"});
  Check({"[INFO|trainer.py:91] 2026-03-08 09:14:55,862 >> Go", "2026-03-08 09:14:55,862",
         LogLevel::kInfo, "trainer.py:91", "Go"});
  Check({"INFO:__main__:epochs: 2", "", LogLevel::kInfo, "__main__", "epochs: 2"});
  Check({"INFO:root:[Epoch 0] x=1", "", LogLevel::kInfo, "root", "[Epoch 0] x=1"});
  Check({"[2026-03-08 09:14:55,554] [INFO] [log.py:96:log_dist] [Rank 0] step=10",
         "2026-03-08 09:14:55,554", LogLevel::kInfo, "log.py:96:log_dist", "[Rank 0] step=10"});
  Check({"[2026-03-08 09:14:55,000] torch.distributed.run: [WARNING] ***",
         "2026-03-08 09:14:55,000", LogLevel::kWarning, "torch.distributed.run", "***"});
  Check({"[titan] 2026-03-08 09:14:55,123 - root - INFO - step:  1", "2026-03-08 09:14:55,123",
         LogLevel::kInfo, "titan", "step:  1"});
  Check({"INFO 2026-03-08 09:14:55 ot_train.py:357 step:400", "2026-03-08 09:14:55",
         LogLevel::kInfo, "ot_train.py:357", "step:400"});
  Check({"INFO 03-08 09:14:55 [config.py:12] up", "03-08 09:14:55", LogLevel::kInfo, "config.py:12",
         "up"});
  Check({"[2026-03-08 09:14:55 swin](main.py 284): INFO Train: [0/300]", "2026-03-08 09:14:55",
         LogLevel::kInfo, "swin", "Train: [0/300]"});
  Check({"[NeMo W 2026-03-08 09:14:55 exp:40] hi", "2026-03-08 09:14:55", LogLevel::kWarning,
         "NeMo", "hi"});
  Check({"09:14:55.123 [I] Running", "09:14:55.123", LogLevel::kInfo, "", "Running"});
}

TEST(LinePrefix, LoggersOfOtherPrograms) {
  Check({"2026-03-08 09:14:55.027607: I tensorflow/core/port.cc:113] hi",
         "2026-03-08 09:14:55.027607", LogLevel::kInfo, "tensorflow/core/port.cc:113", "hi"});
  Check({":::MLPv0.5.0 resnet 1772961295.766781330 (file:49) epoch: 0", "1772961295.766781330",
         LogLevel::kNone, "resnet", "epoch: 0"});
  Check({":::MLLOG {\"time_ms\": 1}", "", LogLevel::kNone, "", "{\"time_ms\": 1}"});
  Check({"2026-03-08 09:14:55.123 | INFO     | mod:func:12 - hi", "2026-03-08 09:14:55.123",
         LogLevel::kInfo, "mod:func:12", "hi"});
  Check({"2026-03-08 09:14:55,123\tINFO worker.py:12 -- hi", "2026-03-08 09:14:55,123",
         LogLevel::kInfo, "worker.py:12", "hi"});
  Check({"[LightGBM] [Info] Total", "", LogLevel::kInfo, "LightGBM", "Total"});
  Check({"[WARNING] ME(12:140,MainProcess):2026-03-08-09:14:55.123.456 [a.py:1] hi",
         "2026-03-08-09:14:55.123.456", LogLevel::kWarning, "",
         "ME(12:140,MainProcess):2026-03-08-09:14:55.123.456 [a.py:1] hi"});
  Check({"kern  :warn  : 2026-03-08T09:14:55,283302+00:00 NVRM: Xid",
         "2026-03-08T09:14:55,283302+00:00", LogLevel::kWarning, "kern", "NVRM: Xid"});
  Check({"[Sun Mar  8 09:14:55 2026] NVRM: GPU", "Sun Mar  8 09:14:55 2026", LogLevel::kNone, "",
         "NVRM: GPU"});
  Check({"[12345.678901] NVRM: Xid", "", LogLevel::kNone, "", "NVRM: Xid"});
}

TEST(LinePrefix, StampsFartherInAreFound) {
  Check({"[epoch:1/12] [loss:0.2] [Time:[2026-03-08 09:14:55]] [x:1]", "2026-03-08 09:14:55",
         LogLevel::kNone, "", "[epoch:1/12] [loss:0.2] [Time:[2026-03-08 09:14:55]] [x:1]"});
  Check({"time=\"2026-03-08T09:14:55Z\" level=info", "2026-03-08T09:14:55Z", LogLevel::kNone, "",
         "time=\"2026-03-08T09:14:55Z\" level=info"});
  const std::string_view glued = " 0%| | 0/136 [00:00<?, ?it/s][2026/03/08 09:14:55] ppocr INFO: x";
  Check({glued, "2026/03/08 09:14:55", LogLevel::kInfo, "ppocr", "x"});
  EXPECT_EQ(glued.substr(ReadLinePrefix(glued).glued).substr(0, 5), "[2026");
  Check({".venv\\python : 09:14:55 INFO: Starting", "09:14:55", LogLevel::kInfo, "", "Starting"});
  Check({"restored the state of 2026-03-08 09:14:55", "", LogLevel::kNone, "",
         "restored the state of 2026-03-08 09:14:55"});
}

TEST(LinePrefix, MessagesAreNotEaten) {
  for (const std::string_view line : {"12:34 remaining",
                                      "1/50 [00:01<00:02] loss: 1",
                                      "2023 samples",
                                      "00:05:57 elapsed",
                                      "  0%|          | 0/90 [00:00<?, ?it/s]",
                                      "Epoch 1/100 | LR: 3.8",
                                      "[1/5] Loading",
                                      "[rank1] step 0/40",
                                      "[1]\ttrain-rmse:7.1",
                                      "2-2: 0.5",
                                      "ERROR loading x",
                                      "Error: x",
                                      "[Epoch 1][Batch 3] loss",
                                      "[Train][Epoch 1]",
                                      "3.01G 2/10 0.5",
                                      "1/50 10:00:00 x",
                                      "Info about the run: 3",
                                      "1500000000 parameters",
                                      "I have 1000 apples",
                                      "[INFO",
                                      "[",
                                      "",
                                      ":::ML",
                                      "10:00:00/20:00:00 done",
                                      "34:13:14 left",
                                      "20240101 items",
                                      "{\"loss\": 1}"}) {
    const LinePrefix prefix = ReadLinePrefix(line);
    EXPECT_EQ(prefix.message, 0u) << line;
    EXPECT_FALSE(prefix.stamp) << line;
  }
}

TEST(StampText, TakesStampsApart) {
  const auto us = ParseStampText("10/7/2022 9:46:40 PM");
  ASSERT_TRUE(us);
  EXPECT_EQ(us->first, 10);
  EXPECT_EQ(us->second, 7);
  EXPECT_EQ(us->year, 2022);
  EXPECT_EQ(us->of_day_ns, (21 * 3600 + 46 * 60 + 40) * 1'000'000'000LL);
  const auto european = ParseStampText("13/09/24 10:11:12");
  ASSERT_TRUE(european);
  EXPECT_EQ(european->month, 9);
  EXPECT_EQ(european->day, 13);
  const auto chinese = ParseStampText("2022年10月07日 21时46分40秒");
  ASSERT_TRUE(chinese);
  EXPECT_EQ(chinese->month, 10);
  const auto zone = ParseStampText("2026-03-08T09:14:55.5-03:30");
  ASSERT_TRUE(zone);
  EXPECT_EQ(zone->offset_s, -(3 * 3600 + 30 * 60));
  EXPECT_EQ(ParseStampText("1772961295123")->unix_ns, 1772961295123'000'000);
  EXPECT_EQ(ParseStampText("Mon, 02 Mar 2026 10:11:12 +0000")->day, 2);
  EXPECT_EQ(ParseStampText("20260308T091455Z")->offset_s, 0);
  for (const char* text : {"", "0.5", "12", "2026-13-08 10:00:00", "10:61:00", "2026-03-08 10",
                           "10:00:00 x", "[", "999999999", "2026-03-08T"}) {
    EXPECT_FALSE(ParseStampText(text)) << text;
  }
}

}  // namespace
}  // namespace epochmeter::ingest::log
