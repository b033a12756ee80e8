// SPDX-License-Identifier: Apache-2.0
// What writing the run file costs, as series of the entity "recorder". One thread.
#pragma once

#include <array>
#include <span>

#include "cli/record_writer.h"
#include "model/metric.h"
#include "model/registry.h"

namespace epochmeter::cli {

class WriterMetrics {
 public:
  // Borrows both.
  WriterMetrics(model::Registry& registry, model::Sink& sink) : registry_(registry), sink_(sink) {}
  static std::span<const model::MetricDef> Metrics();

  // Gives values each 10 s; nothing before the first flush.
  void Maintain(int64_t now_ns, const RecordWriter& writer);

 private:
  model::Registry& registry_;
  model::Sink& sink_;
  int64_t next_ns_ = 0;
};

}  // namespace epochmeter::cli
