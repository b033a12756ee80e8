// SPDX-License-Identifier: Apache-2.0
#include "ingest/log/events/event_text.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "base/strings.h"
#include "ingest/log/line_prefix.h"

namespace epochmeter::ingest::log {
namespace {

using std::string_view;

bool IsUpper(char c) { return c >= 'A' && c <= 'Z'; }
bool IsAlpha(char c) { return IsUpper(c) || (c >= 'a' && c <= 'z'); }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsTypeByte(char c) { return IsAlpha(c) || IsDigit(c) || c == '_' || c == '.'; }

// How the names of exceptions end. A name with a module in front needs no such end.
constexpr auto kEnds =
    std::to_array<string_view>({"Error", "Exception", "Interrupt", "Exit", "Warning", "NotMet",
                                "Timeout", "Iteration", "Failure", "Failed", "Abort", "Group"});

bool IsExceptionName(string_view name, bool has_message) {
  const size_t dot = name.rfind('.');
  const string_view last = dot == string_view::npos ? name : name.substr(dot + 1);
  if (last.empty() || !IsAlpha(name.front())) return false;
  const bool known = std::any_of(kEnds.begin(), kEnds.end(),
                                 [last](string_view end) { return base::EndsWith(last, end); });
  if (known) return IsUpper(last.front()) && last.size() > 4;
  return has_message && dot != string_view::npos && IsUpper(last.front()) &&
         name.find("..") == string_view::npos;
}

}  // namespace

bool Contains(string_view text, string_view part) { return text.find(part) != string_view::npos; }

std::optional<string_view> After(string_view text, string_view mark) {
  const size_t at = text.find(mark);
  if (at == string_view::npos) return {};
  string_view rest = text.substr(at + mark.size());
  rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
  return rest;
}

std::optional<int64_t> IntAtBegin(string_view text) {
  constexpr size_t kMostDigits = 19;
  size_t end = !text.empty() && text.front() == '-' ? 1 : 0;
  while (end < text.size() && end < kMostDigits && IsDigit(text[end])) ++end;
  return base::ParseInt(text.substr(0, end));
}

std::optional<int64_t> IntAfter(string_view text, string_view mark) {
  const auto rest = After(text, mark);
  return rest ? IntAtBegin(*rest) : std::nullopt;
}

string_view WordAfter(string_view text, string_view mark, string_view ends) {
  const auto rest = After(text, mark);
  if (!rest) return {};
  const size_t space = std::min(rest->find_first_of(" \t"), rest->size());
  return rest->substr(0, std::min(rest->find_first_of(ends), space));
}

string_view Between(string_view text, string_view begin, string_view end, size_t most) {
  const size_t at = text.find(begin);
  if (at == string_view::npos) return {};
  const string_view rest = text.substr(at + begin.size());
  const size_t stop = rest.find(end);
  if (stop == string_view::npos) return {};
  return CutText(rest.substr(0, stop), most);
}

string_view MessageOf(string_view text) {
  const size_t at = ReadLinePrefix(text.substr(0, 4096)).message;
  return base::Trim(text.substr(std::min(at, text.size())));
}

bool IsProse(string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  if (text.size() < 2) return false;
  if (text.substr(0, 11) == "| WARNING: ") return false;  // fairseq of old
  if (string_view("#>|`\"'").find(text[0]) != string_view::npos) return true;
  if (text[0] == '/' && text[1] == '/') return true;
  return string_view("+-*").find(text[0]) != string_view::npos &&
         (text[1] == ' ' || text[1] == '\t');
}

bool IsGlogWarning(string_view text) {
  if (text.size() < 24 || text[0] != 'W' || !IsDigit(text[1])) return false;
  const size_t close = text.substr(0, 200).find("] ");
  return close != string_view::npos && text.substr(0, close).find(':') != string_view::npos;
}

std::optional<ExceptionText> ReadExceptionText(string_view text) {
  size_t end = 0;
  while (end < text.size() && end < 200 && IsTypeByte(text[end])) ++end;
  const string_view name = text.substr(0, end);
  if (name.empty()) return {};
  if (end < text.size() && text[end] == '(') {  // RayTaskError(ValueError)
    const size_t close = text.find(')', end);
    if (close == string_view::npos || close - end > 100) return {};
    end = close + 1;
  }
  const string_view rest = text.substr(end);
  const bool has_message = !rest.empty() && rest.front() == ':';
  if (!has_message && !base::Trim(rest).empty()) return {};
  if (!IsExceptionName(name, has_message)) return {};
  return ExceptionText{text.substr(0, end), has_message ? base::Trim(rest.substr(1)) : ""};
}

string_view CutText(string_view text, size_t most) {
  if (text.size() <= most) return text;
  size_t end = most;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80) --end;
  return text.substr(0, end);
}

LogEvent MakeEvent(string_view kind, const EventLine& line) {
  LogEvent event;
  event.kind = kind;
  event.place = line.place;
  event.last_line = line.place.line;
  event.text = CutText(MessageOf(line.text), kMostEventText);
  return event;
}

void AddNumber(LogEvent* event, string_view key, std::optional<int64_t> value) {
  if (value) event->numbers.push_back({std::string(key), *value});
}

void AddNumber(LogEvent* event, string_view key, std::optional<double> value) {
  if (value) event->numbers.push_back({std::string(key), *value});
}

void AddText(LogEvent* event, string_view key, string_view value) {
  if (!value.empty()) event->numbers.push_back({std::string(key), std::string(value)});
}

std::optional<int64_t> FindInt(const LogEvent& event, string_view key) {
  for (const EventNumber& number : event.numbers) {
    if (number.key != key) continue;
    if (const auto* value = std::get_if<int64_t>(&number.value)) return *value;
  }
  return {};
}

string_view FindText(const LogEvent& event, string_view key) {
  for (const EventNumber& number : event.numbers) {
    if (number.key != key) continue;
    if (const auto* value = std::get_if<std::string>(&number.value)) return *value;
  }
  return {};
}

}  // namespace epochmeter::ingest::log
