// SPDX-License-Identifier: Apache-2.0
#include "ingest/log/event_ledger.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "ingest/log/event_kinds.h"
#include "ingest/log/events/event_text.h"

namespace epochmeter::ingest::log {
namespace {

constexpr size_t kMostKinds = 256;
constexpr size_t kMostLines = 12;
constexpr size_t kMostMessages = 32;
constexpr size_t kMostMasked = 160;  // bytes by which messages differ

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsHexLetter(char c) { return (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

// Numbers, also hexadecimal ones, become '#'; what stands in quotes, and paths, become '*'.
std::string Masked(std::string_view text) {
  std::string masked;
  for (size_t i = 0; i < text.size() && masked.size() < kMostMasked;) {
    const char c = text[i];
    const size_t close = c == '\'' || c == '`' ? text.find(c, i + 1) : std::string_view::npos;
    if (close != std::string_view::npos && close - i < 200) {
      masked += '*';
      i = close + 1;
    } else if (c == '/') {
      masked += '*';
      while (i < text.size() &&
             std::string_view(" \t,;)]:'\"").find(text[i]) == std::string_view::npos)
        ++i;
    } else if (IsDigit(c)) {
      masked += '#';
      while (i < text.size() && (IsDigit(text[i]) || IsHexLetter(text[i]) || text[i] == '.')) ++i;
    } else {
      masked += c;
      ++i;
    }
  }
  return masked;
}

model::LogNumbers NumbersOf(const LogEvent& event) {
  model::LogNumbers numbers;
  for (const EventNumber& number : event.numbers) numbers.emplace_back(number.key, number.value);
  return numbers;
}

}  // namespace

std::string MaskedText(const LogEvent& event) {
  // All tracebacks have the same heading: what ended them tells them apart.
  const std::string_view type = FindText(event, "type");
  if (type.empty()) return Masked(event.text);
  return std::string(type) + ": " + Masked(FindText(event, "message"));
}

model::LogEventRow EventLedger::RowOf(const LogEvent& event) {
  const EventKind* kind = FindEventKind(event.kind);
  model::LogEventRow row;
  row.kind = event.kind;
  row.count = 1;
  row.file = event.place.file;
  row.lines = {event.place.line};
  row.rank = event.place.rank;
  row.wall_ns = event.place.wall_ns;
  row.text = event.text;
  row.numbers = NumbersOf(event);
  row.last_line = event.place.line;
  row.bad = kind == nullptr || kind->role != EventRole::kNote;
  return row;
}

void EventLedger::AddMessage(const LogEvent& event, Kind* kind) {
  std::vector<model::LogMessageRow>& rows = kind->row.messages;
  std::string masked = MaskedText(event);
  const auto found = kind->messages.find(masked);
  if (found != kind->messages.end()) {
    ++rows[found->second].count;
    rows[found->second].last_line = event.place.line;
    return;
  }
  if (rows.size() >= kMostMessages) return;
  kind->messages.emplace(std::move(masked), rows.size());
  std::string text = event.text;
  if (const std::string_view type = FindText(event, "type"); !type.empty()) {
    text = std::string(type);
    if (const auto message = FindText(event, "message"); !message.empty()) {
      text += ": ";
      text += message;
    }
  }
  rows.push_back({std::string(CutText(text, kMostEventText)), 1, event.place.file, event.place.line,
                  event.place.line, NumbersOf(event)});
}

void EventLedger::Add(const LogEvent& event) {
  if (!kinds_.contains(event.kind) && kinds_.size() >= kMostKinds) return;
  Kind& kind = kinds_[event.kind];
  if (kind.row.count == 0) {
    kind.row = RowOf(event);
  } else {
    ++kind.row.count;
    kind.row.last_line = event.place.line;
    if (kind.row.lines.size() < kMostLines) kind.row.lines.push_back(event.place.line);
  }
  AddMessage(event, &kind);
}

std::vector<model::LogEventRow> EventLedger::Take() {
  std::vector<model::LogEventRow> rows;
  for (auto& [name, kind] : kinds_) {
    // Events of blocks come when the block ends, behind those inside it.
    std::sort(kind.row.lines.begin(), kind.row.lines.end());
    std::stable_sort(kind.row.messages.begin(), kind.row.messages.end(),
                     [](const auto& a, const auto& b) { return a.count > b.count; });
    rows.push_back(std::move(kind.row));
  }
  kinds_.clear();
  std::sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
    return std::tuple(a.file, a.lines.front(), a.kind) <
           std::tuple(b.file, b.lines.front(), b.kind);
  });
  return rows;
}

}  // namespace epochmeter::ingest::log
