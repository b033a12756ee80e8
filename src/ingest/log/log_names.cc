// SPDX-License-Identifier: Apache-2.0
#include "ingest/log/log_names.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/strings.h"

namespace epochmeter::ingest::log {
namespace {

constexpr size_t kMostNumberDigits = 4;  // of a rotation; longer ones are dates or ids
constexpr size_t kDateDigits = 8;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

std::string_view Digits(std::string_view text) {
  return text.substr(
      0, static_cast<size_t>(std::find_if_not(text.begin(), text.end(), IsDigit) - text.begin()));
}

std::string_view WithoutZeros(std::string_view digits) {
  return digits.substr(std::min(digits.find_first_not_of('0'), digits.size()));
}

// "20260131", "2026-01-31_12-00-00_123456", "20260131-120000": its digits; empty when it is none.
std::string DateDigits(std::string_view text) {
  std::string digits;
  for (const char c : text) {
    if (IsDigit(c)) {
      digits += c;
    } else if (c != '-' && c != '_' && c != ':' && c != 'T') {
      return {};
    }
  }
  const bool century = digits.substr(0, 2) == "19" || digits.substr(0, 2) == "20";
  return century && digits.size() >= kDateDigits && IsDigit(text.back()) ? digits : std::string();
}

// Where a date of the form that `text` ends with may begin, behind its '.' or '-'.
std::optional<size_t> DateBegin(std::string_view text) {
  for (size_t at = text.find_first_of(".-"); at != std::string_view::npos;
       at = text.find_first_of(".-", at + 1)) {
    if (at > 0 && !DateDigits(text.substr(at + 1)).empty()) return at;
  }
  return {};
}

std::optional<RotatedName> ReadName(std::string_view folder, std::string_view name) {
  RotatedName read;
  for (const std::string_view ending : {".gz", ".zst", ".zstd", ".xz", ".bz2"}) {
    if (!base::EndsWith(name, ending)) continue;
    name.remove_suffix(ending.size());
    read.packed = true;
    break;
  }
  const size_t dot = name.rfind('.');
  if (const auto at = DateBegin(name)) {
    read.date = DateDigits(name.substr(*at + 1));
    read.base = std::string(folder) + std::string(name.substr(0, *at));
    return read;
  }
  if (dot == std::string_view::npos || dot == 0) return {};
  const std::string_view last = name.substr(dot + 1);
  if (!last.empty() && last.size() <= kMostNumberDigits && Digits(last) == last) {
    read.number = base::ParseUint(last).value_or(0);
    read.base = std::string(folder) + std::string(name.substr(0, dot));
    return read;
  }
  // "train.2026-01-31_12-00-00.log"
  const std::string_view before = name.substr(0, dot);
  const size_t inner = before.find('.');
  if (inner == std::string_view::npos || inner == 0) return {};
  read.date = DateDigits(before.substr(inner + 1));
  if (read.date.empty()) return {};
  read.base =
      std::string(folder) + std::string(name.substr(0, inner)) + std::string(name.substr(dot));
  return read;
}

struct Part {
  RotatedName name;
  std::string path;
};

bool Older(const Part& a, const Part& b) {
  if (a.name.date.empty() != b.name.date.empty()) return !a.name.date.empty();
  if (a.name.date != b.name.date) return NaturalLess(a.name.date, b.name.date);
  if (a.name.number != b.name.number) return a.name.number > b.name.number;
  return a.name.packed < b.name.packed;
}

bool SameAge(const Part& a, const Part& b) {
  return a.name.date == b.name.date && a.name.number == b.name.number;
}

// Whether the names are those of a rotation. `parts` are sorted.
bool AreOneLog(const std::vector<Part>& parts, bool log_there) {
  const bool zero = std::any_of(parts.begin(), parts.end(), [](const Part& part) {
    return part.name.date.empty() && part.name.number == 0;
  });
  if (zero) return false;
  if (log_there) return true;
  const bool older_packed = std::all_of(parts.begin(), parts.end() - 1, [](const Part& part) {
    return part.name.date.empty() && part.name.packed;
  });
  return parts.size() > 1 && older_packed && !parts.back().name.packed;
}

}  // namespace

bool NaturalLess(std::string_view a, std::string_view b) {
  while (!a.empty() && !b.empty()) {
    if (IsDigit(a.front()) && IsDigit(b.front())) {
      const std::string_view first = Digits(a), second = Digits(b);
      const std::string_view x = WithoutZeros(first), y = WithoutZeros(second);
      if (x.size() != y.size()) return x.size() < y.size();
      if (x != y) return x < y;
      if (first.size() != second.size()) return first.size() < second.size();
      a.remove_prefix(first.size());
      b.remove_prefix(second.size());
      continue;
    }
    if (a.front() != b.front()) {
      if (a.front() == '/' || b.front() == '/') return a.front() == '/';
      return static_cast<unsigned char>(a.front()) < static_cast<unsigned char>(b.front());
    }
    a.remove_prefix(1);
    b.remove_prefix(1);
  }
  return a.size() < b.size();
}

std::optional<RotatedName> ReadRotatedName(std::string_view path) {
  const size_t slash = path.rfind('/');
  const size_t name = slash == std::string_view::npos ? 0 : slash + 1;
  return ReadName(path.substr(0, name), path.substr(name));
}

std::vector<LogParts> JoinRotated(const std::vector<std::string>& paths,
                                  const std::function<bool(const std::string&)>& is_there) {
  std::map<std::string, std::vector<Part>> groups;
  std::map<std::string, std::string> group_of;  // by path
  for (const std::string& path : paths) {
    if (auto name = ReadRotatedName(path)) groups[name->base].push_back({*name, path});
  }
  std::map<std::string, LogParts> joined;
  for (auto& [log, parts] : groups) {
    const bool named = std::find(paths.begin(), paths.end(), log) != paths.end();
    std::sort(parts.begin(), parts.end(), Older);
    if (!AreOneLog(parts, named || is_there(log))) continue;
    for (const Part& part : parts) group_of[part.path] = log;
    parts.erase(std::unique(parts.begin(), parts.end(), SameAge), parts.end());
    for (const Part& part : parts) joined[log].paths.push_back(part.path);
    if (!named) continue;
    joined[log].paths.push_back(log);
    group_of[log] = log;
  }
  std::vector<LogParts> logs;
  for (const std::string& path : paths) {
    const auto group = group_of.find(path);
    if (group == group_of.end()) {
      logs.push_back({{path}});
    } else if (const auto found = joined.find(group->second); found != joined.end()) {
      logs.push_back(std::move(found->second));
      joined.erase(found);
    }
  }
  return logs;
}

}  // namespace epochmeter::ingest::log
