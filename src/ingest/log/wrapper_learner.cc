// SPDX-License-Identifier: Apache-2.0
#include "ingest/log/wrapper_learner.h"

#include <algorithm>

namespace epochmeter::ingest::log {
namespace {

constexpr std::array<WrapperKind, 4> kLearned = {WrapperKind::kTime, WrapperKind::kHost,
                                                 WrapperKind::kIndex, WrapperKind::kContainer};
constexpr size_t kLeastLines = 16;
constexpr size_t kMostForms = 16;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// "vm-07-05" as "vm-0-0".
std::string FormOf(std::string_view name) {
  std::string form;
  for (const char c : name) {
    if (!IsDigit(c)) {
      form += c;
    } else if (form.empty() || form.back() != '0') {
      form += '0';
    }
  }
  return form;
}

// Of the words at the begin of a text; 0 when it begins with no word. Numbers count as equal.
uint64_t TextHash(std::string_view text) {
  constexpr size_t kMost = 24;
  uint64_t hash = 14695981039346656037U;
  size_t letters = 0;
  for (const char c : text.substr(0, kMost)) {
    const bool letter = (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
    if (letter) ++letters;
    if (IsDigit(c) || c == ' ' || c == '.' || c == '-') continue;
    hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
  }
  return letters >= 2 ? hash : 0;
}

}  // namespace

WrapperMark LearnedWrappers::Read(std::string_view text) {
  if (!any_) return {};
  if (Knows(WrapperKind::kTime)) {
    const WrapperMark time = ReadTimeMark(text);
    if (time.kind != WrapperKind::kNone) return time;
  }
  const WrapperMark mark = ReadLikelyMark(text);
  if (mark.kind == WrapperKind::kNone || !Knows(mark.kind)) return {};
  if (mark.kind == WrapperKind::kIndex) {
    return (text[0] == '[') == brackets_ ? mark : WrapperMark{};
  }
  return mark.kind == WrapperKind::kTime || Fits(mark.source) ? mark : WrapperMark{};
}

bool LearnedWrappers::Fits(std::string_view name) {
  if (std::find(names_.begin(), names_.end(), name) != names_.end()) return true;
  if (std::find(forms_.begin(), forms_.end(), FormOf(name)) == forms_.end()) return false;
  constexpr size_t kMostKnown = 32;
  if (names_.size() == kMostKnown) names_.clear();
  names_.emplace_back(name);
  return true;
}

void WrapperLearner::See(const WrapperMark& mark, std::string_view text) {
  ++lines_;
  if (mark.kind == WrapperKind::kNone) return;
  Seen& seen = seen_[static_cast<size_t>(mark.kind)];
  ++seen.lines;
  if (text[0] == '[') seen.brackets = true;
  if (mark.kind != WrapperKind::kTime) SeeName(seen, mark.source, text.substr(mark.length));
}

void WrapperLearner::SeeName(Seen& seen, std::string_view name, std::string_view text) {
  const auto found = std::find_if(seen.names.begin(), seen.names.end(),
                                  [&](const Name& one) { return one.name == name; });
  const auto place = static_cast<size_t>(found - seen.names.begin());
  if (found == seen.names.end()) {
    if (seen.names.size() == kMostNames) return;
    seen.names.push_back({.name = std::string(name)});
  } else if (place != seen.last) {
    ++seen.comebacks;
  }
  seen.last = place;
  Name& one = seen.names[place];
  ++one.lines;
  const uint64_t hash = TextHash(text);
  const auto end = one.texts.begin() + static_cast<ptrdiff_t>(one.different);
  if (hash == 0 || one.different == kMostTexts || std::find(one.texts.begin(), end, hash) != end) {
    return;
  }
  one.texts[one.different++] = hash;
}

bool WrapperLearner::Proven(WrapperKind kind, bool last) const {
  const Seen& seen = seen_[static_cast<size_t>(kind)];
  if (kind == WrapperKind::kTime) {
    const bool enough = lines_ >= kLeastLines || (last && lines_ >= 3);
    return enough && seen.lines * 8 >= lines_ * 7;
  }
  constexpr uint32_t kLeastMarks = 8;
  const size_t names = seen.names.size();
  // One service of docker compose, one task of srun: the same on every line.
  const bool every = names == 1 && seen.lines == lines_ && lines_ >= (last ? 4 : kLeastLines);
  const bool plain = kind == WrapperKind::kIndex && !seen.brackets;
  const bool machine =
      kind == WrapperKind::kHost && every && seen.names.front().name.find('-') != std::string::npos;
  if (every && (plain || machine || kind == WrapperKind::kContainer)) return true;
  // Tasks that take turns, on every line: also where all say the same with other numbers.
  if (kind == WrapperKind::kIndex && names >= 2 && seen.lines == lines_ && lines_ >= kLeastLines &&
      names * 3 <= seen.lines && seen.comebacks * 2 >= seen.lines) {
    return true;
  }
  if (seen.lines < kLeastMarks || seen.lines * 4 < lines_ * 3) return false;
  if (names * 3 > seen.lines || names == kMostNames) return false;
  const auto varied =
      static_cast<size_t>(std::count_if(seen.names.begin(), seen.names.end(), [](const Name& one) {
        return one.different >= kMostTexts - 1;
      }));
  if (varied * 2 < names) return false;
  if (kind == WrapperKind::kIndex) return names >= 2 && seen.comebacks >= 3;
  if (names == 1) return seen.lines >= kLeastLines && seen.lines * 10 >= lines_ * 9;
  std::vector<std::string> forms;
  for (const Name& one : seen.names) forms.push_back(FormOf(one.name));
  std::sort(forms.begin(), forms.end());
  const auto kinds = static_cast<size_t>(std::unique(forms.begin(), forms.end()) - forms.begin());
  // Containers have their services' names; machines are numbered.
  const size_t most = kind == WrapperKind::kContainer ? kMostForms : std::max<size_t>(2, names / 4);
  return seen.comebacks >= 2 && kinds <= most;
}

WrapperLearner::Verdict WrapperLearner::Judge(bool last, LearnedWrappers& known) const {
  const bool look = last || (lines_ >= kLeastLines && (lines_ & (lines_ - 1)) == 0);
  if (!look) return Verdict::kOpen;
  bool proven = false;
  uint32_t most = 0;
  for (const WrapperKind kind : kLearned) {
    const Seen& seen = seen_[static_cast<size_t>(kind)];
    most = std::max(most, seen.lines);
    if (known.Knows(kind) || !Proven(kind, last)) continue;
    proven = true;
    known.known_[static_cast<size_t>(kind)] = true;
    known.any_ = true;
    if (kind == WrapperKind::kIndex) known.brackets_ = seen.brackets;
    for (const Name& one : seen.names) {
      const std::string form = FormOf(one.name);
      const bool fresh =
          std::find(known.forms_.begin(), known.forms_.end(), form) == known.forms_.end();
      if (fresh && known.forms_.size() < 2 * kMostForms) known.forms_.push_back(form);
    }
  }
  if (proven) return Verdict::kProven;
  return last || lines_ >= kMostLines || most * 2 < lines_ ? Verdict::kRefused : Verdict::kOpen;
}

}  // namespace epochmeter::ingest::log
