// SPDX-License-Identifier: Apache-2.0
#include "ingest/log/log_record.h"

#include <algorithm>
#include <array>

namespace epochmeter::ingest::log {

std::string_view RoleName(Role role) {
  static constexpr std::array<std::string_view, 26> kNames = {
      "other",           "epoch",      "epochs",     "step",      "total_steps",   "step_in_epoch",
      "steps_per_epoch", "loss",       "loss_part",  "metric",    "eval_metric",   "lr",
      "grad_norm",       "loss_scale", "step_time",  "data_time", "interval_time", "elapsed",
      "epoch_time",      "eta",        "throughput", "memory",    "batch_size",    "samples",
      "tokens",          "percent"};
  const auto index = static_cast<size_t>(role);
  return index < kNames.size() ? kNames[index] : "rank";
}

const LogValue* LogRecord::Search(Role role) const {
  const auto found = std::find_if(values.begin(), values.end(),
                                  [role](const LogValue& value) { return value.role == role; });
  return found == values.end() ? nullptr : &*found;
}

}  // namespace epochmeter::ingest::log
