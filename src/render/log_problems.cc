// SPDX-License-Identifier: Apache-2.0
#include "render/log_problems.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/strings.h"
#include "render/columns.h"
#include "render/finding_text.h"
#include "render/sparkline.h"
#include "render/units.h"

namespace epochmeter::render {
namespace {

using model::LogReport;

constexpr size_t kMostEvents = 16;
constexpr size_t kMostLines = 6;
constexpr size_t kMostAnomalies = 6;
constexpr size_t kMostMessages = 6;
constexpr uint64_t kFewestMessages = 5;  // of one kind
constexpr size_t kMostText = 300;
constexpr size_t kMostSayings = 3;  // of the messages of one kind of event

class Problems {
 public:
  Problems(const LogReport& report, Page* page) : report_(report), page_(*page) {}

  void Add() {
    AddCause();
    AddEvents();
    AddFindings();
    AddAnomalies();
    AddMessages();
  }

 private:
  std::string_view In(std::string_view en, std::string_view zh) const {
    return Said(en, zh, page_.options().language);
  }

  std::string Place(uint32_t file, uint64_t line) const {
    return LogPlaceText(report_, file, line, page_.options().language);
  }

  // Cut behind what is taken out: half of a secret does not look like one.
  std::string Short(std::string_view text) {
    const std::string shown = page_.Shown(text);
    if (shown.size() <= kMostText) return shown;
    return base::ToValidUtf8(std::string_view(shown).substr(0, kMostText)) + "...";
  }

  std::string_view Confidence(std::string_view word) const {
    return word == "high" ? In("high", "高") : word == "low" ? In("low", "低") : In("medium", "中");
  }

  void AddCause() {
    if (!report_.cause) return;
    const model::LogCause& cause = *report_.cause;
    page_.Title(In("What failed first", "最先出错的"));
    std::string place = Place(cause.file, cause.line);
    if (!cause.confidence.empty()) {
      place += fmt::format(", {} {}", In("confidence", "置信度"), Confidence(cause.confidence));
    }
    if (cause.rank) place += fmt::format(", {} {}", In("rank", "进程"), *cause.rank);
    page_.Paragraph(fmt::format("{} ({}): {}", cause.kind, place, Short(cause.text)), "  ", "    ",
                    Tint::kRed);
    if (!cause.why.empty()) page_.Paragraph(page_.Said(cause.why), "    ", "    ");
  }

  // Those that ended or spoiled the training first.
  void AddEvents() {
    if (report_.events.empty()) return;
    page_.Title(In("Events", "事件"));
    std::vector<const model::LogEventRow*> rows;
    for (const bool bad : {true, false}) {
      for (const model::LogEventRow& event : report_.events) {
        if (event.bad == bad) rows.push_back(&event);
      }
    }
    for (size_t i = 0; i < std::min(rows.size(), kMostEvents); ++i) AddEvent(*rows[i]);
    if (rows.size() > kMostEvents) {
      page_.Line(fmt::format("  {} {} {}", In("and", "及另外"), rows.size() - kMostEvents,
                             In("more", "个")));
    }
  }

  void AddEvent(const model::LogEventRow& event) {
    std::vector<std::string> lines;
    for (size_t i = 0; i < std::min(event.lines.size(), kMostLines); ++i) {
      lines.push_back(std::to_string(event.lines[i]));
    }
    std::string place = Place(event.file, event.lines.front());
    if (lines.size() > 1) {
      place = fmt::format("{} {}", In("lines", "行"), base::Join(lines, ", "));
      if (event.count > lines.size()) place += ", ...";
    }
    const std::string head = fmt::format("{} × {}", event.kind, event.count);
    page_.Paragraph(fmt::format("{} ({})",
                                page_.options().ascii
                                    ? ToAscii(event.kind) + " x " + std::to_string(event.count)
                                    : head,
                                place),
                    "  ", "    ", event.bad ? Tint::kRed : Tint::kYellow);
    AddWords(event);
    const std::string way = WayToOutOfMemory(event);
    if (!way.empty()) page_.Paragraph(way, "      ", "      ");
  }

  // What its messages say, the most frequent first.
  void AddWords(const model::LogEventRow& event) {
    if (event.messages.empty() && !event.text.empty()) {
      page_.Paragraph(Short(event.text), "      ", "      ", Tint::kDim);
    }
    for (size_t i = 0; i < std::min(event.messages.size(), kMostSayings); ++i) {
      const model::LogMessageRow& message = event.messages[i];
      const bool more = message.count > 1 && event.messages.size() > 1;
      const std::string count =
          more ? fmt::format("{} {} ", message.count, page_.options().ascii ? "x" : "×") : "";
      page_.Paragraph(count + Short(message.text), "      ", "        ", Tint::kDim);
    }
  }

  static const model::LogNumber* Find(const model::LogEventRow& event, std::string_view key) {
    for (const auto& [name, number] : event.numbers) {
      if (name == key) return &number;
    }
    return nullptr;
  }
  static std::optional<double> Number(const model::LogEventRow& event, std::string_view key) {
    const model::LogNumber* number = Find(event, key);
    if (number == nullptr) return {};
    if (const auto* whole = std::get_if<int64_t>(number)) return static_cast<double>(*whole);
    const auto* real = std::get_if<double>(number);
    return real != nullptr ? std::optional(*real) : std::nullopt;
  }

  // What was asked for and what was there; how printed memory went until then; the batch.
  std::string WayToOutOfMemory(const model::LogEventRow& event) const {
    std::vector<std::string> parts;
    const auto bytes = [&](std::string_view key, std::string_view en, std::string_view zh) {
      const auto number = Number(event, key);
      if (number) parts.push_back(fmt::format("{} {}", In(en, zh), *Bytes(*number)));
    };
    bytes("requested_bytes", "asked for", "申请");
    bytes("free_bytes", "free", "空闲");
    bytes("allocated_bytes", "in use by tensors", "张量占用");
    bytes("total_bytes", "in all", "总量");
    const auto from = Number(event, "memory_from_bytes"), to = Number(event, "memory_to_bytes");
    if (from && to) {
      std::string way = fmt::format("{} {} {} {}", In("printed memory went from", "打印的显存从"),
                                    *Bytes(*from), In("to", "到"), *Bytes(*to));
      if (const auto steps = Number(event, "memory_steps")) {
        way += fmt::format(" {} {:.15g} {}", In("in", "，历经"), *steps, In("steps", "步"));
      }
      if (const model::LogNumber* growth = Find(event, "memory_growth")) {
        const auto* word = std::get_if<std::string>(growth);
        if (word != nullptr) way += fmt::format(" ({})", GrowthWord(*word));
      }
      parts.push_back(std::move(way));
    }
    if (const auto batch = Number(event, "batch_size")) {
      std::string words = fmt::format("{} {:.15g}", In("batch size", "批大小"), *batch);
      if (const auto line = Number(event, "batch_size_line")) {
        words += fmt::format(" ({} {:.15g})", In("line", "行"), *line);
      }
      parts.push_back(std::move(words));
    }
    return base::Join(parts, In("; ", "；"));
  }

  std::string_view GrowthWord(std::string_view growth) const {
    if (growth == "leak") return In("it rose all the time", "一直在上升");
    if (growth == "spike") return In("the last ones needed far more", "最后几步所需骤增");
    return In("it did not grow", "没有增长");
  }

  void AddFindings() {
    if (report_.findings.empty()) return;
    page_.Title(In("Findings", "诊断"));
    for (const model::LogFinding& found : report_.findings) {
      const model::Finding& finding = found.finding;
      page_.Paragraph(
          fmt::format("{}: {} {}", SeverityWord(finding.severity, page_.options().language),
                      page_.Said(finding.title), RuleText(finding)),
          "  ", "    ", SeverityTint(finding.severity));
      page_.Paragraph(page_.Said(finding.summary), "    ", "    ");
      if (!found.lines.empty()) AddLines(found);
      if (!finding.advice.empty()) {
        page_.Paragraph(page_.Said(finding.advice.front().text),
                        fmt::format("    {} ", In("change:", "改法：")), "      ");
      }
    }
  }

  void AddLines(const model::LogFinding& found) {
    std::vector<std::string> lines;
    for (size_t i = 0; i < std::min(found.lines.size(), kMostLines); ++i) {
      lines.push_back(i == 0 ? Place(found.lines[i].file, found.lines[i].line)
                             : std::to_string(found.lines[i].line));
    }
    std::string words = base::Join(lines, ", ");
    if (found.lines.size() > kMostLines) words += ", ...";
    page_.Paragraph(words, fmt::format("    {} ", In("see:", "见：")), "      ");
  }

  // Whether an event tells it, too.
  bool IsEvent(const model::LogAnomaly& anomaly) const {
    const auto told = [&](const model::LogEventRow& event) {
      const auto& lines = event.lines;
      const bool here = std::find(lines.begin(), lines.end(), anomaly.line) != lines.end();
      return event.file == anomaly.file && (here || event.last_line == anomaly.line);
    };
    return std::any_of(report_.events.begin(), report_.events.end(), told);
  }

  void AddAnomalies() {
    std::vector<const model::LogAnomaly*> rows;
    for (const model::LogAnomaly& anomaly : report_.anomalies) {
      if (anomaly.kind == "burst" || !IsEvent(anomaly)) rows.push_back(&anomaly);
    }
    if (rows.empty()) return;
    page_.Title(In("Unusual messages", "异常消息"));
    for (size_t i = 0; i < std::min(rows.size(), kMostAnomalies); ++i) {
      const model::LogAnomaly& anomaly = *rows[i];
      const std::string_view kind =
          anomaly.kind == "burst" ? In("burst", "突发") : In("new", "新消息");
      page_.Paragraph(fmt::format("{} ({}): {}", kind, Place(anomaly.file, anomaly.line),
                                  Short(anomaly.example)),
                      "  ", "    ", anomaly.alarm == "error" ? Tint::kRed : Tint::kYellow);
      page_.Paragraph(page_.Said(anomaly.words), "      ", "      ", Tint::kDim);
    }
    if (rows.size() > kMostAnomalies) {
      page_.Line(fmt::format("  {} {} {}", In("and", "及另外"), rows.size() - kMostAnomalies,
                             In("more", "个")));
    }
  }

  // What came most often beside the records, and where in the log.
  void AddMessages() {
    std::vector<const model::LogTemplate*> rows;
    for (const model::LogTemplate& row : report_.messages.templates) {
      const bool told = row.count >= kFewestMessages && IsSentence(row.text);
      if (told && rows.size() < kMostMessages) rows.push_back(&row);
    }
    if (rows.empty()) return;
    page_.Title(In("Messages repeated most", "重复最多的消息"));
    const size_t curve = std::min<size_t>(16, page_.width() / 5);
    for (const model::LogTemplate* row : rows) {
      const std::vector<double> counts(row->counts.begin(), row->counts.end());
      const std::string line = Sparkline(counts, curve, page_.options().ascii);
      const std::string head = fmt::format("  {:>8}  {}  ", row->count, line);
      const size_t used = DisplayWidth(head);
      const size_t room = page_.width() > used + 16 ? page_.width() - used : 16;
      std::string words = CutTo(page_.Shown(row->text), room, page_.options().ascii);
      if (page_.options().ascii) words = ToAscii(words);
      page_.Line(fmt::format("  {:>8}  {}  {}", row->count, page_.Tinted(line, Tint::kCyan),
                             page_.Tinted(words, TintOf(row->alarm))));
    }
  }

  // Settings and frames of tracebacks are no messages, nor are tables.
  static bool IsSentence(std::string_view text) {
    if (text.starts_with("File *, line")) return false;
    size_t words = 0, letters = 0;
    for (size_t i = 0; i <= text.size(); ++i) {
      const char c = i < text.size() ? text[i] : ' ';
      const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c & 0x80) != 0;
      letters += letter ? 1 : 0;
      if (c != ' ') continue;
      words += letters >= 2 ? 1 : 0;
      letters = 0;
    }
    return words >= 2;
  }

  static Tint TintOf(std::string_view alarm) {
    return alarm == "error" ? Tint::kRed : alarm == "warning" ? Tint::kYellow : Tint::kNone;
  }

  const LogReport& report_;
  Page& page_;
};

}  // namespace

std::string LogPlaceText(const LogReport& report, uint32_t file, uint64_t line, Language language) {
  std::string text = fmt::format("{} {}", Said("line", "行", language), line);
  if (report.files.size() > 1 && file < report.files.size()) {
    const std::string& name = report.files[file].name;
    text = Plain(name.substr(name.rfind('/') + 1)) + " " + text;
  }
  return text;
}

void AddLogProblems(const LogReport& report, Page* page) { Problems(report, page).Add(); }

}  // namespace epochmeter::render
