// SPDX-License-Identifier: Apache-2.0
#include "cli/output_progress.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "cli/captured_output.h"
#include "model/run_builder.h"

namespace epochmeter::cli {
namespace {

using model::EventKind;

constexpr int64_t kMs = base::kNsPerMs;

int64_t g_now_ns = 0;
int64_t g_cpu_ns = 0;
int64_t g_cost_ns = 0;  // CPU of reading once

// What was recorded of a training by its output. Times are ms.
class Printed {
 public:
  Printed() {
    g_now_ns = g_cpu_ns = g_cost_ns = 0;
    env_.monotonic_ns = [] { return g_now_ns; };
    env_.thread_cpu_ns = [] { return g_cpu_ns += g_cost_ns; };
    progress_.emplace(registry_, sink_, env_, false);
  }

  void At(int64_t t_ms, std::string_view text, uint32_t stream = 1, uint64_t dropped = 0) {
    Pass(t_ms);
    CaptureHeader header;
    header.t_ns = g_now_ns;
    header.stream = stream;
    header.dropped_bytes = dropped;
    progress_->Take(header, text);
  }
  void Pass(int64_t t_ms) {
    while (progress_->NextDueNs() <= t_ms * kMs) {
      g_now_ns = progress_->NextDueNs();
      progress_->Maintain(g_now_ns);
    }
    g_now_ns = t_ms * kMs;
  }
  OutputProgress& progress() { return *progress_; }
  const std::vector<model::Record>& records() const { return sink_.records; }
  model::Run Run(bool well = true) {
    progress_->Finish(well, g_now_ns);
    model::RunBuilder builder;
    for (const model::Record& record : sink_.records) builder.Write(record);
    return builder.Finish();
  }

 private:
  model::MemorySink sink_;
  model::Registry registry_{sink_};
  model::Env env_;
  std::optional<OutputProgress> progress_;
};

std::string Line(int epoch, int step, int of, double loss) {
  return fmt::format("Epoch {}/3, step {}/{}, loss: {:.4f}, lr: 0.001\n", epoch, step, of, loss);
}

// Three epochs of `steps` steps, each 100 ms.
void Train(Printed* printed, int steps, int each = 1, uint32_t stream = 1) {
  int64_t t_ms = 1000;
  for (int epoch = 1; epoch <= 3; ++epoch) {
    for (int step = 1; step <= steps; ++step) {
      t_ms += 100;
      if (step % each == 0) printed->At(t_ms, Line(epoch, step, steps, 1.0 / step), stream);
    }
  }
}

std::vector<const model::Event*> Of(const model::Run& run, EventKind kind) {
  std::vector<const model::Event*> found;
  for (const model::Event& event : run.events) {
    if (event.kind == kind) found.push_back(&event);
  }
  return found;
}

uint64_t Lost(const model::Run& run, std::string_view kind) {
  uint64_t count = 0;
  for (const model::Loss& loss : run.losses) count += loss.kind == kind ? loss.count : 0;
  return count;
}

TEST(OutputProgress, GivesEpochsAndStepsTheirTimesOfArrival) {
  Printed printed;
  Train(&printed, 20);
  const model::Run run = printed.Run();
  ASSERT_EQ(Of(run, EventKind::kTrainBegin).size(), 1U);
  const auto ends = Of(run, EventKind::kEpochEnd);
  ASSERT_EQ(ends.size(), 3U);
  EXPECT_EQ(ends[1]->epoch, 2);
  EXPECT_EQ(ends[1]->Number("steps"), 20);
  EXPECT_EQ(ends[1]->t_ns, 5000 * kMs);
  ASSERT_EQ(run.steps.size(), 1U);
  const model::StepTable& steps = run.steps.begin()->second;
  ASSERT_EQ(steps.size(), 60U);
  EXPECT_EQ(steps.t_ns[0], 1100 * kMs);
  EXPECT_EQ(steps.step.back(), 60);
  EXPECT_EQ(steps.epoch.back(), 3);
  EXPECT_NEAR((*steps.Column("duration_s"))[1], 0.1, 1e-9);
  EXPECT_EQ((*steps.Column("scalar.loss"))[19], 0.05);
  EXPECT_EQ(Of(run, EventKind::kTrainEnd)[0]->Text("status"), "exited");
}

TEST(OutputProgress, CountsStepsThatAreNotPrinted) {
  Printed printed;
  Train(&printed, 48, 10);
  const auto run = printed.Run();
  for (const model::Event* end : Of(run, EventKind::kEpochEnd)) {
    EXPECT_EQ(end->Number("steps"), 48);
  }
}

TEST(OutputProgress, LeavesTheLastEpochOpenWhereTheTrainingFailed) {
  Printed printed;
  Train(&printed, 20);
  const auto run = printed.Run(false);
  EXPECT_EQ(Of(run, EventKind::kEpochBegin).size(), 3U);
  EXPECT_EQ(Of(run, EventKind::kEpochEnd).size(), 2U);
  EXPECT_EQ(Of(run, EventKind::kTrainEnd).size(), 0U);
}

TEST(OutputProgress, HoldsBackUntilAClientHadItsTime) {
  Printed printed;
  for (int step = 1; step <= 10; ++step) printed.At(100 * step, Line(1, step, 100, 0.5));
  EXPECT_TRUE(printed.records().empty());
  for (int step = 11; step <= 40; ++step) printed.At(100 * step, Line(1, step, 100, 0.5));
  EXPECT_GT(printed.records().size(), 20U);
}

TEST(OutputProgress, SaysNothingOnceAClientTellsSteps) {
  Printed printed;
  for (int step = 1; step <= 10; ++step) printed.At(100 * step, Line(1, step, 100, 0.5));
  printed.progress().LeaveToClient();
  for (int step = 11; step <= 100; ++step) printed.At(100 * step, Line(1, step, 100, 0.5));
  printed.progress().Finish(true, g_now_ns);
  EXPECT_TRUE(printed.records().empty());
}

TEST(OutputProgress, TakesTheStreamThatTellsTheLoss) {
  Printed printed;
  int64_t t_ms = 1000;
  for (int step = 1; step <= 30; ++step) {
    printed.At(t_ms += 100, fmt::format("Epoch 1/1, step {}/30\n", step), 2);
    printed.At(t_ms, Line(1, step, 30, 0.5), 1);
  }
  const auto run = printed.Run();
  ASSERT_EQ(run.steps.size(), 1U);
  uint64_t with_loss = 0;
  for (const double loss : *run.steps.begin()->second.Column("scalar.loss")) with_loss += loss > 0;
  EXPECT_EQ(with_loss, 30U);
}

TEST(OutputProgress, TakesALinePerEpochForItsEnd) {
  Printed printed;
  for (int epoch = 0; epoch < 4; ++epoch) {
    printed.At(1000 + 500 * epoch, fmt::format("epoch {}: train_loss=0.{}1 val_loss=0.{}5\n", epoch,
                                               9 - epoch, 9 - epoch));
  }
  const auto run = printed.Run();
  EXPECT_TRUE(run.steps.empty());
  const auto ends = Of(run, EventKind::kEpochEnd);
  ASSERT_EQ(ends.size(), 4U);
  EXPECT_EQ(ends[3]->t_ns, 2500 * kMs);
  EXPECT_NEAR(*ends[3]->Number("duration_s"), 0.5, 1e-9);
}

TEST(OutputProgress, TakesAStepToldTwiceOnce) {
  Printed printed;
  int64_t t_ms = 1000;
  for (int step = 1; step <= 20; ++step) {
    printed.At(t_ms += 100, Line(1, step, 20, 0.5));
    if (step == 20) printed.At(t_ms += 100, Line(1, step, 20, 9.0));
  }
  const auto run = printed.Run();
  EXPECT_EQ(run.steps.begin()->second.size(), 20U);
  EXPECT_TRUE(Of(run, EventKind::kScalar).empty());
}

TEST(OutputProgress, MakesNoLineOfTwoHalvesWhoseMiddleIsMissing) {
  Printed printed;
  int64_t t_ms = 1000;
  for (int step = 1; step <= 20; ++step) printed.At(t_ms += 100, Line(1, step, 100, 0.5));
  printed.At(t_ms += 100, "Epoch 1/3, step 2");
  printed.At(t_ms += 100, "9/100, loss: 0.5000, lr: 0.001\n", 1, 400);
  printed.At(t_ms += 100, Line(1, 30, 100, 0.25));
  const auto run = printed.Run();
  const model::StepTable& steps = run.steps.begin()->second;
  ASSERT_EQ(steps.size(), 21U);
  EXPECT_EQ((*steps.Column("steps"))[20], 10);
}

TEST(OutputProgress, KeepsToItsPartOfACore) {
  Printed printed;
  const auto print = [&](int from, int to) {
    for (int step = from; step <= to; ++step) {
      printed.At(1000 + 10 * step, Line(1, step, 500, 0.5));
    }
  };
  print(1, 100);
  g_cost_ns = 5 * kMs;  // half a core
  print(101, 400);
  g_cost_ns = 0;
  print(401, 500);
  const auto run = printed.Run();
  // A tenth of a core, what was left at first, and the lines whose beginning was skipped.
  EXPECT_NEAR(static_cast<double>(Lost(run, "output.not_read")),
              static_cast<double>(140 * Line(1, 300, 500, 0.5).size()), 2500);
  EXPECT_EQ(Of(run, EventKind::kEpochEnd).at(0)->Number("steps"), 500);
}

TEST(OutputProgress, TellsBlocksOfLinesWithoutTimesOfTheirOwn) {
  Printed printed;
  std::string block;
  for (int step = 1; step <= 50; ++step) block += Line(1, step, 50, 0.5);
  printed.At(5000, block);
  const auto run = printed.Run();
  const model::StepTable& steps = run.steps.begin()->second;
  EXPECT_EQ(steps.size(), 50U);
  EXPECT_EQ(steps.Column("duration_s"), nullptr);
  EXPECT_GT(Lost(run, "output.in_blocks"), 40U);
}

TEST(OutputProgress, TellsFailuresAFewTimes) {
  Printed printed;
  for (int i = 0; i < 30; ++i) {
    printed.At(1000 + i, "RuntimeError: CUDA error: an illegal memory access was encountered\n");
  }
  const auto run = printed.Run(false);
  const auto failures = Of(run, EventKind::kException);
  ASSERT_FALSE(failures.empty());
  EXPECT_LE(failures.size(), 24U);
  EXPECT_EQ(failures[0]->Text("source"), "output");
}

}  // namespace
}  // namespace epochmeter::cli
