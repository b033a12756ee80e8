// SPDX-License-Identifier: Apache-2.0
#include "ingest/log/log_summary.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "ingest/log/log_run.h"
#include "ingest/log/record_test_util.h"
#include "model/run_builder.h"

namespace epochmeter::ingest::log {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Ten records of ten steps each, half a second a step.
void FeedTraining(LogSink& sink, double begin_s) {
  for (int i = 1; i <= 10; ++i) {
    FedRecord record(static_cast<uint64_t>(i) + 100);
    record.With(Role::kEpoch, "epoch", i / 6)
        .With(Role::kStep, "step", i * 10)
        .With(Role::kLoss, "loss", i == 7 ? kNan : 10.0 / i)
        .With(Role::kStepTime, "batch_cost", 0.5 + (i == 3 ? 1 : 0))
        .With(Role::kDataTime, "reader_cost", 0.1)
        .With(Role::kMemory, "max_mem", 1000 + i, 1e6, "MB");
    if (begin_s > 0) record.At(begin_s + i * 5);
    sink.OnRecord(record.record());
  }
}

model::LogReport Summed(double begin_s) {
  LogSummary summary;
  FeedTraining(summary, begin_s);
  return summary.Take({.lines = 200}, {"a note"}, {{.name = "train.log"}});
}

TEST(LogSummary, FirstAndLastRecordsAndFiguresAreThose) {
  const model::LogReport report = Summed(1000);
  EXPECT_EQ(report.records, 10U);
  EXPECT_EQ(report.first->line, 101U);
  EXPECT_EQ(report.last->line, 110U);
  EXPECT_EQ(report.last->Find("step")->number, 100);
  EXPECT_DOUBLE_EQ(report.step_time->mean, 0.6);
  EXPECT_DOUBLE_EQ(report.step_time->median, 0.5);
  EXPECT_DOUBLE_EQ(report.step_time->max, 1.5);
  EXPECT_EQ(report.step_time->max_line, 103U);
  EXPECT_NEAR(report.data_share.value(), 1.0 / 6, 1e-12);
  EXPECT_EQ(report.non_finite_losses, 1U);
  EXPECT_EQ(report.first_non_finite_line, 107U);
  EXPECT_DOUBLE_EQ(report.loss_last.value(), 1);
  EXPECT_EQ(report.step_time_from, "printed");
  EXPECT_EQ(report.files.at(0).name, "train.log");
  EXPECT_EQ(report.notes, std::vector<std::string>{"a note"});
}

TEST(LogSummary, CumulativeTimesGiveNoStepTimeAsIfPrinted) {
  LogSummary summary;
  for (int i = 1; i <= 5; ++i) {
    FedRecord record(static_cast<uint64_t>(i));
    record.With(Role::kStep, "step", i * 100).With(Role::kElapsed, "Time", i * 30);
    summary.OnRecord(record.record());
  }
  const model::LogReport report = summary.Take({}, {}, {});
  EXPECT_FALSE(report.step_time.has_value());
  EXPECT_EQ(report.step_time_from, "elapsed");
  EXPECT_DOUBLE_EQ(report.estimated_step_time->median, 0.3);
}

TEST(LogSummary, NothingIsSaidOfALogWithoutRecords) {
  LogSummary summary;
  summary.OnEvent(FedEvent("xid", 4, "NVRM: Xid 79"));
  const model::LogReport report = summary.Take({}, {}, {{.name = "dmesg"}});
  EXPECT_EQ(report.records, 0U);
  EXPECT_FALSE(report.first.has_value());
  EXPECT_FALSE(report.step_time.has_value());
  EXPECT_TRUE(report.not_known.empty());
  ASSERT_EQ(report.events.size(), 1U);
  EXPECT_EQ(report.files.at(0).bad_events, 1U);
}

TEST(LogSummary, TellsRanksThatTrainFromThoseThatOnlyFail) {
  LogSummary summary;
  FedRecord record(1);
  summary.OnRecord(record.Of(0).With(Role::kStep, "step", 1).record());
  LogEvent failed = FedEvent("traceback", 9, "KeyError");
  failed.place.rank = 1;
  failed.place.file = 1;
  summary.OnEvent(failed);
  const model::LogReport report = summary.Take({}, {}, {{.name = "w.0"}, {.name = "w.1"}});
  ASSERT_EQ(report.ranks.size(), 2U);
  EXPECT_EQ(report.ranks[0].records, 1U);
  EXPECT_EQ(report.ranks[1].records, 0U);
  EXPECT_EQ(report.ranks[1].bad_events, 1U);
  EXPECT_EQ(report.ranks[1].first_bad, "traceback");
}

model::Run RunOf(double begin_s) {
  model::RunBuilder builder;
  LogRun run(builder, {.name = "train.log", .modified_ns = 5'000'000'000'000});
  LogSummary summary({&run});
  FeedTraining(summary, begin_s);
  summary.OnEvent(FedEvent("oom_gpu", 120, "OutOfMemoryError: no memory"));
  run.Finish({.cut_lines = 2}, {.reason = "lost"});
  return builder.Finish();
}

const model::StepTable& StepsOf(const model::Run& run) { return run.steps.begin()->second; }

TEST(LogRun, StepsHaveTheTimesOfTheirLines) {
  const model::Run run = RunOf(1'700'000'000);
  const model::StepTable& steps = StepsOf(run);
  ASSERT_EQ(steps.size(), 10U);
  EXPECT_EQ(run.WallNs(steps.t_ns[0]), int64_t{1'700'000'005} * 1'000'000'000);
  EXPECT_EQ(run.WallNs(steps.t_ns[9]), int64_t{1'700'000'050} * 1'000'000'000);
  EXPECT_EQ(steps.step[9], 100);
  EXPECT_DOUBLE_EQ(steps.Column("line")->at(9), 110);
  EXPECT_DOUBLE_EQ(steps.Column("steps")->at(9), 10);
  EXPECT_DOUBLE_EQ(steps.Column("duration_s")->at(9), 5);
  EXPECT_NEAR(steps.Column("data_wait_s")->at(9), 1, 1e-9);
  EXPECT_TRUE(std::isnan(steps.Column("scalar.loss")->at(6)));
  EXPECT_FALSE(model::IsAbsent(steps.Column("scalar.loss")->at(6)));
  ASSERT_EQ(run.losses.size(), 2U);
  EXPECT_EQ(run.losses[0].kind, "log.cut_lines");
  EXPECT_EQ(run.losses[1].kind, "log.unplaced");
}

TEST(LogRun, WithoutTimesTheClockIsTheSumOfStepTimes) {
  const model::Run run = RunOf(0);
  const model::StepTable& steps = StepsOf(run);
  EXPECT_NEAR(base::SecondsFromNs(steps.t_ns[9] - steps.t_ns[0]), 4.5 * 10 + 10, 1e-6);
  EXPECT_EQ(run.losses.back().kind, "log.times_assumed");
}

TEST(LogRun, WithoutTimesAndDurationsNothingIsInvented) {
  model::RunBuilder builder;
  LogRun run(builder, {.name = "plain.log", .modified_ns = 5'000'000'000});
  LogSummary summary({&run});
  for (int i = 1; i <= 5; ++i) {
    FedRecord record(static_cast<uint64_t>(i));
    record.With(Role::kStep, "s", i).With(Role::kLoss, "trl", 1.0 / i);
    summary.OnRecord(record.record());
  }
  run.Finish({}, {.reason = "lost"});
  const model::Run built = builder.Finish();
  EXPECT_EQ(run.clock(), LogClock::kNone);
  EXPECT_EQ(StepsOf(built).Column("duration_s"), nullptr);
  EXPECT_EQ(built.span.begin_ns, built.span.end_ns);
  EXPECT_EQ(built.losses.back().kind, "log.no_times");
}

// A run of the lines "epoch E, step S/100" that `feed` writes.
model::Run RunOfLines(const std::function<void(LogSummary&)>& feed) {
  model::RunBuilder builder;
  LogRun run(builder, {.name = "lines.log"});
  LogSummary summary({&run});
  feed(summary);
  run.Finish({}, {.reason = "lost"});
  return builder.Finish();
}

void FeedSteps(LogSummary& summary, uint64_t line, double from, double interval) {
  for (int i = 0; i < 5; ++i) {
    FedRecord record(line + static_cast<uint64_t>(i));
    record.With(Role::kStep, "step", from + i * interval)
        .With(Role::kLoss, "loss", 1)
        .At(1000 + static_cast<double>(line) + i);
    summary.OnRecord(record.record());
  }
}

TEST(LogRun, TheFirstLineStandsForAsManyStepsAsTheNextOnes) {
  for (const double from : {10.0, 9.0}) {
    const model::Run run = RunOfLines([&](auto& summary) { FeedSteps(summary, 1, from, 10); });
    EXPECT_EQ(StepsOf(run).Column("steps")->at(0), 10);
  }
  for (const double from : {0.0, 5010.0}) {
    const model::Run run = RunOfLines([&](auto& summary) { FeedSteps(summary, 1, from, 10); });
    EXPECT_TRUE(model::IsAbsent(StepsOf(run).Column("steps")->at(0)));
  }
}

TEST(LogRun, ARestartBeginsTheTrainingAnew) {
  const model::Run run = RunOfLines([](auto& summary) {
    FeedSteps(summary, 1, 10, 10);
    FeedSteps(summary, 100, 10, 10);
    FeedSteps(summary, 200, 30, 10);
  });
  EXPECT_EQ(std::count_if(run.events.begin(), run.events.end(),
                          [](const model::Event& event) {
                            return event.kind == model::EventKind::kTrainBegin;
                          }),
            3);
  EXPECT_EQ(std::count_if(
                run.events.begin(), run.events.end(),
                [](const model::Event& event) { return event.Number("resumes").value_or(0) > 0; }),
            1);
  EXPECT_EQ(StepsOf(run).Column("steps")->at(5), 10);
}

TEST(LogRun, LinesOfEpochsTellNoSteps) {
  const model::Run run = RunOfLines([](auto& summary) {
    for (int epoch = 1; epoch <= 3; ++epoch) {
      FedRecord record(static_cast<uint64_t>(epoch));
      record.With(Role::kEpoch, "Epoch", epoch).With(Role::kStepTime, "Time", 12.5, 1, "s");
      summary.OnRecord(record.record());
    }
    const model::LogReport report = summary.Take({}, {}, {});
    EXPECT_FALSE(report.step_time.has_value());
    EXPECT_EQ(report.last->Find("step_time"), nullptr);
    EXPECT_NE(report.last->Find("epoch_time"), nullptr);
  });
  const model::StepTable& steps = StepsOf(run);
  EXPECT_EQ(steps.Column("duration_s"), nullptr);
  EXPECT_EQ(steps.Column("steps")->at(2), 0);
  EXPECT_EQ(steps.Column("epoch_s")->at(2), 12.5);
  EXPECT_EQ(steps.Column("ends_epoch")->at(2), 1);
  EXPECT_EQ(steps.t_ns[2] - steps.t_ns[0], 25'000'000'000);
}

TEST(LogRun, VeryManyStepsAreJoinedAndNotLost) {
  model::RunBuilder builder;
  LogRun run(builder, {.name = "long.log", .most_steps = 100, .tables = &builder, .texts = false});
  LogSummary summary({&run});
  for (int i = 1; i <= 5000; ++i) {
    FedRecord record(static_cast<uint64_t>(i));
    record.With(Role::kStep, "step", i)
        .With(Role::kLoss, "loss", i == 1234 ? kNan : 1)
        .With(Role::kStepTime, "dt", 0.25)
        .At(1000 + i * 0.25);
    summary.OnRecord(record.record());
  }
  run.Finish({}, {.reason = "lost"});
  const model::Run built = builder.Finish();
  const model::StepTable& steps = StepsOf(built);
  EXPECT_LE(steps.size(), 100U);
  EXPECT_GT(steps.size(), 40U);
  double seconds = 0;
  bool nan = false;
  for (size_t i = 0; i < steps.size(); ++i) {
    seconds += steps.Column("duration_s")->at(i);
    nan = nan || std::isnan(steps.Column("scalar.loss")->at(i));
  }
  EXPECT_TRUE(nan);
  EXPECT_NEAR(seconds, 1250, 64 * 0.25);  // all but what the last step has not told yet
  EXPECT_GT(run.joined_steps(), 1U);
}

}  // namespace
}  // namespace epochmeter::ingest::log
