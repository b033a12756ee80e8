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

}  // namespace
}  // namespace epochmeter::ingest::log
