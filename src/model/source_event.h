// SPDX-License-Identifier: Apache-2.0
// Events of the recorder's own side: what a source, a device or a process of ours tells. They
// belong to no rank, epoch or step.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "model/record.h"

namespace epochmeter::model {

inline Event SourceEvent(int64_t t_ns, std::string name, std::vector<EventField> fields) {
  return {.t_ns = t_ns,
          .kind = EventKind::kSource,
          .rank = {},
          .epoch = {},
          .step = {},
          .name = std::move(name),
          .fields = std::move(fields)};
}

}  // namespace epochmeter::model
