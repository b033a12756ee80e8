// SPDX-License-Identifier: Apache-2.0
// Errors of XLA as JAX raises them. The runtime's own line before ("Execution of replica 0 failed")
// tells the same and is no event.
#include <array>

#include "base/strings.h"
#include "ingest/log/events/event_text.h"
#include "ingest/log/events/families.h"

namespace epochmeter::ingest::log {
namespace {

using std::string_view;

bool Read(const EventLine& line, EventContext& context) {
  const auto exception = ReadExceptionText(MessageOf(line.text));
  if (!exception) return false;
  if (!base::EndsWith(exception->type, "XlaRuntimeError") &&
      !base::EndsWith(exception->type, "JaxRuntimeError")) {
    return false;
  }
  const size_t colon = exception->message.find(": ");
  if (colon == string_view::npos || colon > 40) return false;
  LogEvent event = MakeEvent("xla_error", line);
  AddText(&event, "status", exception->message.substr(0, colon));
  AddText(&event, "message", CutText(exception->message.substr(colon + 2), 300));
  context.Emit(std::move(event));
  return true;
}

constexpr auto kAnchors = std::to_array<string_view>({"XlaRuntimeError", "JaxRuntimeError"});

}  // namespace

const EventFamily kXlaFamily = {"xla", kAnchors, Read};

}  // namespace epochmeter::ingest::log
