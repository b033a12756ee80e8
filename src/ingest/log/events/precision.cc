// SPDX-License-Identifier: Apache-2.0
// Steps that mixed precision skipped because gradients overflowed, and trainings that stop
// themselves over a loss that is not finite.
#include <algorithm>
#include <array>

#include "base/strings.h"
#include "ingest/log/events/event_text.h"
#include "ingest/log/events/families.h"

namespace epochmeter::ingest::log {
namespace {

using std::string_view;

std::optional<double> NumberAfter(string_view text, string_view mark) {
  const auto rest = After(text, mark);
  if (!rest) return {};
  string_view number =
      rest->substr(0, std::min(rest->find_first_not_of("0123456789.eE+"), rest->size()));
  while (!number.empty() && number.back() == '.') number.remove_suffix(1);
  return base::ParseDouble(number);
}

// DeepSpeed: "OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 65536, reducing to 32768"
bool ReadFp16(const EventLine& line, EventContext& context) {
  const string_view text = line.text;
  if (!Contains(text, "OVERFLOW! ") || !Contains(text, "kipping step")) return false;
  LogEvent event = MakeEvent("fp16_overflow", line);
  AddNumber(&event, "rank", IntAfter(text, "Rank "));
  AddNumber(&event, "scale", NumberAfter(text, "ttempted loss scale: "));
  AddNumber(&event, "new_scale", NumberAfter(text, "reducing to "));
  context.Emit(std::move(event));
  return true;
}

// fairseq: "gradient overflow detected, ignoring gradient, setting loss scale to: 64.0"; Apex:
// "Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 32768.0"
bool ReadGradient(const EventLine& line, EventContext& context) {
  const string_view text = line.text;
  if (!Contains(text, "verflow detected") && !Contains(text, "radient overflow.  Skipping") &&
      !Contains(text, "radient overflow. Skipping")) {
    return false;
  }
  LogEvent event = MakeEvent("grad_overflow", line);
  auto scale = NumberAfter(text, "setting loss scale to: ");
  if (!scale) scale = NumberAfter(text, "reducing loss scale to ");
  AddNumber(&event, "new_scale", scale);
  context.Emit(std::move(event));
  return true;
}

// "Loss is nan, stopping training"
bool ReadStop(const EventLine& line, EventContext& context) {
  const string_view message = MessageOf(line.text);
  if (!base::StartsWith(message, "Loss is ") || !Contains(message, ", stopping training"))
    return false;
  const string_view loss = WordAfter(message, "Loss is ", ",");
  if (loss != "nan" && loss != "inf" && loss != "-inf") return false;
  LogEvent event = MakeEvent("nan_loss", line);
  AddText(&event, "loss", loss == "nan" ? "NaN" : (loss == "inf" ? "Infinity" : "-Infinity"));
  AddNumber(&event, "stopped", std::optional<int64_t>(1));
  context.Emit(std::move(event));
  return true;
}

// TensorFlow's estimators: "Model diverged with loss = NaN."
bool ReadDiverged(const EventLine& line, EventContext& context) {
  if (!Contains(line.text, "odel diverged with loss = NaN")) return false;
  LogEvent event = MakeEvent("nan_loss", line);
  AddText(&event, "loss", "NaN");
  context.Emit(std::move(event));
  return true;
}

bool Read(const EventLine& line, EventContext& context) {
  return ReadDiverged(line, context) || ReadFp16(line, context) || ReadGradient(line, context) ||
         ReadStop(line, context);
}

constexpr auto kAnchors = std::to_array<string_view>(
    {"OVERFLOW", "verflowdetected", "radientoverflow", "stoppingtraining", "divergedwithloss"});

}  // namespace

const EventFamily kPrecisionFamily = {"precision", kAnchors, Read};

}  // namespace epochmeter::ingest::log
