// SPDX-License-Identifier: Apache-2.0
#include "ingest/log/log_messages.h"

#include <string>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "ingest/log/message_anomalies.h"

namespace epochmeter::ingest::log {
namespace {

constexpr size_t kMostTemplates = 32;

std::string AlarmName(Alarm alarm) {
  switch (alarm) {
    case Alarm::kError:
      return "error";
    case Alarm::kWarning:
      return "warning";
    case Alarm::kHint:
      return "hint";
    case Alarm::kNone:
      break;
  }
  return "none";
}

// Cut in the middle of a character, or no text at all, it would break a document.
std::string Printable(const std::string& text) { return base::ToValidUtf8(text); }

model::LogAnomaly RowOf(MessageAnomaly& anomaly) {
  return {.kind = anomaly.kind == AnomalyKind::kBurst ? "burst" : "new",
          .text = Printable(anomaly.text),
          .example = Printable(anomaly.example),
          .alarm = AlarmName(anomaly.alarm),
          .count = anomaly.count,
          .total = anomaly.total,
          .beside = anomaly.beside,
          .file = anomaly.file,
          .line = anomaly.first_line,
          .last_line = anomaly.last_line,
          .step_before = anomaly.step_before,
          .step_after = anomaly.step_after,
          .words = std::move(anomaly.why)};
}

}  // namespace

void ReportMessages(const TemplateTable& table, model::LogReport* report) {
  model::LogMessages& messages = report->messages;
  const std::vector<TemplateCounts> counts = table.Fold();
  for (const TemplateCounts& each : counts) messages.lines += each.count;
  messages.unclustered = counts[TemplateTable::kNotClustered].count;
  const size_t stretches = messages.lines == 0 ? 0 : (table.last_line() >> table.shift()) + 1;
  for (const MessageTemplate& each : table.templates()) {
    messages.kinds += each.part_of == 0 ? 1 : 0;
  }
  --messages.kinds;  // the first one stands for what is not clustered
  for (const uint32_t number : table.Top(kMostTemplates)) {
    const MessageTemplate& of = table.templates()[number];
    const TemplateCounts& count = counts[number];
    messages.templates.push_back(
        {.text = Printable(of.text),
         .example = Printable(of.example),
         .alarm = AlarmName(of.alarm),
         .count = count.count,
         .file = of.file,
         .line = of.first_line,
         .last_line = count.last_line,
         .wall_ns = of.first_wall_ns,
         .counts = {count.buckets.begin(),
                    count.buckets.begin() + static_cast<std::ptrdiff_t>(stretches)}});
  }
  for (size_t i = 0; i < stretches; ++i) {
    const uint64_t line = uint64_t{i} << table.shift();
    model::LogStretch stretch{.line = line == 0 ? 1 : line, .step = {}, .wall_ns = {}};
    for (uint32_t file = 0; file < report->files.size() && !stretch.step; ++file) {
      stretch.step = table.StepBefore(file, line);
      stretch.wall_ns = table.WallNsBefore(file, line);
    }
    messages.stretches.push_back(stretch);
  }
  for (MessageAnomaly& anomaly : FindMessageAnomalies(table)) {
    report->anomalies.push_back(RowOf(anomaly));
  }
}

}  // namespace epochmeter::ingest::log
