// SPDX-License-Identifier: Apache-2.0
#include "diagnose/own_gpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "diagnose/report_builder.h"
#include "model/gpu_metrics.h"
#include "model/registry.h"
#include "model/run_builder.h"

namespace epochmeter::diagnose {
namespace {

using model::Event;
using model::EventKind;
using model::Scope;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr int64_t kSecond = base::kNsPerSecond;

// A run of three GPUs with ranks, and a report of it.
class OwnGpusTest : public testing::Test {
 protected:
  // `jobs` are the attributes of the GPUs, empty for none.
  void Gpus(const std::vector<std::string>& jobs) {
    for (size_t i = 0; i < jobs.size(); ++i) {
      const std::string index = std::to_string(i);
      gpus_.push_back(registry_.AddEntity(
          {.scope = Scope::kGpu,
           .name = "GPU-" + index,
           .labels = {{"gpu", index}, {"uuid", "GPU-" + index}},
           .attributes = jobs[i].empty() ? model::Labels() : model::Labels{{"job", jobs[i]}}}));
      Value(gpus_.back(), model::gpu::kUtilization, 0.1 * static_cast<double>(i + 1));
    }
  }
  void Value(model::EntityId entity, const model::MetricDef& metric, double value) {
    const auto series = registry_.AddSeries(entity, metric, kSecond);
    for (const int64_t t_ns : {1, 2, 3}) {
      builder_.Write(model::Samples{.t_ns = t_ns * kSecond, .values = {{series, value}}});
    }
  }
  // An epoch of a rank from 1 s to 3 s that names GPUs, or none.
  void Rank(int rank, const std::string& gpus) {
    const auto event = [&](EventKind kind, int64_t t_s) {
      Event out;
      out.t_ns = t_s * kSecond;
      out.kind = kind;
      out.rank = rank;
      if (kind != EventKind::kHello) out.epoch = 0;
      return out;
    };
    Event hello = event(EventKind::kHello, 1);
    if (!gpus.empty()) hello.fields.push_back({"gpus", gpus});
    builder_.Write(hello);
    builder_.Write(event(EventKind::kEpochBegin, 1));
    builder_.Write(event(EventKind::kEpochEnd, 3));
  }
  void ProcessOn(size_t gpu, const std::string& owner) {
    registry_.AddEntity({.scope = Scope::kProcess,
                         .name = "GPU-" + std::to_string(gpu) + "/77",
                         .labels = {{"pid", "77"}, {"uuid", "GPU-" + std::to_string(gpu)}},
                         .attributes = {{"owner", owner}}});
  }
  void Reserved(double bytes) {
    const auto rank = registry_.AddEntity(
        {.scope = Scope::kRank, .name = "rank 0", .labels = {{"rank", "0"}}, .attributes = {}});
    Value(rank,
          model::Metric({"framework.memory", "state=reserved", "reserved_bytes",
                         "framework_memory_bytes", "By", model::MetricKind::kGauge, Scope::kRank, 1,
                         "Reserved.", "client"}),
          bytes);
  }
  model::Report Build(bool all = false) {
    if (!run_) run_ = builder_.Finish();
    return BuildReport(*run_, {.all_gpus = all});
  }
  static std::vector<int> Indexes(const model::Report& report) {
    std::vector<int> out;
    for (const model::GpuStats& gpu : report.gpus) out.push_back(gpu.gpu);
    return out;
  }
  static bool SaysUnknown(const model::Report& report) {
    return std::any_of(report.not_measured.begin(), report.not_measured.end(),
                       [](const auto& item) { return item.reason == kJobGpusUnknown; });
  }

  model::RunBuilder builder_;
  model::Registry registry_{builder_};
  std::vector<model::EntityId> gpus_;
  std::optional<model::Run> run_;
};

TEST_F(OwnGpusTest, TheEnvironmentsChoiceIsShownAndOthersOnDemand) {
  Gpus({"no", "yes", "no"});
  Rank(0, "");
  EXPECT_THAT(Indexes(Build()), ElementsAre(1));
  EXPECT_EQ(Build().epochs[0].own_gpus.gpus, std::vector<int32_t>{1});
  const model::Report all = Build(true);
  EXPECT_THAT(Indexes(all), ElementsAre(0, 1, 2));
  EXPECT_EQ(all.gpus[0].of_job, false);
  EXPECT_EQ(all.gpus[1].of_job, true);
  EXPECT_FALSE(SaysUnknown(all));
}

TEST_F(OwnGpusTest, WhatCouldNotBeReadOfOthersIsNotTold) {
  Gpus({"no", "yes"});
  for (const model::EntityId gpu : gpus_) {
    const auto series = registry_.AddSeries(gpu, model::gpu::kPower, kSecond);
    builder_.Write(model::SeriesState{.t_ns = kSecond,
                                      .series = series,
                                      .condition = model::SeriesCondition::kNotSupported,
                                      .detail = {}});
  }
  const auto subjects = [](const model::Report& report) {
    std::vector<std::string> out;
    for (const model::NotMeasured& item : report.not_measured) {
      if (item.reason == "not supported") out.push_back(item.subject);
    }
    return out;
  };
  EXPECT_THAT(subjects(Build()), ElementsAre("gpu1 power_w"));
  EXPECT_THAT(subjects(Build(true)), ElementsAre("gpu0, gpu1 power_w"));
}

TEST_F(OwnGpusTest, WhatARankNamesIsTheJobsEvenAgainstTheEnvironment) {
  Gpus({"yes", "no", "no"});
  Rank(0, "GPU-2");
  EXPECT_THAT(Indexes(Build()), ElementsAre(0, 2));
  EXPECT_EQ(Build().epochs[0].own_gpus.gpus, std::vector<int32_t>{2});
}

TEST_F(OwnGpusTest, WithoutAChoiceTheRanksNames) {
  Gpus({"", "", ""});
  Rank(0, "GPU-2");
  Rank(1, "GPU-0");
  EXPECT_THAT(Indexes(Build()), ElementsAre(0, 2));
}

TEST_F(OwnGpusTest, ARankWithoutNamesKeepsAllInView) {
  Gpus({"", "", ""});
  Rank(0, "GPU-2");
  Rank(1, "");
  EXPECT_THAT(Indexes(Build()), ElementsAre(0, 1, 2));
  EXPECT_TRUE(SaysUnknown(Build()));
}

TEST_F(OwnGpusTest, ElseThoseWithProcessesOfTheJob) {
  Gpus({"", "", ""});
  Rank(0, "");
  ProcessOn(1, "job");
  ProcessOn(2, "other");
  ProcessOn(0, "unknown");
  EXPECT_THAT(Indexes(Build()), ElementsAre(1));
}

TEST_F(OwnGpusTest, ElseAllWithANote) {
  Gpus({"", "", ""});
  Rank(0, "");
  const model::Report report = Build();
  EXPECT_THAT(Indexes(report), ElementsAre(0, 1, 2));
  EXPECT_EQ(report.gpus[0].of_job, std::nullopt);
  EXPECT_TRUE(SaysUnknown(report));
}

TEST_F(OwnGpusTest, AnImportedFileGetsNoAdviceForARecording) {
  builder_.Write(model::RunInfo{.run_id = "r",
                                .boot_id = {},
                                .anchor = {},
                                .attributes = {{"source", "wandb"}, {"name", "run.wandb"}}});
  Gpus({"", "", ""});
  Rank(0, "");
  const model::Report report = Build();
  EXPECT_THAT(Indexes(report), ElementsAre(0, 1, 2));
  EXPECT_FALSE(SaysUnknown(report));
  for (const model::NotMeasured& item : report.not_measured) {
    EXPECT_EQ(item.reason, "not in the imported file") << item.subject;
  }
  EXPECT_FALSE(report.not_measured.empty());
}

TEST_F(OwnGpusTest, OneGpuNeedsNoNote) {
  Gpus({""});
  Rank(0, "");
  EXPECT_FALSE(SaysUnknown(Build()));
  EXPECT_EQ(Build().epochs[0].own_gpus.gpus, std::vector<int32_t>{0});
}

TEST_F(OwnGpusTest, AnEnvironmentThatHidesAllShowsNone) {
  Gpus({"no", "no"});
  Rank(0, "");
  EXPECT_THAT(Indexes(Build()), IsEmpty());
  EXPECT_THAT(Build().epochs[0].gpus, IsEmpty());
}

TEST_F(OwnGpusTest, TheLedgerComesFromTheDriversList) {
  Gpus({""});
  Value(gpus_[0], model::gpu::kOwnMemory, 6e9);
  Value(gpus_[0], model::gpu::kOthersMemory, 3e9);
  Value(gpus_[0], model::gpu::kUnexplainedMemory, 1e9);
  Reserved(5e9);
  Rank(0, "");
  const model::MemoryLedger memory = Build().epochs[0].own_gpus.memory;
  EXPECT_EQ(memory.own_max_bytes, 6e9);
  EXPECT_EQ(memory.others_max_bytes, 3e9);
  EXPECT_EQ(memory.unexplained_max_bytes, 1e9);
  EXPECT_EQ(memory.own_source, "processes");
}

TEST_F(OwnGpusTest, TheAllocatorsReserveIsALowerBoundWhereTheDriverSaysNothing) {
  Gpus({""});
  Reserved(5e9);
  Rank(0, "");
  const model::MemoryLedger memory = Build().epochs[0].own_gpus.memory;
  EXPECT_EQ(memory.own_max_bytes, 5e9);
  EXPECT_EQ(memory.own_source, "allocator");
  EXPECT_EQ(memory.others_max_bytes, std::nullopt);
}

TEST_F(OwnGpusTest, TheReserveOfARankWithSeveralGpusIsNoOnes) {
  Gpus({"", ""});
  Reserved(5e9);
  Rank(0, "GPU-0,GPU-1");
  const model::MemoryLedger memory = Build().epochs[0].own_gpus.memory;
  EXPECT_EQ(memory.own_max_bytes, std::nullopt);
  EXPECT_EQ(memory.own_source, "");
}

TEST_F(OwnGpusTest, AChoiceThatHidesAllSaysWhy) {
  const auto reason = [](const model::Report& report) -> std::string {
    for (const auto& item : report.not_measured) {
      if (item.subject == "GPU") return item.reason;
    }
    return "not listed";
  };
  Gpus({"no", "no"});
  Rank(0, "");
  model::Event choice;
  choice.kind = model::EventKind::kSource;
  choice.name = "gpu.choice";
  choice.fields = {{"gpus", std::string()},
                   {"note", std::string("CUDA_VISIBLE_DEVICES: '7' ends the list")}};
  builder_.Write(choice);
  EXPECT_EQ(reason(Build()),
            "CUDA_VISIBLE_DEVICES: '7' ends the list; --all-gpus shows the 2 of this host");
}

TEST_F(OwnGpusTest, AFigureThatAGpuNeverHasIsNoReasonToLeaveItOut) {
  Gpus({"", ""});
  Rank(0, "");
  Value(gpus_[0], model::gpu::kPower, 300);
  const model::GpuGroup own = Build().epochs.at(0).own_gpus;
  EXPECT_THAT(own.measured, ElementsAre(0, 1));
  EXPECT_EQ(own.power_w, std::nullopt);
}

TEST_F(OwnGpusTest, ALostGpuIsLeftOutOfTheFiguresAndNamed) {
  Gpus({"", "", ""});
  Rank(0, "");
  for (const size_t gpu : {0, 2}) Value(gpus_[gpu], model::gpu::kPower, 300);
  // The lost one told its power before the epoch only.
  const auto power = registry_.AddSeries(gpus_[1], model::gpu::kPower, kSecond);
  builder_.Write(model::Samples{.t_ns = 0, .values = {{power, 300}}});
  model::Event lost;
  lost.kind = model::EventKind::kSource;
  lost.name = "gpu.lost";
  lost.fields = {{"gpu", int64_t{1}},
                 {"uuid", std::string("GPU-1")},
                 {"detail", std::string("GPU is lost (15)")}};
  builder_.Write(lost);
  const model::Report report = Build();
  const model::GpuGroup& own = report.epochs.at(0).own_gpus;
  EXPECT_THAT(own.gpus, ElementsAre(0, 1, 2));
  EXPECT_THAT(own.measured, ElementsAre(0, 2));
  EXPECT_DOUBLE_EQ(own.utilization_ratio.value_or(0), 0.2);
  EXPECT_EQ(own.power_w, 600);
  ASSERT_EQ(report.incidents.size(), 1U);
  const bool named =
      std::any_of(report.not_measured.begin(), report.not_measured.end(), [](const auto& item) {
        return base::StartsWith(item.subject, "gpu1 in epoch ") &&
               item.reason.find("gpu.lost at +") == 0 &&
               item.reason.find(": GPU is lost (15)") != std::string::npos;
      });
  EXPECT_TRUE(named);
}

}  // namespace
}  // namespace epochmeter::diagnose
