// SPDX-License-Identifier: Apache-2.0
// What is known of one end of memory, as a finding.
#pragma once

#include <optional>

#include "diagnose/leak.h"
#include "diagnose/say.h"
#include "model/oom_text.h"

namespace epochmeter::diagnose {

struct OomCase {
  const RankFacts* rank = nullptr;  // null: it is not known which
  int64_t t_ns = 0;
  model::OomText text;
  int count = 1;                       // how often it was told
  std::optional<int64_t> step, epoch;  // as the event says
  bool from_log = false;
};

// A device or an allocator of the host had no more to give.
model::Finding OomFinding(const Facts& facts, const OomCase& oom);
// The kernel killed a process of the job for memory, or it was killed as its limit was met; nothing
// when it was not.
std::optional<model::Finding> HostOomFinding(const Facts& facts);

}  // namespace epochmeter::diagnose
