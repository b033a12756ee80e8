// SPDX-License-Identifier: Apache-2.0
#include "ingest/log/name_lists.h"

#include <string>
#include <vector>

#include "base/strings.h"
#include "ingest/log/vocabulary.h"

namespace epochmeter::ingest::log {
namespace {

constexpr size_t kMostNameBytes = 40;
constexpr size_t kMostNumbers = 16;

struct Name {
  std::string_view text;
  size_t at = 0;
};

// Words without a number of their own.
bool IsName(std::string_view text) {
  if (text.empty() || text.size() > kMostNameBytes) return false;
  const auto first = static_cast<unsigned char>(text[0]);
  const bool letter = (first | 0x20) >= 'a' && (first | 0x20) <= 'z';
  if (!letter && first != '_' && first < 0x80) return false;
  for (size_t i = 1; i < text.size(); ++i) {
    if (text[i] >= '0' && text[i] <= '9' && text[i - 1] == ' ') return false;
  }
  return true;
}

class Lists {
 public:
  Lists(std::string_view text, ScannedLine& line) : text_(text), fields_(line.fields) {}

  void Run() {
    for (size_t i = 0; i < fields_.size();) {
      const size_t end = EndOfRun(i);
      if (end - i >= 2 && end - i <= kMostNumbers) {
        const std::vector<Name> names = separator_ == ',' ? Before(i, end - i) : InKey(i, end - i);
        for (size_t k = 0; k < names.size(); ++k) Give(names[k], &fields_[i + k]);
      }
      i = end;
    }
  }

 private:
  // Numbers behind the first one, all with the same separator between and no names.
  size_t EndOfRun(size_t first) {
    separator_ = '\0';
    size_t end = first + 1;
    while (end < fields_.size() && fields_[end].key.empty() &&
           fields_[end].form == FieldForm::kNumber && fields_[end - 1].form == FieldForm::kNumber &&
           fields_[end - 1].group.empty()) {
      const size_t from = fields_[end - 1].end;
      if (fields_[end].begin < from) break;
      const std::string_view between = base::Trim(text_.substr(from, fields_[end].begin - from));
      if (between.size() != 1 || (between[0] != ',' && between[0] != '/')) break;
      if (separator_ != '\0' && between[0] != separator_) break;
      separator_ = between[0];
      ++end;
    }
    return end;
  }

  // "loss/acc" and "loss (train/val)", the key itself.
  std::vector<Name> InKey(size_t first, size_t count) const {
    const std::string_view key = text_.substr(fields_[first].key_begin, fields_[first].key.size());
    if (key != fields_[first].key) return {};
    const size_t open = key.find('(');
    std::string_view list = key;
    if (open != std::string_view::npos) {
      const size_t close = key.find(')', open);
      if (close == std::string_view::npos) return {};
      list = key.substr(open + 1, close - open - 1);
    }
    std::vector<Name> names;
    for (const std::string_view part : base::Split(list, '/')) {
      names.push_back({base::Trim(part), static_cast<size_t>(part.data() - text_.data())});
      if (!IsName(names.back().text)) return {};
    }
    return names.size() == count ? names : std::vector<Name>{};
  }

  // Where the names end that stand before the value, a colon or the like between.
  size_t EndOfNames(const Field& field) const {
    if (!field.key.empty()) return field.key_begin + field.key.size();
    const auto skip = [this](size_t end, std::string_view bytes) {
      while (end > 0 && bytes.find(text_[end - 1]) != std::string_view::npos) --end;
      return end;
    };
    const size_t bound = skip(field.begin, " ([");
    const size_t mark = skip(bound, ":=>-");
    const bool binds =
        text_.substr(mark, bound - mark).find_first_of(":=>") != std::string_view::npos;
    return binds ? skip(mark, " )]") : 0;
  }

  // As many names as numbers, or a word more that says of what they are: "val, loss, acc: 1, 2".
  std::vector<Name> Before(size_t first, size_t count) const {
    size_t end = EndOfNames(fields_[first]);
    std::vector<Name> names(count);
    for (size_t k = count; k-- > 0;) {
      names[k] = PartBefore(end);
      if (!IsName(names[k].text)) return {};
      end = BeginOfPart(end);
      const bool more = end > 0 && text_[end - 1] == ',';
      if (k > 0 && !more) return {};
      if (end > 0) --end;
      if (k == 0 && more) {
        const std::string word = base::ToLowerAscii(PartBefore(end).text);
        if (IsName(word) && LineWordOf(word) == LineWord::kNone) return {};
      }
    }
    return names;
  }

  // What ends at `end` and begins behind a sign.
  size_t BeginOfPart(size_t end) const {
    return text_.substr(0, end).find_last_of(",;|:()[]{}=") + 1;  // 0 where there is no sign
  }
  Name PartBefore(size_t end) const {
    const size_t begin = BeginOfPart(end);
    const std::string_view part = base::Trim(text_.substr(begin, end - begin));
    return {part, static_cast<size_t>(part.data() - text_.data())};
  }

  // "loss (train/val)" is the train loss and the val loss.
  void Give(const Name& name, Field* field) const {
    const size_t open = text_.substr(0, name.at).find_last_of("(),:=");
    const bool inside = separator_ == '/' && open != std::string_view::npos && text_[open] == '(';
    std::string key(name.text);
    if (inside) {
      const std::string_view of = base::Trim(text_.substr(0, open));
      const size_t word = of.find_last_of(" ,:=|[(");
      key += " ";
      key += of.substr(word == std::string_view::npos ? 0 : word + 1);
    }
    field->key = std::move(key);
    field->key_begin = name.at;
    field->binding = Binding::kSeparator;
    field->listed = false;
  }

  std::string_view text_;
  std::vector<Field>& fields_;
  char separator_ = '\0';
};

}  // namespace

void NameLists(std::string_view text, ScannedLine* line) { Lists(text, *line).Run(); }

}  // namespace epochmeter::ingest::log
