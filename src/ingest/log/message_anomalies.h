// SPDX-License-Identifier: Apache-2.0
// What is unusual among a log's messages: bursts, and messages never seen before that come late.
// Needs no more than a TemplateTable; pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ingest/log/templates.h"
#include "model/message.h"

namespace epochmeter::ingest::log {

enum class AnomalyKind : uint8_t { kBurst, kNewMessage };

struct MessageAnomaly {
  AnomalyKind kind = AnomalyKind::kNewMessage;
  Alarm alarm = Alarm::kNone;
  std::string text;     // of the template
  std::string example;  // one message as printed
  uint32_t file = 0;
  uint64_t first_line = 0, last_line = 0;  // physical lines of the file
  uint64_t count = 0;                      // messages of this template in these lines
  uint64_t total = 0;                      // in the whole log
  uint32_t beside = 0;                     // other new messages in the lines next to it
  // Steps printed next before and next after it; absent where the log has none there.
  std::optional<double> step_before, step_after;
  model::Message why;
  double score = 0;
};

// The worst first, at most `most`.
//
// A burst: at least 20 messages of a template in one stretch (a 64th of the log or a few of them)
// and there, against the other stretches of the same template, over the median by 6 robust
// deviations (MAD) and 5 times the mean. More than two such stretches are a habit (every epoch),
// not a burst; what begins with the log is start-up. Messages that alarm nobody must also come
// elsewhere, so that a single evaluation is no burst.
//
// A new message: a template with words of a warning or an error whose first line lies behind a
// tenth of the log and behind the first step, and that does not come regularly from there on.
// Without such words: only where a quarter of the log before it brought almost nothing new, and
// training goes on behind it. Logs that keep bringing new texts (samples, prompts) have none.
std::vector<MessageAnomaly> FindMessageAnomalies(const TemplateTable& table, size_t most = 20);

}  // namespace epochmeter::ingest::log
