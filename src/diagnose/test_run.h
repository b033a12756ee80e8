// SPDX-License-Identifier: Apache-2.0
// Synthetic runs for the tests of rules. Times are seconds from the start of the recording.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "diagnose/facts.h"
#include "diagnose/rules.h"
#include "model/registry.h"
#include "model/run_builder.h"

namespace epochmeter::diagnose {

// A training that tells everything: `epochs` epochs of `steps` steps, from `begin_s` on. Functions
// get the step's number over the training, from 0; an empty one stands for "never told".
struct TestTraining {
  int32_t rank = 0;
  int epochs = 4;
  int steps = 100;
  double begin_s = 1;
  std::string gpus = "0";
  std::string framework = "torch";
  std::function<double(int step)> duration_s = [](int) { return 0.1; };
  std::function<double(int step)> data_wait_s = [](int) { return 0.0; };
  std::function<double(int step)> loss;
  double batch_size = 32;
  double eval_s = 0;  // after each epoch
  bool ends = true;   // train_end and the last epoch_end are told
};

class TestRun {
 public:
  explicit TestRun(double length_s);

  model::EntityId Gpu(int32_t index);
  model::EntityId Host();
  model::EntityId Tree();
  // The allocator of a rank.
  model::EntityId Rank(int32_t rank);
  model::EntityId Entity(model::EntityDef entity);

  // A sample each `period_s` over the whole run, where `value` has one at that time.
  using ValueAt = std::function<std::optional<double>(double t_s)>;
  void Series(model::EntityId entity, const model::MetricDef& metric, double period_s,
              const ValueAt& value);
  void Constant(model::EntityId entity, const model::MetricDef& metric, double period_s,
                double value);
  // Writes the training's events; gives the time at which it ended.
  double Train(const TestTraining& training);
  void Event(double t_s, model::EventKind kind, std::optional<int32_t> rank, std::string name = {},
             std::vector<model::EventField> fields = {});
  void Write(const model::Record& record) { builder_.Write(record); }
  // How the training ends, at the end of the run; with exit code 0 when this is not called.
  void EndWith(model::RunEnd end) { end_ = std::move(end); }

  // Ends the run and has one rule judge it. Once.
  std::vector<model::Finding> Judge(const RuleDef& rule, const Limits& limits = {});
  // The same with the reason of not_applicable: empty when it could judge.
  std::string NotApplicableReason(const RuleDef& rule, const Limits& limits = {});
  // Ends the run; it and its report live as long as this.
  const Facts& Finish(const Limits& limits = {});

 private:
  model::EntityId Known(model::Scope scope, const std::string& name, model::Labels labels);
  double length_s_;
  model::RunEnd end_{.reason = "exited", .exit_code = 0};
  model::RunBuilder builder_;
  model::Registry registry_{builder_};
  std::optional<model::Run> run_;
  model::Report report_;
  Limits limits_;
  std::optional<Facts> facts_;
};

// Severity of the only finding; "none" without any.
std::string SeverityOf(const std::vector<model::Finding>& findings);

}  // namespace epochmeter::diagnose
