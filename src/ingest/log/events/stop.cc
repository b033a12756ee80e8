// SPDX-License-Identifier: Apache-2.0
// Trainings that a person or their own rule stopped.
#include <algorithm>
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

// What stands behind "early stopping" where a training stops, not where it may do so.
bool SaysStopped(string_view rest, bool begins_line) {
  constexpr auto kBegins =
      std::to_array<string_view>({" triggered", " at epoch ", " at step ", " at iteration ",
                                  ": stop training", ": training stopped early"});
  const auto begins = [rest](string_view words) { return base::StartsWith(rest, words); };
  return std::any_of(kBegins.begin(), kBegins.end(), begins) ||
         (begins(": ") && Contains(rest, "did not improve")) || (begins_line && begins(" after "));
}

// Sentences of Lightning and YOLO, which name it otherwise.
bool SaysOtherwise(string_view text) {
  return Contains(text, "signaling trainer to stop") ||
         base::StartsWith(text, "stopping training early as no improvement");
}

// "Epoch 00018: early stopping", "Early stopping at epoch 12", "Early stopping triggered". Not the
// remark at the start that it may happen, nor a heading of best results.
bool ReadEarly(const EventLine& line, EventContext& context) {
  const string_view message = MessageOf(line.text);
  const std::string text = base::ToLowerAscii(message.substr(0, 300));
  size_t at = text.find("early stopping");
  if (at == std::string::npos) at = text.find("earlystopping");
  const bool keras = base::StartsWith(text, "epoch ") && base::EndsWith(text, ": early stopping");
  const bool said =
      at < 40 && SaysStopped(string_view(text).substr(text.find("stopping", at) + 8), at == 0);
  if (!keras && !said && !SaysOtherwise(text)) return false;
  LogEvent event = MakeEvent("early_stopping", line);
  AddNumber(&event, "epoch", IntAfter(text, "epoch "));
  context.Emit(std::move(event));
  return true;
}

bool Read(const EventLine& line, EventContext& context) {
  return ReadInterrupt(line, context) || ReadEarly(line, context);
}

constexpr auto kAnchors = std::to_array<string_view>(
    {"KeyboardInterrupt", "earlystopping", "Earlystopping", "EarlyStopping", "earlyStopping",
     "Stoppingtrainingearly", "SignalingTrainertostop"});

}  // namespace

const EventFamily kStopFamily = {"stop", kAnchors, Read};

}  // namespace epochmeter::ingest::log
