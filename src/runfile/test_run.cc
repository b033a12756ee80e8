// SPDX-License-Identifier: Apache-2.0
#include "runfile/test_run.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <unordered_map>

#include "base/strings.h"
#include "model/run_builder.h"
#include "runfile/record_text.h"

namespace epochmeter::runfile {
namespace {

using model::Record;

constexpr int64_t kStart = 1'000'000'000'000;

class RunMaker {
 public:
  RunMaker(uint64_t seed, int series) : random_(seed) {
    records_.push_back(model::RunInfo{
        .run_id = "run " + std::to_string(seed),
        .boot_id = "boot",
        .anchor = {.mono_ns = kStart, .boot_ns = kStart + 5, .wall_ns = 1'800'000'000'000'000'000},
        .attributes = {{"command", "python train.py"}, {"host", "h\xFF"}}});
    for (uint32_t i = 0; i < 2; ++i) records_.push_back(random_.Entity(i));
    for (int i = 0; i < series; ++i) {
      series_.push_back(
          random_.Series(static_cast<model::SeriesId>(i), static_cast<model::EntityId>(i % 2)));
      records_.push_back(series_.back());
      level_.push_back(random_.Real(0, 1000));
    }
  }

  std::vector<Record> Run(int ticks) {
    int64_t t_ns = kStart;
    for (int tick = 0; tick < ticks; ++tick) {
      // Jitter, a hole now and then, and rarely a step back in time.
      t_ns += 1'000'000'000 + static_cast<int64_t>(random_.Below(2'000'000));
      if (random_.Chance(0.02)) t_ns += 60'000'000'000;
      if (random_.Chance(0.01)) t_ns -= 3'000'000'000;
      Samples(t_ns);
      Steps(t_ns);
      Others(t_ns);
    }
    return std::move(records_);
  }

 private:
  double Value(size_t i) {
    const double resolution = series_[i].metric.resolution;
    if (i % 3 == 1)
      return model::ValueFromRaw(model::RawFromValue(level_[i], resolution), resolution);
    if (resolution == 0 && random_.Chance(0.002)) return std::nan("");
    const double value = level_[i] + random_.Real(-50, 50);
    return model::ValueFromRaw(model::RawFromValue(value, resolution), resolution);
  }

  void Samples(int64_t t_ns) {
    model::Samples all{.t_ns = t_ns, .values = {}};
    for (size_t i = 0; i < series_.size(); ++i) {
      if (i % 4 == 3 && random_.Chance(0.5)) continue;
      all.values.push_back({.series = series_[i].id, .value = Value(i)});
    }
    records_.push_back(all);
  }

  void Steps(int64_t t_ns) {
    for (int i = 0; i < 3; ++i) {
      model::Event step{.t_ns = t_ns + i * 1000,
                        .kind = model::EventKind::kStep,
                        .rank = 0,
                        .epoch = step_ / 100,
                        .step = step_,
                        .name = "",
                        .fields = {}};
      ++step_;
      step.fields.push_back({.key = "duration_s", .value = random_.Real(0.1, 0.2)});
      step.fields.push_back({.key = "batch_size", .value = int64_t{64}});
      step.fields.push_back(
          {.key = "data_wait_s", .value = static_cast<double>(random_.Below(1000)) / 1e6});
      records_.push_back(step);
    }
  }

  void Others(int64_t t_ns) {
    if (random_.Chance(0.2)) records_.push_back(random_.Event(t_ns));
    if (random_.Chance(0.3)) {
      records_.push_back(model::LogText{.t_ns = t_ns, .stream = 1, .text = random_.Text()});
    }
    if (random_.Chance(0.05)) {
      records_.push_back(
          model::SeriesState{.t_ns = t_ns,
                             .series = static_cast<model::SeriesId>(random_.Below(series_.size())),
                             .condition = model::SeriesCondition::kError,
                             .detail = random_.Text()});
    }
    if (random_.Chance(0.03)) records_.push_back(random_.Loss(t_ns));
    if (random_.Chance(0.03)) {
      records_.push_back(
          model::Anchor{.clocks = {.mono_ns = t_ns, .boot_ns = t_ns + 5, .wall_ns = t_ns + 77}});
    }
  }

  RandomRecords random_;
  std::vector<Record> records_;
  std::vector<model::SeriesDef> series_;
  std::vector<double> level_;
  int64_t step_ = 0;
};

bool SameBits(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::bit_cast<uint64_t>(a[i]) != std::bit_cast<uint64_t>(b[i])) return false;
  }
  return true;
}

void ExpectNear(double actual, double expected, double scale) {
  if (std::isnan(expected)) {
    EXPECT_TRUE(std::isnan(actual));
  } else {
    EXPECT_NEAR(actual, expected, 1e-9 * scale);
  }
}

void ExpectSameSummary(const model::Summary& got, const model::Summary& want, model::SeriesId id) {
  ASSERT_EQ(got.count, want.count) << "series " << id;
  EXPECT_EQ(got.t_first_ns, want.t_first_ns);
  EXPECT_EQ(got.t_last_ns, want.t_last_ns);
  const double scale = 1 + std::fabs(want.sum) + std::fabs(want.weighted_sum);
  ExpectNear(got.first, want.first, 0);
  ExpectNear(got.last, want.last, 0);
  ExpectNear(got.min, want.min, 0);
  ExpectNear(got.max, want.max, 0);
  ExpectNear(got.sum, want.sum, scale);
  ExpectNear(got.weight_s, want.weight_s, 1 + want.weight_s);
  ExpectNear(got.weighted_sum, want.weighted_sum, scale);
}

}  // namespace

std::vector<Record> MakeRun(uint64_t seed, int ticks, int series) {
  return RunMaker(seed, series).Run(ticks);
}

model::Run BuildRun(const std::vector<Record>& records) {
  model::RunBuilder builder;
  for (const Record& record : records) builder.Write(record);
  return builder.Finish();
}

std::string Fingerprint(const model::Run& run) {
  std::string out;
  for (const auto& state : run.states) out += RecordToText(state) + "\n";
  for (const auto& event : run.events) out += RecordToText(event) + "\n";
  for (const auto& text : run.log) out += RecordToText(text) + "\n";
  for (const auto& [rank, table] : run.steps) {
    for (size_t i = 0; i < table.size(); ++i) {
      out += fmt::format("step {} {} {}", table.t_ns[i], table.epoch[i], table.step[i]);
      for (const auto& [name, column] : table.columns) {
        // A column that begins later is absent in a prefix of the run.
        if (!std::isnan(column[i])) out += fmt::format(" {}={}", name, column[i]);
      }
      out += "\n";
    }
  }
  for (size_t id = 0; id < run.series.size(); ++id) {
    const auto column = run.store->Read(static_cast<model::SeriesId>(id), {});
    if (!column.ok()) return column.error().Message();
    for (size_t i = 0; i < column->t_ns.size(); ++i) {
      out +=
          fmt::format("{}:{}:{}\n", id, column->t_ns[i], std::bit_cast<uint64_t>(column->value[i]));
    }
  }
  return out;
}

bool IsPartOf(std::string_view part, std::string_view whole) {
  std::unordered_map<std::string_view, int> lines;
  for (const std::string_view line : base::Split(whole, '\n')) ++lines[line];
  for (const std::string_view line : base::Split(part, '\n')) {
    if (--lines[line] < 0) return false;
  }
  return true;
}

void ExpectSameRecords(const model::Run& actual, const model::Run& expected) {
  EXPECT_EQ(actual.info, expected.info);
  EXPECT_EQ(actual.anchors, expected.anchors);
  EXPECT_EQ(actual.entities, expected.entities);
  EXPECT_EQ(actual.series, expected.series);
  EXPECT_EQ(actual.states, expected.states);
  EXPECT_EQ(actual.events, expected.events);
  EXPECT_EQ(actual.log, expected.log);
  ASSERT_EQ(actual.steps.size(), expected.steps.size());
  for (const auto& [rank, table] : expected.steps) {
    const model::StepTable& other = actual.steps.at(rank);
    EXPECT_EQ(other.t_ns, table.t_ns);
    EXPECT_EQ(other.epoch, table.epoch);
    EXPECT_EQ(other.step, table.step);
    ASSERT_EQ(other.columns.size(), table.columns.size());
    for (const auto& [name, column] : table.columns) {
      EXPECT_TRUE(SameBits(other.columns.at(name), column)) << name;
    }
  }
  EXPECT_EQ(actual.span.begin_ns, expected.span.begin_ns);
  EXPECT_EQ(actual.span.end_ns, expected.span.end_ns);
}

void ExpectSameValues(const model::Run& actual, const model::Run& expected) {
  ASSERT_EQ(actual.series.size(), expected.series.size());
  for (const model::SeriesDef& def : expected.series) {
    const auto got = actual.store->Read(def.id, {});
    const auto want = expected.store->Read(def.id, {});
    ASSERT_TRUE(got.ok()) << got.error().Message();
    EXPECT_EQ(got->t_ns, want->t_ns) << "series " << def.id;
    EXPECT_TRUE(SameBits(got->value, want->value)) << "series " << def.id;
  }
}

void ExpectSameSummaries(const model::Run& actual, const model::Run& expected,
                         RandomRecords& random, int intervals) {
  const auto length = static_cast<uint64_t>(expected.span.end_ns - expected.span.begin_ns + 2);
  std::vector<model::Interval> all = {{}};
  while (all.size() < static_cast<size_t>(intervals)) {
    const int64_t a = expected.span.begin_ns + static_cast<int64_t>(random.Below(length));
    const int64_t b = expected.span.begin_ns + static_cast<int64_t>(random.Below(length));
    all.push_back({.begin_ns = std::min(a, b), .end_ns = std::max(a, b)});
  }
  for (const model::Interval interval : all) {
    const auto id = static_cast<model::SeriesId>(random.Below(expected.series.size()));
    const auto got = actual.store->Summarize(id, interval);
    const auto want = expected.store->Summarize(id, interval);
    ASSERT_TRUE(got.ok() && want.ok());
    ExpectSameSummary(*got, *want, id);
  }
  all.resize(std::min<size_t>(all.size(), 20));
  std::vector<model::SeriesId> ids;
  for (const model::SeriesDef& def : expected.series) ids.push_back(def.id);
  const auto got = actual.store->SummarizeAll(ids, all);
  const auto want = expected.store->SummarizeAll(ids, all);
  ASSERT_TRUE(got.ok() && want.ok());
  ASSERT_EQ(got->size(), ids.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    ASSERT_EQ((*got)[i].size(), all.size());
    for (size_t k = 0; k < all.size(); ++k) ExpectSameSummary((*got)[i][k], (*want)[i][k], ids[i]);
  }
}

}  // namespace epochmeter::runfile
