// SPDX-License-Identifier: Apache-2.0
#include "ingest/log/templates.h"

#include <algorithm>

namespace epochmeter::ingest::log {
namespace {

constexpr size_t kLeastSlots = 4096, kMostSlots = size_t{1} << 17;
constexpr size_t kMostGroup = 48;    // templates that a new message is compared with
constexpr size_t kMostSteps = 4096;  // marks of a file
// Of all templates, this part is kept free for those that report trouble.
constexpr double kQuietRatio = 0.8;
constexpr uint32_t kFamilyWords = 3;
constexpr size_t kMostRelatives = 8;  // more that begin with the same words are one
constexpr uint64_t kMaskedKey = 0x5851'F42D'4C95'7F2DU;

}  // namespace

TemplateTable::TemplateTable(const TemplateLimits& limits) : limits_(limits), slots_(kLeastSlots) {
  templates_.emplace_back();
  counts_.emplace_back();
}

void TemplateTable::Remember(uint64_t key, uint32_t number) {
  if ((used_slots_ + 1) * 2 > slots_.size()) {
    // Doubled up to the limit; there forgotten: what comes again is found again by its words.
    std::vector<Slot> old(slots_.size() < kMostSlots ? slots_.size() * 4 : slots_.size());
    old.swap(slots_);
    used_slots_ = 0;
    if (slots_.size() > old.size()) {
      for (const Slot& slot : old) {
        if (slot.key != 0) Remember(slot.key, slot.number);
      }
    }
  }
  key |= 1;
  const size_t mask = slots_.size() - 1;
  size_t at = (key * 0x9E37'79B9'7F4A'7C15U) >> 20 & mask;
  while (slots_[at].key != 0 && slots_[at].key != key) at = (at + 1) & mask;
  used_slots_ += slots_[at].key == 0 ? 1 : 0;
  slots_[at] = {.key = key, .number = number};
}

uint32_t TemplateTable::AddNew(uint64_t skeleton_hash, std::string_view text,
                               const LinePlace& place) {
  ++new_lines_;
  const double most_new = limits_.free_lines + limits_.most_new_ratio * static_cast<double>(lines_);
  uint32_t number = kNotClustered;
  if (static_cast<double>(new_lines_) <= most_new) {
    number = NumberOf(text, place);
    Remember(skeleton_hash, number);
  }
  Again(number, place);
  return number;
}

uint32_t TemplateTable::NumberOf(std::string_view text, const LinePlace& place) {
  const LinePrefix prefix = ReadLinePrefix(text);
  const std::string_view message = text.substr(prefix.message);
  const Alarm alarm = AlarmOf(prefix.level, message);
  MaskMessage(message, masked_);
  const uint64_t key = (masked_.hash + static_cast<uint64_t>(alarm)) * kMaskedKey;
  uint32_t number = Find(key);
  if (number != kUnknown) return number;
  const uint64_t group_key = (static_cast<uint64_t>(masked_.token_hash[0]) << 16) ^
                             (masked_.tokens << 4U) ^ static_cast<uint64_t>(alarm);
  std::vector<uint32_t>& group = groups_[group_key];
  number = FindSimilar(group);
  if (number != kUnknown) {
    Generalise(number);
    Remember(key, number);
    return number;
  }
  number = JoinFamily(alarm);
  if (number == kUnknown) number = MakeTemplate(message, prefix, alarm, place);
  if (number == kNotClustered) {
    if (group.empty()) groups_.erase(group_key);
    return number;
  }
  if (group.size() < kMostGroup && templates_[number].part_of == 0) group.push_back(number);
  Remember(key, number);
  return number;
}

uint32_t TemplateTable::MakeTemplate(std::string_view message, const LinePrefix& prefix,
                                     Alarm alarm, const LinePlace& place) {
  const bool quiet = alarm <= Alarm::kHint;
  const auto most_quiet = static_cast<uint32_t>(limits_.most_templates * kQuietRatio);
  if (templates_.size() > limits_.most_templates || (quiet && quiet_ >= most_quiet)) {
    return kNotClustered;
  }
  quiet_ += quiet ? 1 : 0;
  const auto number = static_cast<uint32_t>(templates_.size());
  templates_.push_back({.text = masked_.text,
                        .example = std::string(message.substr(0, kMostExampleBytes)),
                        .alarm = alarm,
                        .logged = prefix.message > 0,
                        .file = place.file,
                        .first_line = place.line,
                        .first_wall_ns = place.wall_ns,
                        .tokens = masked_.tokens,
                        .fixed = masked_.fixed,
                        .token_hash = masked_.token_hash});
  counts_.emplace_back();
  const uint64_t key = FamilyKey(alarm);
  if (key != 0) families_[key].members.push_back(number);
  return number;
}

// Of messages with enough words; 0 for others.
uint64_t TemplateTable::FamilyKey(Alarm alarm) const {
  if (masked_.tokens <= kFamilyWords) return 0;
  uint64_t key = static_cast<uint64_t>(alarm) + 1;
  uint32_t fixed = 0;
  for (uint32_t i = 0; i < kFamilyWords; ++i) {
    key = (key ^ masked_.token_hash[i]) * kMaskedKey;
    fixed += masked_.token_hash[i] == kVariableToken ? 0 : 1;
  }
  return fixed * 2 > kFamilyWords ? key | 1 : 0;
}

// "When parsing line <any text>": many templates that begin alike become one, and take in the new
// message. kUnknown when there are not that many.
uint32_t TemplateTable::JoinFamily(Alarm alarm) {
  const auto found = families_.find(FamilyKey(alarm));
  if (found == families_.end() || found->second.members.size() < kMostRelatives) return kUnknown;
  Family& family = found->second;
  const uint32_t first = family.members.front();
  if (!family.open) {
    family.open = true;
    MessageTemplate& open = templates_[first];
    size_t end = 0;
    for (uint32_t i = 0; i < kFamilyWords && end != std::string::npos; ++i) {
      end = open.text.find(' ', end + 1);
    }
    open.text = open.text.substr(0, end) + " *";
    for (const uint32_t member : family.members) {
      if (member != first) templates_[member].part_of = first;
    }
  }
  return first;
}

// The template that shares the most words with the masked message: at least two of three, and half
// of its words still fixed.
uint32_t TemplateTable::FindSimilar(const std::vector<uint32_t>& group) const {
  uint32_t best = kUnknown, most = 0;
  for (const uint32_t number : group) {
    const MessageTemplate& other = templates_[number];
    uint32_t equal = 0, fixed = 0;
    for (uint32_t i = 0; i < masked_.tokens; ++i) {
      const bool same = masked_.token_hash[i] == other.token_hash[i];
      equal += same || other.token_hash[i] == kVariableToken ? 1 : 0;
      fixed += same && other.token_hash[i] != kVariableToken ? 1 : 0;
    }
    if (equal * 3 < masked_.tokens * 2 || fixed * 2 < other.fixed || fixed == 0) continue;
    if (equal <= most) continue;
    best = number;
    most = equal;
  }
  return best;
}

// Masks the words in which the masked message differs.
void TemplateTable::Generalise(uint32_t number) {
  MessageTemplate& into = templates_[number];
  std::string text;
  size_t begin = 0;
  for (uint32_t i = 0; i < into.tokens; ++i) {
    size_t end = into.text.find(' ', begin);
    if (end == std::string::npos) end = into.text.size();
    if (masked_.token_hash[i] != into.token_hash[i]) into.token_hash[i] = kVariableToken;
    if (i > 0) text += ' ';
    if (into.token_hash[i] == kVariableToken) {
      text += '*';
    } else {
      text.append(into.text, begin, end - begin);
    }
    begin = std::min(end + 1, into.text.size());
  }
  into.text = std::move(text);
}

// Halves the buckets' resolution until `line` has one.
void TemplateTable::Rescale(uint64_t line) {
  uint32_t steps = 0;
  while (line >> (shift_ + steps) >= TemplateCounts::kBuckets) ++steps;
  shift_ += steps;
  for (TemplateCounts& counts : counts_) {
    std::array<uint32_t, TemplateCounts::kBuckets> halved{};
    for (size_t i = 0; i < TemplateCounts::kBuckets; ++i) {
      halved[steps < 32 ? i >> steps : 0] += counts.buckets[i];
    }
    counts.buckets = halved;
  }
}

std::vector<TemplateCounts> TemplateTable::Fold() const {
  std::vector<TemplateCounts> folded = counts_;
  for (uint32_t number = 1; number < templates_.size(); ++number) {
    const uint32_t into = templates_[number].part_of;
    if (into == 0) continue;
    folded[into].count += counts_[number].count;
    folded[into].last_line = std::max(folded[into].last_line, counts_[number].last_line);
    for (size_t i = 0; i < TemplateCounts::kBuckets; ++i) {
      folded[into].buckets[i] += counts_[number].buckets[i];
    }
    folded[number] = {};
  }
  return folded;
}

std::vector<uint32_t> TemplateTable::Top(size_t most) const {
  const std::vector<TemplateCounts> folded = Fold();
  std::vector<uint32_t> numbers;
  for (uint32_t i = 1; i < templates_.size(); ++i) {
    if (templates_[i].part_of == 0) numbers.push_back(i);
  }
  const size_t kept = std::min(most, numbers.size());
  std::partial_sort(numbers.begin(), numbers.begin() + static_cast<std::ptrdiff_t>(kept),
                    numbers.end(), [&folded](uint32_t a, uint32_t b) {
                      return folded[a].count != folded[b].count ? folded[a].count > folded[b].count
                                                                : a < b;
                    });
  numbers.resize(kept);
  return numbers;
}

void TemplateTable::AddMark(const LinePlace& place, bool known, double step) {
  std::vector<StepMark>& marks = steps_[place.file];
  if (!marks.empty() && marks.back().line > place.line) return;  // a record told late
  if (marks.size() == kMostSteps) {
    // Every second one goes: what is left still brackets, only wider.
    for (size_t i = 0; i < kMostSteps / 2; ++i) marks[i] = marks[i * 2];
    marks.resize(kMostSteps / 2);
  }
  StepMark& mark = marks.emplace_back();
  mark.line = place.line;
  if (known) mark.step = step;
  if (place.wall_ns) mark.wall_ns = *place.wall_ns;
}

TemplateTable::Marks TemplateTable::MarksAt(uint32_t file, uint64_t line) const {
  const auto found = steps_.find(file);
  if (found == steps_.end()) return {};
  const std::vector<StepMark>& marks = found->second;
  const auto behind =
      std::upper_bound(marks.begin(), marks.end(), line,
                       [](uint64_t at, const StepMark& mark) { return at < mark.line; });
  return {.before = behind == marks.begin() ? nullptr : &*std::prev(behind),
          .after = behind == marks.end() ? nullptr : &*behind};
}

std::optional<double> TemplateTable::StepBefore(uint32_t file, uint64_t line) const {
  const Marks marks = MarksAt(file, line);
  return marks.before == nullptr ? std::nullopt : marks.before->step;
}

std::optional<double> TemplateTable::StepAfter(uint32_t file, uint64_t line) const {
  const Marks marks = MarksAt(file, line);
  return marks.after == nullptr ? std::nullopt : marks.after->step;
}

std::optional<int64_t> TemplateTable::WallNsBefore(uint32_t file, uint64_t line) const {
  const Marks marks = MarksAt(file, line);
  return marks.before == nullptr ? std::nullopt : marks.before->wall_ns;
}

bool TemplateTable::TrainsBefore(uint32_t file, uint64_t line) const {
  return MarksAt(file, line).before != nullptr;
}

bool TemplateTable::TrainsAfter(uint32_t file, uint64_t line) const {
  return MarksAt(file, line).after != nullptr;
}

}  // namespace epochmeter::ingest::log
