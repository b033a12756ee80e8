// SPDX-License-Identifier: Apache-2.0
// Objects of JSON that stand over several lines, one key a line, as in trainer_state.json: each of
// the innermost ones becomes one line. One thread; bounded.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ingest/log/log_line.h"

namespace epochmeter::ingest::log {

// Everything else goes through as it is, in order.
class JsonBlock : public PayloadSink {
 public:
  // Borrows the sink.
  explicit JsonBlock(PayloadSink& sink) : sink_(sink) {}

  void OnPayload(const Payload& payload) override {
    // Nearly all lines: no object is open and none begins.
    if (held_.empty() && (payload.text.empty() || payload.text.back() != '{')) {
      sink_.OnPayload(payload);
      return;
    }
    Look(payload);
  }
  // No more lines come, or none for now: what is held goes through.
  void Flush();

 private:
  struct Held {
    std::string text;
    Payload payload;  // its text is not used
  };
  void Look(const Payload& payload);
  void Hold(const Payload& payload);
  void End(const Payload& payload);
  void PassOn(Payload payload, std::string_view text);

  PayloadSink& sink_;
  std::vector<Held> held_;  // from the brace on
  std::string source_;      // of all held ones
  size_t bytes_ = 0;
};

}  // namespace epochmeter::ingest::log
