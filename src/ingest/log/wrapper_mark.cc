// SPDX-License-Identifier: Apache-2.0
#include "ingest/log/wrapper_mark.h"

#include <algorithm>
#include <array>

#include "base/strings.h"
#include "ingest/wall_time.h"

namespace epochmeter::ingest::log {
namespace {

constexpr size_t kMostToken = 96;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
constexpr std::array<bool, 256> kName = [] {
  std::array<bool, 256> table{};
  for (size_t i = 0; i < table.size(); ++i) {
    const size_t lower = i | 0x20;
    table[i] = (lower >= 'a' && lower <= 'z') || (i >= '0' && i <= '9') || i == '-' || i == '.' ||
               i == '_';
  }
  return table;
}();
bool IsName(char c) { return kName[static_cast<unsigned char>(c)]; }

// Where a run of bytes of a kind that begins at `at` ends.
template <typename Is>
size_t RunEnd(std::string_view text, size_t at, Is is) {
  const size_t most = std::min(text.size(), at + kMostToken);
  while (at < most && is(text[at])) ++at;
  return at;
}

char At(std::string_view text, size_t at) { return at < text.size() ? text[at] : '\0'; }

// A line that is empty behind its mark may have lost the space at its end.
size_t BehindSpace(std::string_view text, size_t at) { return At(text, at) == ' ' ? at + 1 : at; }
bool EndsOrSpace(std::string_view text, size_t at) { return at == text.size() || text[at] == ' '; }

std::optional<int32_t> Number(std::string_view digits) {
  const std::optional<int64_t> value = base::ParseInt(digits);
  if (!value || *value < 0 || *value > 9'999'999) return std::nullopt;
  return static_cast<int32_t>(*value);
}

// "[pod/NAME/CONTAINER] "
WrapperMark ReadPod(std::string_view text) {
  constexpr size_t kMost = 400;
  const size_t end = text.substr(0, kMost).find(']');
  if (end == std::string_view::npos || !EndsOrSpace(text, end + 1)) return {};
  const std::string_view source = text.substr(1, end - 1);
  const bool name = std::all_of(source.begin(), source.end(),
                                [](char c) { return IsName(c) || c == '/' || c == ':'; });
  if (!name || std::count(source.begin(), source.end(), '/') != 2) return {};
  return {.kind = WrapperKind::kPod, .length = BehindSpace(text, end + 1), .source = source};
}

// "<stdout>:" at `at`: where it ends, else 0.
size_t OutputEnd(std::string_view text, size_t at, bool* error_stream) {
  for (const std::string_view name : {"<stdout>:", "<stderr>:", "<stddiag>:"}) {
    if (text.substr(at, name.size()) != name) continue;
    *error_stream = name != "<stdout>:";
    return at + name.size();
  }
  return 0;
}

// "[1,0]<stderr>:" of Open MPI, "[prterun-node-1@1,0]<stderr>: " of its launcher since version 5.
WrapperMark ReadMpi(std::string_view text, size_t begin) {
  if (IsDigit(At(text, begin + 1)) && At(text, RunEnd(text, begin + 1, IsDigit)) != ',') return {};
  const size_t close = text.substr(begin, kMostToken).find("]<std");
  const size_t comma = text.substr(begin, kMostToken).find(',');
  if (close == std::string_view::npos || comma == std::string_view::npos || comma > close)
    return {};
  const std::string_view index = text.substr(begin + comma + 1, close - comma - 1);
  WrapperMark mark{.kind = WrapperKind::kMpi,
                   .source = text.substr(begin + 1, close - 1),
                   .rank = Number(index)};
  mark.length = OutputEnd(text, begin + close + 1, &mark.error_stream);
  if (mark.length == 0 || !mark.rank) return {};
  if (mark.source.find('@') != std::string_view::npos) mark.length = BehindSpace(text, mark.length);
  return mark;
}

// "Mon Dec  9 10:45:45 2024[1,0]<stdout>:" or without the index.
WrapperMark ReadMpiWithTime(std::string_view text) {
  constexpr size_t kStamp = 24;
  if (text.size() < kStamp + 2 || At(text, 3) != ' ' || At(text, 19) != ' ') return {};
  WrapperMark mark = text[kStamp] == '[' ? ReadMpi(text, kStamp) : WrapperMark{};
  if (text[kStamp] == '<') {
    mark.length = OutputEnd(text, kStamp, &mark.error_stream);
    if (mark.length > 0) mark.kind = WrapperKind::kMpi;
  }
  if (mark.kind != WrapperKind::kNone) mark.stamp = text.substr(0, kStamp);
  return mark;
}

// "[rank0]:", "[default0]:", "[rank0] ". Python's exception hook writes a space behind the colon,
// the launcher none; indents of tracebacks are even.
WrapperMark ReadRankTag(std::string_view text) {
  struct Role {
    std::string_view name;
    bool local;
  };
  constexpr std::array<Role, 5> kRoles = {
      {{"rank", false}, {"default", true}, {"trainer", true}, {"worker", true}, {"actor", true}}};
  for (const Role& role : kRoles) {
    if (text.substr(1, role.name.size()) != role.name) continue;
    size_t digits = 1 + role.name.size();
    if (text.substr(digits, 2) == ": ") digits += 2;  // "[rank: 0] " of Lightning
    const size_t end = RunEnd(text, digits, IsDigit);
    if (end == digits || At(text, end) != ']') return {};
    WrapperMark mark{.kind = WrapperKind::kRankTag,
                     .source = text.substr(1, end - 1),
                     .rank = Number(text.substr(digits, end - digits)),
                     .local_rank = role.local};
    const bool colon = At(text, end + 1) == ':';
    if (!colon && (role.local || At(text, end + 1) != ' ')) return {};
    mark.length = end + 2;
    const size_t spaces = RunEnd(text, mark.length, [](char c) { return c == ' '; }) - mark.length;
    if (colon && spaces % 2 == 1) ++mark.length;
    // "[titan] 2024-": the name of a logger before a time.
    const size_t word = RunEnd(text, mark.length + 1, IsLetter);
    const bool logger = At(text, mark.length) == '[' && text.substr(word, 2) == "] " &&
                        IsDigit(At(text, word + 2)) && At(text, word + 6) == '-';
    if (logger) mark.length = word + 2;
    return mark;
  }
  return {};
}

// "(TaskRunner pid=12) ", "(Worker pid=12, ip=10.0.0.1) ", "(raylet) ", "(autoscaler +5s) ".
WrapperMark ReadRay(std::string_view text) {
  constexpr size_t kMost = 256;
  const std::string_view head = text.substr(0, kMost);
  const size_t pid = head.find("pid=");
  size_t end = 0;
  if (pid != std::string_view::npos) {
    end = RunEnd(head, pid + 4, IsDigit);
    if (end == pid + 4 || (pid > 1 && head[pid - 1] != ' ')) return {};
  } else if (base::StartsWith(head, "(raylet")) {
    end = 7;
  } else if (base::StartsWith(head, "(autoscaler +")) {
    end = RunEnd(head, 13, [](char c) { return IsDigit(c) || IsLetter(c); });
  } else {
    return {};
  }
  if (head.substr(end, 5) == ", ip=") end = RunEnd(head, end + 5, IsName);
  if (At(head, end) != ')' || !EndsOrSpace(text, end + 1)) return {};
  return {.kind = WrapperKind::kRay,
          .length = BehindSpace(text, end + 1),
          .source = text.substr(1, end - 1)};
}

// "2024-01-01T00:00:00" with a fraction and a zone: where it ends, else 0. `digits`: of the
// fraction.
size_t IsoEnd(std::string_view text, size_t* digits) {
  constexpr std::string_view kForm = "dddd-dd-ddTdd:dd:dd";
  if (text.size() < kForm.size() + 1 || text[10] != 'T') return 0;
  for (size_t i = 0; i < kForm.size(); ++i) {
    if (kForm[i] == 'd' ? !IsDigit(text[i]) : text[i] != kForm[i]) return 0;
  }
  size_t at = kForm.size();
  *digits = 0;
  if (text[at] == '.' || text[at] == ',') {
    const size_t end = RunEnd(text, at + 1, IsDigit);
    *digits = end - at - 1;
    at = end;
  }
  if (At(text, at) == 'Z') return at + 1;
  if (At(text, at) != '+' && At(text, at) != '-') return 0;
  const size_t end = RunEnd(text, at + 1, [](char c) { return IsDigit(c) || c == ':'; });
  return end - at >= 5 && end - at <= 6 ? end : 0;
}

// "host unit[12]: " or "host kernel: " behind a time that ends at `at`.
WrapperMark ReadSyslogName(std::string_view text, size_t at) {
  if (At(text, at) != ' ') return {};
  const size_t host = RunEnd(text, at + 1, IsName);
  if (host == at + 1 || At(text, host) != ' ') return {};
  size_t end = RunEnd(text, host + 1, [](char c) {
    return IsName(c) || c == '/' || c == '@' || c == ':' || c == '(' || c == ')' || c == '\\';
  });
  const std::string_view unit = text.substr(host + 1, end - host - 1);
  if (At(text, end) == '[') {
    const size_t digits = RunEnd(text, end + 1, IsDigit);
    if (digits == end + 1 || text.substr(digits, 2) != "]:" || unit.empty()) return {};
    end = digits + 2;
  } else if (unit != "kernel:") {
    return {};
  }
  if (!EndsOrSpace(text, end)) return {};
  return {.kind = WrapperKind::kSyslog,
          .length = BehindSpace(text, end),
          .source = text.substr(at + 1, end - at - 2),
          .stamp = text.substr(0, at)};
}

// "Dec  9 10:45:45", also with a fraction: where it ends, else 0.
size_t SyslogTimeEnd(std::string_view text) {
  constexpr std::string_view kMonths = "JanFebMarAprMayJunJulAugSepOctNovDec";
  if (text.size() < 16 || text[3] != ' ' || text[6] != ' ' || text[9] != ':') return 0;
  const size_t month = kMonths.find(text.substr(0, 3));
  if (month == std::string_view::npos || month % 3 != 0) return 0;
  for (const size_t i : {5, 7, 8, 10, 11, 13, 14}) {
    if (!IsDigit(text[i])) return 0;
  }
  return text[15] == '.' ? RunEnd(text, 16, IsDigit) : 15;
}

// "Mon 2024-12-09 10:45:45 CET host unit[12]: "
WrapperMark ReadSyslogFull(std::string_view text) {
  if (text.size() < 28 || !IsDigit(text[4]) || text[8] != '-' || text[14] != ' ') return {};
  const size_t time = RunEnd(text, 15, [](char c) { return IsDigit(c) || c == ':' || c == '.'; });
  const size_t zone = RunEnd(text, time + 1, [](char c) { return c != ' '; });
  WrapperMark mark = ReadSyslogName(text, zone);
  if (mark.kind == WrapperKind::kNone) return {};
  const bool utc = text.substr(time + 1, zone - time - 1) == "UTC";
  mark.stamp = text.substr(4, (utc ? zone : time) - 4);
  return mark;
}

WrapperMark ReadMarkWithIsoTime(std::string_view text) {
  size_t digits = 0;
  const size_t end = IsoEnd(text, &digits);
  if (end == 0 || At(text, end) != ' ') return {};
  const std::string_view rest = text.substr(end + 1);
  const bool output = base::StartsWith(rest, "stdout ") || base::StartsWith(rest, "stderr ");
  const char tag = At(rest, 7);
  if (output && (tag == 'P' || tag == 'F') && EndsOrSpace(rest, 8)) {
    return {.kind = WrapperKind::kCri,
            .length = BehindSpace(text, end + 9),
            .stamp = text.substr(0, end),
            .error_stream = rest[3] == 'e',
            .partial = tag == 'P'};
  }
  return ReadSyslogName(text, end);
}

// "gpu-01: ", "15: ": a name, a colon, a space.
WrapperMark ReadName(std::string_view text) {
  const size_t begin = RunEnd(text, 0, [](char c) { return c == ' '; });
  if (begin > 4) return {};
  const size_t digits = RunEnd(text, begin, IsDigit);
  if (digits > begin && digits - begin <= 5 && At(text, digits) == ':') {
    if (!EndsOrSpace(text, digits + 1)) return {};
    const std::string_view index = text.substr(begin, digits - begin);
    return {.kind = WrapperKind::kIndex,
            .length = BehindSpace(text, digits + 1),
            .source = index,
            .rank = Number(index)};
  }
  const size_t end = RunEnd(text, begin, IsName);
  const std::string_view name = text.substr(begin, end - begin);
  if (begin > 0 || name.size() < 2 || (At(text, end) != ':' && At(text, end) != ' ')) return {};
  const size_t bar = RunEnd(text, end, [](char c) { return c == ' '; });
  const bool colon = At(text, end) == ':' && EndsOrSpace(text, end + 1);
  if (!colon && At(text, bar) != '|') return {};
  const bool digit = std::any_of(name.begin(), name.end(), IsDigit);
  if (colon && (digit || name == "localhost") && name.find('_') == std::string_view::npos) {
    return {.kind = WrapperKind::kHost, .length = BehindSpace(text, end + 1), .source = name};
  }
  const bool numbered = name.find_first_of("-_") != std::string_view::npos && IsLetter(name[0]);
  if (bar > end && At(text, bar) == '|' && EndsOrSpace(text, bar + 1) && digit && numbered) {
    return {.kind = WrapperKind::kContainer, .length = BehindSpace(text, bar + 1), .source = name};
  }
  return {};
}

// "[15] " of MPI launchers.
WrapperMark ReadBracketIndex(std::string_view text) {
  const size_t end = RunEnd(text, 1, IsDigit);
  if (end == 1 || end > 6 || text.substr(end, 2) != "] ") return {};
  const std::string_view index = text.substr(1, end - 1);
  return {.kind = WrapperKind::kIndex, .length = end + 2, .source = index, .rank = Number(index)};
}

}  // namespace

WrapperMark ReadSureMark(std::string_view text) {
  if (!MayHaveSureMark(text)) return {};
  const char first = text[0];
  if (first == '[') {
    if (text[1] == 'p' && base::StartsWith(text, "[pod/")) return ReadPod(text);
    if (IsDigit(text[1]) || base::StartsWith(text, "[prte")) return ReadMpi(text, 0);
    return ReadRankTag(text);
  }
  if (first == '(') return ReadRay(text);
  if (IsDigit(first)) return ReadMarkWithIsoTime(text);
  if (const size_t end = SyslogTimeEnd(text); end > 0) return ReadSyslogName(text, end);
  const WrapperMark mark = ReadMpiWithTime(text);
  return mark.kind != WrapperKind::kNone ? mark : ReadSyslogFull(text);
}

WrapperMark ReadTimeMark(std::string_view text) {
  size_t digits = 0;
  const size_t end = IsoEnd(text, &digits);
  if (end == 0 || !EndsOrSpace(text, end)) return {};
  return {
      .kind = WrapperKind::kTime, .length = BehindSpace(text, end), .stamp = text.substr(0, end)};
}

WrapperMark ReadLikelyMark(std::string_view text) {
  if (text.empty() || static_cast<signed char>(text[0]) < ' ') return {};
  if (text[0] == '[') return ReadBracketIndex(text);
  if (IsDigit(text[0]) && At(text, 4) == '-') {
    size_t digits = 0;
    const size_t end = IsoEnd(text, &digits);
    // No logger prints so many.
    if (end > 0 && (digits == 7 || digits == 9) && EndsOrSpace(text, end)) {
      return ReadTimeMark(text);
    }
  }
  return ReadName(text);
}

// Only forms that have year and zone: ISO 8601, also with a space before time and "UTC".
std::optional<int64_t> MarkWallNs(std::string_view stamp) {
  constexpr std::string_view kForm = "dddd-dd-dd?dd:dd:dd";
  constexpr int64_t kSecondNs = 1'000'000'000;
  if (stamp.size() <= kForm.size()) return std::nullopt;
  for (size_t i = 0; i < kForm.size(); ++i) {
    const char form = kForm[i];
    if (form == 'd' ? !IsDigit(stamp[i]) : form != '?' && form != stamp[i]) return std::nullopt;
  }
  const auto two = [](std::string_view text, size_t at) {
    return (text[at] - '0') * 10 + (text[at + 1] - '0');
  };
  const auto day_ns = DayNs(two(stamp, 0) * 100 + two(stamp, 2), two(stamp, 5), two(stamp, 8));
  if (!day_ns) return std::nullopt;
  const int seconds = (two(stamp, 11) * 60 + two(stamp, 14)) * 60 + two(stamp, 17);
  int64_t ns = *day_ns + seconds * kSecondNs;
  size_t at = kForm.size();
  if (stamp[at] == '.' || stamp[at] == ',') {
    int64_t unit = kSecondNs;
    for (++at; at < stamp.size() && IsDigit(stamp[at]); ++at)
      ns += (stamp[at] - '0') * (unit /= 10);
  }
  const std::string_view zone = stamp.substr(at);
  if (zone == "Z" || zone == " UTC") return ns;
  if (zone.size() < 5 || zone.size() > 6 || (zone[0] != '+' && zone[0] != '-')) return std::nullopt;
  const int ahead_minutes = two(zone, 1) * 60 + two(zone, zone.size() - 2);
  return ns + (zone[0] == '-' ? 1 : -1) * ahead_minutes * (60 * kSecondNs);
}

std::string_view WithoutRayRepeats(std::string_view text) {
  constexpr std::string_view kBegin = " [repeated ";
  constexpr std::string_view kEnd = "x across cluster]";
  constexpr size_t kMostTail = 400;  // the first time its explanation follows
  if (text.size() < kBegin.size() + kEnd.size() + 1) return text;
  if (text.back() != ']' && text.back() != ')') return text;
  const size_t from = text.size() - std::min(text.size(), kMostTail);
  const size_t begin = text.find(kBegin, from);
  if (begin == std::string_view::npos) return text;
  const size_t digits = begin + kBegin.size();
  const size_t end = RunEnd(text, digits, IsDigit);
  const bool whole = end > digits && text.substr(end, kEnd.size()) == kEnd;
  return whole ? text.substr(0, begin) : text;
}

}  // namespace epochmeter::ingest::log
