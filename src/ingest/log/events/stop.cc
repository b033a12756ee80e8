// SPDX-License-Identifier: Apache-2.0
// Trainings that a person or their own rule stopped.
#include <array>

#include "base/strings.h"
#include "ingest/log/events/event_text.h"
#include "ingest/log/events/families.h"

namespace epochmeter::ingest::log {
namespace {

using std::string_view;

bool ReadInterrupt(const EventLine& line, EventContext& context) {
  string_view text = MessageOf(line.text);
  if (base::StartsWith(text, "^C")) text.remove_prefix(2);
  if (text != "KeyboardInterrupt" && !base::StartsWith(text, "KeyboardInterrupt: ")) return false;
  context.Emit(MakeEvent("keyboard_interrupt", line));
  return true;
}

// "Epoch 00018: early stopping", "Early stopping at epoch 12", "Early stopping triggered". Not the
// remark at the start that it may happen, nor a heading of best results.
bool ReadEarly(const EventLine& line, EventContext& context) {
  const string_view message = MessageOf(line.text);
  const std::string text = base::ToLowerAscii(message.substr(0, 200));
  const bool keras = base::StartsWith(text, "epoch ") && base::EndsWith(text, ": early stopping");
  size_t at = text.find("early stopping");
  if (at == std::string::npos) at = text.find("earlystopping");
  if (at == std::string::npos) return false;
  const string_view rest = string_view(text).substr(text.find("stopping", at) + 8);
  const bool said =
      at < 40 && (base::StartsWith(rest, " triggered") || base::StartsWith(rest, " at epoch ") ||
                  base::StartsWith(rest, " at step ") || base::StartsWith(rest, " at iteration ") ||
                  base::StartsWith(rest, ": stop training"));
  if (!keras && !said) return false;
  LogEvent event = MakeEvent("early_stopping", line);
  AddNumber(&event, "epoch", IntAfter(text, "epoch "));
  context.Emit(std::move(event));
  return true;
}

bool Read(const EventLine& line, EventContext& context) {
  return ReadInterrupt(line, context) || ReadEarly(line, context);
}

constexpr auto kAnchors = std::to_array<string_view>(
    {"KeyboardInterrupt", "earlystopping", "Earlystopping", "EarlyStopping", "earlyStopping"});

}  // namespace

const EventFamily kStopFamily = {"stop", kAnchors, Read};

}  // namespace epochmeter::ingest::log
