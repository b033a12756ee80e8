// SPDX-License-Identifier: Apache-2.0
#include "ingest/log/file_rank.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/strings.h"

namespace epochmeter::ingest::log {
namespace {

constexpr size_t kMostDigits = 5;  // of a rank

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// The number at `at`, where nothing but a point or the end follows it, or a separator.
std::optional<int32_t> NumberAt(std::string_view text, size_t at) {
  size_t end = at;
  while (end < text.size() && IsDigit(text[end])) ++end;
  if (end == at || end - at > kMostDigits) return {};
  if (end < text.size() && (IsLetter(text[end]) || IsDigit(text[end]))) return {};
  int32_t number = 0;
  for (size_t i = at; i < end; ++i) number = number * 10 + (text[i] - '0');
  return number;
}

// "rank3", "rank_3", "rank-3", "rank.03" with no letter before the word.
std::optional<int32_t> NumberBehind(std::string_view text, std::string_view word) {
  for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    if (at > 0 && IsLetter(text[at - 1])) continue;
    size_t number = at + word.size();
    const bool separator = number < text.size() &&
                           std::string_view("_-.=").find(text[number]) != std::string_view::npos;
    if (separator) ++number;
    if (const auto found = NumberAt(text, number)) return found;
  }
  return {};
}

std::optional<int32_t> RankOfPart(std::string_view part) {
  for (const std::string_view word : {"workerlog", "localrank", "rank"}) {
    if (const auto rank = NumberBehind(part, word)) return rank;
  }
  // MindSpore's msrun; elsewhere a worker's number need not be its rank.
  if (part.starts_with("worker_") && part.ends_with(".log")) {
    return NumberBehind(part, "worker");
  }
  return {};
}

std::vector<std::string_view> PartsOf(std::string_view path) {
  std::vector<std::string_view> parts;
  while (!path.empty()) {
    const size_t slash = path.find('/');
    if (slash != 0) parts.push_back(path.substr(0, slash));
    if (slash == std::string_view::npos) break;
    path.remove_prefix(slash + 1);
  }
  return parts;
}

std::string_view FolderOf(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? std::string_view() : path.substr(0, slash);
}

// "node10" behind "node2".
struct ByNumbers {
  bool operator()(std::string_view a, std::string_view b) const {
    size_t i = 0, j = 0;
    while (i < a.size() && j < b.size()) {
      if (IsDigit(a[i]) && IsDigit(b[j])) {
        while (i < a.size() && a[i] == '0') ++i;
        while (j < b.size() && b[j] == '0') ++j;
        const size_t first = i, second = j;
        while (i < a.size() && IsDigit(a[i])) ++i;
        while (j < b.size() && IsDigit(b[j])) ++j;
        const std::string_view left = a.substr(first, i - first);
        const std::string_view right = b.substr(second, j - second);
        if (left.size() != right.size()) return left.size() < right.size();
        if (left != right) return left < right;
      } else if (a[i] != b[j]) {
        return a[i] < b[j];
      } else {
        ++i;
        ++j;
      }
    }
    return a.size() - i != b.size() - j ? a.size() - i < b.size() - j : a < b;
  }
};

}  // namespace

std::optional<int32_t> RankOfPath(std::string_view path) {
  const std::vector<std::string_view> parts = PartsOf(path);
  for (size_t i = parts.size(); i-- > 0;) {
    const std::string part = base::ToLowerAscii(parts[i]);
    if (const auto rank = RankOfPart(part)) return rank;
    // torchrun: attempt_0/3/stdout.log
    const bool of_torchrun = i > 0 && i + 2 == parts.size() && parts[i - 1].starts_with("attempt_");
    if (of_torchrun) return NumberAt(parts[i], 0);
  }
  return {};
}

std::vector<std::string> NameRanks(std::vector<LogFile>* files) {
  std::map<std::string, std::vector<LogFile*>, ByNumbers> folders;
  std::set<int32_t> ranks;
  bool twice = false;
  for (LogFile& file : *files) {
    if (file.rank) continue;
    file.rank = RankOfPath(file.name);
    if (!file.rank) continue;
    twice = !ranks.insert(*file.rank).second || twice;
    folders[std::string(FolderOf(file.name))].push_back(&file);
  }
  if (!twice || folders.size() < 2) return {};
  std::vector<std::string> told;
  int32_t next = 0;
  for (auto& [folder, own] : folders) {
    std::set<int32_t> local;
    for (const LogFile* file : own) local.insert(*file->rank);
    // Twice in one folder: parts of one rank's log, or nothing that is understood here.
    if (local.size() != own.size() || *local.begin() != 0) return {};
  }
  for (auto& [folder, own] : folders) {
    int32_t most = 0;
    for (LogFile* file : own) {
      most = std::max(most, *file->rank);
      file->rank = *file->rank + next;
    }
    told.push_back(fmt::format("ranks {} to {} are those of {}", next, next + most, folder));
    next += most + 1;
  }
  constexpr size_t kMostTold = 4;
  if (told.size() > kMostTold) {
    told.resize(kMostTold);
    told.push_back("and so on, by the order of the folders' names");
  }
  return told;
}

}  // namespace epochmeter::ingest::log
