// SPDX-License-Identifier: Apache-2.0
#include "diagnose/test_run.h"

#include <cmath>
#include <utility>

#include "base/check.h"
#include "diagnose/report_builder.h"

namespace epochmeter::diagnose {
namespace {

int64_t Ns(double seconds) { return std::llround(seconds * 1e9); }

}  // namespace

TestRun::TestRun(double length_s) : length_s_(length_s) {
  builder_.Write(model::RunInfo{.run_id = "test", .boot_id = {}, .anchor = {}, .attributes = {}});
}

model::EntityId TestRun::Known(model::Scope scope, const std::string& name, model::Labels labels) {
  return registry_.AddEntity(
      {.scope = scope, .name = name, .labels = std::move(labels), .attributes = {}});
}

model::EntityId TestRun::Gpu(int32_t index) {
  const std::string number = std::to_string(index);
  return Known(model::Scope::kGpu, "GPU-" + number, {{"gpu", number}, {"uuid", "GPU-" + number}});
}
model::EntityId TestRun::Host() { return Known(model::Scope::kHost, "host", {}); }
model::EntityId TestRun::Tree() { return Known(model::Scope::kProcess, "tree", {}); }
model::EntityId TestRun::Rank(int32_t rank) {
  const std::string number = std::to_string(rank);
  return Known(model::Scope::kRank, "rank:" + number, {{"rank", number}});
}
model::EntityId TestRun::Entity(model::EntityDef entity) {
  return registry_.AddEntity(std::move(entity));
}

void TestRun::Series(model::EntityId entity, const model::MetricDef& metric, double period_s,
                     const ValueAt& value) {
  const model::SeriesId series = registry_.AddSeries(entity, metric, Ns(period_s));
  for (int i = 0; i * period_s <= length_s_; ++i) {
    const std::optional<double> now = value(i * period_s);
    if (!now) continue;
    builder_.Write(model::Samples{.t_ns = Ns(i * period_s), .values = {{series, *now}}});
  }
}

void TestRun::Constant(model::EntityId entity, const model::MetricDef& metric, double period_s,
                       double value) {
  Series(entity, metric, period_s, [value](double) { return value; });
}

void TestRun::Event(double t_s, model::EventKind kind, std::optional<int32_t> rank,
                    std::string name, std::vector<model::EventField> fields) {
  model::Event event;
  event.t_ns = Ns(t_s);
  event.kind = kind;
  event.rank = rank;
  event.name = std::move(name);
  event.fields = std::move(fields);
  builder_.Write(event);
}

double TestRun::Train(const TestTraining& training) {
  using model::EventKind;
  const auto write = [&](double t_s, EventKind kind, int64_t epoch, std::string name = {}) {
    model::Event event;
    event.t_ns = Ns(t_s);
    event.kind = kind;
    event.rank = training.rank;
    event.epoch = epoch;
    event.name = std::move(name);
    builder_.Write(event);
  };
  Event(training.begin_s, EventKind::kTrainBegin, training.rank, {},
        {{"gpus", training.gpus},
         {"framework", training.framework},
         {"epochs", static_cast<int64_t>(training.epochs)}});
  double t_s = training.begin_s + 0.5;
  int step = 0;
  for (int epoch = 0; epoch < training.epochs; ++epoch) {
    write(t_s, EventKind::kEpochBegin, epoch);
    for (int i = 0; i < training.steps; ++i, ++step) {
      model::Event event;
      const double duration = training.duration_s ? training.duration_s(step) : 0.1;
      t_s += duration;
      event.t_ns = Ns(t_s);
      event.kind = EventKind::kStep;
      event.rank = training.rank;
      event.epoch = epoch;
      event.step = step + 1;
      event.fields = {{"batch_size", training.batch_size}};
      if (training.duration_s) event.fields.push_back({"duration_s", duration});
      if (training.data_wait_s) event.fields.push_back({"data_wait_s", training.data_wait_s(step)});
      if (training.loss) event.fields.push_back({"scalar.loss", training.loss(step)});
      builder_.Write(event);
    }
    if (training.ends || epoch + 1 < training.epochs) write(t_s, EventKind::kEpochEnd, epoch);
    if (training.eval_s > 0) {
      write(t_s, EventKind::kPhaseBegin, epoch, "eval");
      t_s += training.eval_s;
      write(t_s, EventKind::kPhaseEnd, epoch, "eval");
    }
  }
  if (training.ends) Event(t_s, EventKind::kTrainEnd, training.rank);
  return t_s;
}

const Facts& TestRun::Finish(const Limits& limits) {
  EPM_CHECK(!run_);
  end_.t_ns = Ns(length_s_);
  builder_.Write(end_);
  run_ = builder_.Finish();
  limits_ = limits;
  report_ = BuildReport(*run_, {.limits = limits_});
  return facts_.emplace(*run_, report_, limits_);
}

std::vector<model::Finding> TestRun::Judge(const RuleDef& rule, const Limits& limits) {
  return rule.Judge(Finish(limits)).findings;
}

std::string TestRun::NotApplicableReason(const RuleDef& rule, const Limits& limits) {
  return rule.Judge(Finish(limits)).not_applicable.en;
}

std::string SeverityOf(const std::vector<model::Finding>& findings) {
  if (findings.empty()) return "none";
  if (findings.size() > 1) return "several";
  return std::string(model::SeverityName(findings.front().severity));
}

}  // namespace epochmeter::diagnose
