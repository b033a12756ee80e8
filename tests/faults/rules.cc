// SPDX-License-Identifier: Apache-2.0
#include "rules.h"

#include <cerrno>
#include <cstdlib>
#include <optional>
#include <sstream>
#include <utility>

namespace epochmeter::faults {
namespace {

constexpr std::array<const char*, 12> kNames = {"write",  "sync",   "truncate", "create",
                                                "rename", "remove", "open",     "lock",
                                                "statfs", "hold",   "magic",    "change"};

constexpr std::array<std::pair<std::string_view, int>, 12> kErrors = {{{"ENOSPC", ENOSPC},
                                                                       {"EDQUOT", EDQUOT},
                                                                       {"EIO", EIO},
                                                                       {"EINTR", EINTR},
                                                                       {"EROFS", EROFS},
                                                                       {"EACCES", EACCES},
                                                                       {"ESTALE", ESTALE},
                                                                       {"ENOLCK", ENOLCK},
                                                                       {"EOPNOTSUPP", EOPNOTSUPP},
                                                                       {"EAGAIN", EAGAIN},
                                                                       {"ETIMEDOUT", ETIMEDOUT},
                                                                       {"ENOENT", ENOENT}}};

bool EndsWith(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

bool Changes(CallKind kind) { return kind <= CallKind::kRemove; }

std::optional<CallKind> KindOf(std::string_view name) {
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (name == kNames[i]) return static_cast<CallKind>(i);
  }
  return {};
}

std::optional<Fault> FaultOf(const std::string& text) {
  Fault fault;
  const size_t equals = text.find('=');
  const std::string name = text.substr(0, equals);
  const std::string value = equals == std::string::npos ? "" : text.substr(equals + 1);
  if (name == "short") fault.halve = true;
  if (name == "hold") fault.hold = true;
  if (name == "delay") fault.delay_ns = std::atoll(value.c_str()) * 1'000'000;
  if (name == "rate") fault.bytes_per_s = std::atoll(value.c_str());
  if (name == "magic") fault.magic = std::strtoull(value.c_str(), nullptr, 16);
  for (const auto& [error, number] : kErrors) {
    if (name == error) fault.error = number;
  }
  return fault.any() ? std::optional<Fault>(fault) : std::nullopt;
}

std::optional<Rule> ParseRule(const std::string& line) {
  std::istringstream words(line);
  std::string kind, count, fault;
  Rule rule;
  rule.line = line;
  if (!(words >> kind >> rule.suffix >> rule.first >> count >> fault)) return {};
  const std::optional<CallKind> call = KindOf(kind);
  const std::optional<Fault> what = FaultOf(fault);
  if (!call || !what) return {};
  rule.kind = *call;
  rule.fault = *what;
  if (EndsWith(count, "ms")) {
    rule.lasts_ns = std::atoll(count.c_str()) * 1'000'000;
  } else if (count != "*") {
    rule.count = std::strtoull(count.c_str(), nullptr, 10);
  }
  return rule;
}

bool Matches(const Rule& rule, CallKind kind, const std::string& path, const Counts& counts) {
  if (rule.kind != kind && !(rule.kind == CallKind::kChange && Changes(kind))) return false;
  if (rule.suffix != "*" && !EndsWith(path, rule.suffix)) return false;
  return counts.Last(rule.kind) >= rule.first;
}

}  // namespace

const char* NameOf(CallKind kind) { return kNames[static_cast<size_t>(kind)]; }

uint64_t Counts::Count(CallKind kind) {
  if (Changes(kind)) ++of_[static_cast<size_t>(CallKind::kChange)];
  return of_[static_cast<size_t>(kind)]++;
}

std::vector<Rule> ParseRules(std::string_view text) {
  std::vector<Rule> rules;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    if (std::optional<Rule> rule = ParseRule(line)) rules.push_back(std::move(*rule));
  }
  return rules;
}

Fault Choose(const std::vector<Rule>& rules, CallKind kind, const std::string& path,
             const Counts& counts, int64_t now_ns, Memory& memory) {
  for (const Rule& rule : rules) {
    if (!Matches(rule, kind, path, counts)) continue;
    Hits& hits = memory[rule.line];
    if (hits.calls == 0) hits.first_ns = now_ns;
    if (rule.lasts_ns > 0 ? now_ns >= hits.first_ns + rule.lasts_ns : hits.calls >= rule.count) {
      continue;
    }
    ++hits.calls;
    return rule.fault;
  }
  return {};
}

}  // namespace epochmeter::faults
