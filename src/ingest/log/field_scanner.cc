// SPDX-License-Identifier: Apache-2.0
#include "ingest/log/field_scanner.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "base/strings.h"
#include "ingest/log/number_forms.h"
#include "ingest/log/plain_marks.h"
#include "ingest/log/units.h"
#include "ingest/log/vocabulary.h"

namespace epochmeter::ingest::log {
namespace {

constexpr size_t kMostFields = 512;
constexpr size_t kMostNesting = 8;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsLetter(char c) {
  return (static_cast<unsigned char>(c) | 0x20U) - 'a' < 26U ||
         static_cast<unsigned char>(c) >= 0x80;
}
bool IsWordByte(char c) { return IsLetter(c) || IsDigit(c) || c == '_' || c == '@'; }
// Digits behind it are part of a word.
bool IsGlue(char c) { return IsWordByte(c) && static_cast<unsigned char>(c) < 0x80; }

class Scanner {
 public:
  Scanner(std::string_view text, size_t from) : text_(text), from_(from), at_(from) {
    phrase_begin_ = phrase_end_ = from;
  }

  ScannedLine Run() {
    while (at_ < text_.size() && line_.fields.size() < kMostFields) {
      const size_t before = at_;
      Step();
      if (at_ == before) ++at_;
    }
    EndPhrase();
    return std::move(line_);
  }

 private:
  char Peek(size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  bool Has(std::string_view what) const { return text_.substr(at_, what.size()) == what; }

  void Step() {
    const char c = Peek();
    if (StartsNumber()) return Number();
    if (IsLetter(c) || c == '_' || c == '@') return Word();
    if (c == '"' || c == '\'') return Quote();
    if (c == ':' || c == '=') return Separator();
    if (c == '(') return Parenthesis();
    if (c == '[' || c == '{') return Open();
    if (c == ']' || c == '}' || c == ')') return Close();
    if (c == ',' || c == ';' || c == '|' || c == '\t') return Delimiter();
    if (Has(" - ") || Has("  ") || Has("->") || Has(">>")) return Delimiter();
    ++at_;
  }

  bool StartsNumber() const {
    const char c = Peek();
    if (at_ > 0 && IsGlue(text_[at_ - 1])) return false;
    if (IsDigit(c)) return true;
    if ((c == '.' || c == '-' || c == '+') && IsDigit(Peek(1))) return true;
    return (c == '-' || c == '+') && Peek(1) == '.' && IsDigit(Peek(2));
  }

  // The words in front of a separator or a number, as they stand.
  std::string_view Phrase() const {
    std::string_view phrase = text_.substr(phrase_begin_, phrase_end_ - phrase_begin_);
    while (!phrase.empty() && !IsWordByte(phrase.front()) && phrase.front() != '#') {
      phrase.remove_prefix(1);
    }
    while (!phrase.empty() &&
           (phrase.back() == ' ' || phrase.back() == '"' || phrase.back() == '\'')) {
      phrase.remove_suffix(1);
    }
    return phrase;
  }

  void StartPhrase(size_t at) {
    phrase_begin_ = phrase_end_ = at;
    separated_ = false;
  }

  // What was collected names nothing.
  void EndPhrase() {
    for (auto& word : phrase_words_) line_.words.push_back(std::move(word));
    phrase_words_.clear();
    StartPhrase(at_);
  }

  void Delimiter() {
    // "loss:  0.5" and "Speed:\t3": padding, not a delimiter.
    if ((Peek() == ' ' || Peek() == '\t') && separated_) {
      ++at_;
      return;
    }
    // "Time  0.5 ( 0.5)": two spaces between a name and its number.
    if (Peek() == ' ' && phrase_end_ > phrase_begin_) {
      size_t next = at_;
      while (next < text_.size() && text_[next] == ' ') ++next;
      const size_t kept = std::exchange(at_, next);
      // or the end of a cell
      const bool goes_on = StartsNumber() || Peek() == '[' || Peek() == '|' || Peek() == '#';
      at_ = kept;
      if (goes_on) {
        at_ = next;
        return;
      }
    }
    // "('loss', 2.2)", "| fps | 141 |": the name is a cell of its own.
    if (NameInCell()) {
      separated_ = true;
      ++at_;
      return;
    }
    const bool wide = Has(" - ") || Has("->") || Has(">>");
    const bool comma = Peek() == ',';
    at_ += wide ? 2 : 1;
    EndPhrase();
    if (!comma) bracket_key_.clear();
    after_number_ = false;
  }

  bool NameInCell() const {
    const char c = Peek();
    if (separated_ || phrase_end_ <= phrase_begin_ || (c != ',' && c != '|')) return false;
    if (c == ',' && (text_[at_ - 1] != '\'' && text_[at_ - 1] != '"')) return false;
    const std::string_view line = base::Trim(text_.substr(from_));
    if (c == '|' && (line.front() != '|' || line.back() != '|')) return false;
    size_t next = at_ + 1;
    while (next < text_.size() && text_[next] == ' ') ++next;
    const size_t digit = next + (next < text_.size() && text_[next] == '-' ? 1 : 0);
    return digit < text_.size() && (IsDigit(text_[digit]) || text_.substr(digit, 3) == "nan");
  }

  // "tensor(0.5, device=...)", "Tensor(shape=[1], ..., [0.5])": the number is the value of the name
  // in front.
  bool TensorValue(std::string_view lower) {
    if (lower != "tensor" || Peek() != '(' || phrase_end_ <= phrase_begin_) return false;
    const size_t open = at_;
    const size_t line_end = text_.size();
    size_t last = open + 1;
    for (size_t at = open; at + 1 < line_end; ++at) {
      if (text_[at] == '[' && (IsDigit(text_[at + 1]) || text_[at + 1] == '-') &&
          !(at > 0 && text_[at - 1] == '=')) {
        last = at + 1;
      }
    }
    at_ = last;
    while (Peek() == ' ') ++at_;
    const bool number = StartsNumber();
    if (number) {
      Emit(at_, NumberEnd(text_, at_), FieldForm::kNumber);
    }
    const size_t close = text_.find(')', last);
    at_ = close == std::string_view::npos ? line_end : close + 1;
    EndPhrase();
    return true;
  }

  void Word() {
    const size_t begin = at_;
    while (at_ < text_.size() && (InWord() || InnerByte())) ++at_;
    const std::string_view word = text_.substr(begin, at_ - begin);
    const std::string lower = base::ToLowerAscii(word);
    if (TensorValue(lower)) return;
    if (phrase_end_ > phrase_begin_ && (separated_ || WordValueFollows(lower))) {
      ValueInWords(lower, begin);
      return;
    }
    // "Score at iteration 100 is 0.5"
    if (lower == "is" && after_number_ && !lead_.empty()) {
      separated_ = true;
      return;
    }
    // "Loss is 0.5"
    if (lower == "is" && phrase_end_ > phrase_begin_ && Peek() == ' ') {
      separated_ = true;
      return;
    }
    if (after_number_ && TrailingWord(word)) return;
    // "train.py:215[27649] INFO Train epoch: 52"
    if (IsLevelWord(word) && Peek() == ' ') {
      EndPhrase();
      line_.words.push_back({lower, begin});
      return;
    }
    if (phrase_words_.empty()) phrase_begin_ = begin;
    phrase_words_.push_back({lower, begin});
    phrase_end_ = at_;
  }

  // A word where a value is expected.
  void ValueInWords(const std::string& lower, size_t begin) {
    // "INFO: Epoch: [0]", "train: epoch 0": a name of its own.
    if ((separated_ && NameEndsHere()) || NamesCounter(lower)) {
      EndPhrase();
      phrase_begin_ = begin;
      phrase_words_.push_back({lower, begin});
      phrase_end_ = at_;
      return;
    }
    if (IsWordNumber(lower)) {
      Emit(begin, at_, FieldForm::kWord);
      return;
    }
    // "mode: train", "place: gpu": a text value; its word may say what kind of line this is.
    for (auto& other : phrase_words_) line_.words.push_back(std::move(other));
    line_.words.push_back({lower, begin});
    StartPhrase(at_);
    phrase_words_.clear();
  }

  // A counter's name with its number, behind "train:" or "val:".
  bool NamesCounter(std::string_view lower) const {
    size_t next = at_;
    while (next < text_.size() && text_[next] == ' ') ++next;
    if (next >= text_.size() || !IsDigit(text_[next])) return false;
    const LineWord whose = LineWordOf(base::ToLowerAscii(Phrase()));
    if (whose != LineWord::kTrain && whose != LineWord::kEval) return false;
    const Role role = MeaningOf(lower).role;
    return role == Role::kEpoch || role == Role::kStep || role == Role::kStepInEpoch;
  }

  // Digits behind letters beyond ASCII are numbers of their own.
  bool InWord() const {
    return IsWordByte(Peek()) && !(IsDigit(Peek()) && at_ > 0 && !IsGlue(text_[at_ - 1]));
  }

  // '-', '.', '/' and '\'' inside of a word: "train-rmse", "decode.loss_ce", "tok/sec".
  bool InnerByte() const {
    const char c = Peek();
    return (c == '-' || c == '.' || c == '/' || c == '\'') && IsLetter(Peek(1)) && at_ > 0 &&
           IsWordByte(text_[at_ - 1]);
  }

  // ':' or '=' follows, and no second one.
  bool NameEndsHere() const {
    size_t ahead = 0;
    while (Peek(ahead) == ' ') ++ahead;
    const char mark = Peek(ahead);
    return (mark == ':' || mark == '=') && Peek(ahead + 1) != mark && (ahead == 0 || mark == '=');
  }

  static bool IsLevelWord(std::string_view word) {
    return word == "INFO" || word == "DEBUG" || word == "WARNING" || word == "WARN" ||
           word == "ERROR" || word == "NOTICE";
  }

  static bool IsWordNumber(std::string_view lower) {
    if (lower == "nan" || lower == "inf" || lower == "infinity") return true;
    // PaddleOCR fills numbers up to six characters: "nanxxx".
    return lower.size() <= 6 &&
           (base::StartsWith(lower, "nanx") || base::StartsWith(lower, "infx")) &&
           lower.find_first_not_of('x', 3) == std::string_view::npos;
  }

  bool WordValueFollows(std::string_view lower) const {
    if (!IsWordNumber(lower) || phrase_end_ <= phrase_begin_) return false;
    // "loss nan", but not "number of nan iterations: 0".
    return phrase_words_.empty() || MeaningOf(phrase_words_.back().text).role != Role::kOther;
  }

  // "94.36/s", "12 iter", "in 0 epoch": words right behind a number name it, unless a separator or
  // a number follows, whose name they then are.
  bool TrailingWord(std::string_view word) {
    after_number_ = false;
    size_t next = at_;
    while (next < text_.size() && text_[next] == ' ') ++next;
    const size_t kept = std::exchange(at_, next);
    const bool names_next = Peek() == ':' || Peek() == '=' || StartsNumber() || Peek() == '[';
    at_ = kept;
    if (names_next || line_.fields.empty()) return false;
    Field& field = line_.fields.back();
    if (!field.after.empty()) return false;
    field.after = word;
    return false;
  }

  void Quote() {
    after_number_ = false;
    // A quoted value in which a number stands alone: the quotes say nothing.
    ++at_;
    if (phrase_words_.empty() && !separated_) phrase_begin_ = at_;
  }

  void Separator() {
    const char c = Peek();
    // "std::x", "http://", "a==b"
    if (Peek(1) == c || Has("://")) {
      while (Peek() == c || Peek() == '/') ++at_;
      EndPhrase();
      return;
    }
    if (phrase_end_ > phrase_begin_) {
      separated_ = true;
    } else if (!bracket_key_.empty()) {
      separated_ = false;
    }
    ++at_;
  }

  void Parenthesis() {
    // "(1.25)" behind a value is its running average; "lr(LinearWarmup)" and "time (ms)" stay in
    // the name; everything else is opened like a bracket.
    if (after_value_ && !line_.fields.empty()) {
      size_t next = at_ + 1;
      while (next < text_.size() && text_[next] == ' ') ++next;
      const size_t kept = std::exchange(at_, next);
      const bool letters = Has("nan") || Has("inf");
      size_t end = letters ? at_ + 3 : StartsNumber() ? NumberEnd(text_, at_) : at_;
      const size_t value_end = end;
      while (end < text_.size() && text_[end] == ' ') ++end;
      if (value_end > at_ && end < text_.size() && text_[end] == ')') {
        average_of_ = line_.fields.size() - 1;
        const size_t begin = at_;
        at_ = end;
        EmitAverage(begin, value_end, letters);
        return;
      }
      at_ = kept;
    }
    const size_t close = text_.find(')', at_);
    const bool named = phrase_end_ > phrase_begin_ && !separated_;
    if (named && close != std::string_view::npos && close - at_ <= 24) {
      const std::string_view inside = text_.substr(at_ + 1, close - at_ - 1);
      const bool word = std::all_of(inside.begin(), inside.end(),
                                    [](char c) { return IsLetter(c) || c == '/' || c == '_'; });
      if (word) {
        line_.words.push_back({base::ToLowerAscii(inside), at_ + 1});
        at_ = phrase_end_ = close + 1;
        return;
      }
    }
    ++at_;
    // "lr:(2.0e-04,)"
    size_t inside = at_;
    while (inside < text_.size() && text_[inside] == ' ') ++inside;
    if (separated_ && inside < text_.size() && IsDigit(text_[inside])) {
      in_bracket_ = true;
      return;
    }
    if (!named) EndPhrase();
  }

  void Open() {
    const char c = Peek();
    after_number_ = false;
    const bool named = phrase_end_ > phrase_begin_;
    if (c == '{') {
      if (nesting_.size() < kMostNesting)
        nesting_.emplace_back(named ? Phrase() : std::string_view());
      phrase_words_.clear();
      ++at_;
      StartPhrase(at_);
      return;
    }
    size_t next = at_ + 1;
    while (next < text_.size() && (text_[next] == ' ' || text_[next] == '(')) ++next;
    const size_t kept = std::exchange(at_, next);
    const bool number = StartsNumber();
    at_ = kept;
    // "[i/n]" behind "Epoch: [e]" has no name; its place tells.
    if (number && named) {
      bracket_key_ = Phrase();
      in_bracket_ = true;
      at_ = next;
      return;
    }
    if (number) {
      in_bracket_ = true;
      at_ = next;
      StartPhrase(at_);
      return;
    }
    ++at_;
    EndPhrase();
  }

  void Close() {
    if (Peek() == '}' && !nesting_.empty()) nesting_.pop_back();
    const bool square = Peek() == ']';
    if (square || Peek() == ')') in_bracket_ = false;
    ++at_;
    // "[epoch]: 199", "[loss]: 4.99"
    if (square && !separated_ && phrase_end_ + 1 == at_ && (Peek() == ':' || Peek() == '=') &&
        phrase_begin_ > 0 && text_[phrase_begin_ - 1] == '[' &&
        MeaningOf(Phrase()).role != Role::kOther) {
      return;
    }
    // "[Loss] 0.5"
    if (square && !separated_ && phrase_end_ + 1 == at_ && Peek() == ' ' &&
        (IsDigit(Peek(1)) || Peek(1) == '-' || text_.substr(at_ + 1, 3) == "nan") &&
        MeaningOf(Phrase()).role == Role::kLoss) {
      separated_ = true;
      return;
    }
    // "[Rank 0] step", "(train) [1]": what stood inside is no name of what follows.
    if (!separated_ || phrase_end_ < at_) EndPhrase();
    list_ = false;
  }

  void Number() {
    const size_t begin = at_;
    if (SkipOddNumber()) return;
    size_t end = NumberEnd(text_, at_);
    FieldForm form = FieldForm::kNumber;
    if (SkipStamp(text_, begin, &end)) {
      form = FieldForm::kStamp;
    } else if (SkipDuration(text_, begin, &end)) {
      form = FieldForm::kDuration;
    } else if (!in_bracket_ && SkipThousands(text_, begin, &end)) {
      form = FieldForm::kNumber;
    }
    size_t total_begin = 0, total_end = 0;
    if (form == FieldForm::kNumber && ReadTotal(text_, end, &total_begin, &total_end))
      form = FieldForm::kPair;
    at_ = end;
    // "0x1f", "3d", "7.6.": not a number of its own.
    Emit(begin, end, form);
    if (form == FieldForm::kPair) {
      line_.fields.back().total_begin = total_begin;
      line_.fields.back().total_end = total_end;
      at_ = total_end;
    }
    ReadUnit();
    after_number_ = true;
  }

  // "0x1f", "1_001", "0,001": numbers in ways that are not read. No value, rather than a wrong one.
  bool SkipOddNumber() {
    size_t end = at_ + (Peek() == '-' || Peek() == '+' ? 1 : 0);
    const bool zero = end < text_.size() && text_[end] == '0';
    const auto part = [this](size_t at) { return IsDigit(text_[at]) || text_[at] == '.'; };
    while (end < text_.size() && IsDigit(text_[end])) ++end;
    size_t whole = end;
    while (whole < text_.size() && part(whole)) ++whole;
    const char mark = end < text_.size() ? text_[end] : '\0';
    const bool digit = end + 1 < text_.size() && IsDigit(text_[end + 1]);
    const bool hex = zero && end == at_ + 1 && mark == 'x';
    const std::string_view rest = text_.substr(whole);  // "1k/90k", "0.1k/0.9k"
    const bool thousands =
        rest.size() > 2 && HumanFactor(rest.substr(0, 1)) > 0 && rest[1] == '/' && IsDigit(rest[2]);
    const bool comma = zero && end == at_ + 1 && mark == ',' && digit && !in_bracket_ && separated_;
    if (!hex && !comma && !thousands && !(mark == '_' && digit)) return false;
    while (end < text_.size() && (IsWordByte(text_[end]) || text_[end] == ',' ||
                                  text_[end] == '.' || (thousands && text_[end] == '/'))) {
      ++end;
    }
    at_ = end;
    EndPhrase();
    return true;
  }

  // "51.2ms", "7.4 sec", "36 samples/sec", "12K". Behind a space only what is surely a unit: a word
  // may be the next name.
  void ReadUnit() {
    const bool spaced = Peek() == ' ';
    const size_t begin = at_ + (spaced ? 1 : 0);
    size_t end = begin;
    while (end < text_.size() &&
           (IsWordByte(text_[end]) || text_[end] == '/' || text_[end] == '%')) {
      ++end;
    }
    if (end == begin) return;
    const std::string_view unit = text_.substr(begin, end - begin);
    size_t next = end;
    while (next < text_.size() && text_[next] == ' ') ++next;
    const char mark = next < text_.size() ? text_[next] : '\0';
    if (spaced && (mark == ':' || mark == '=' || mark == '(')) return;
    // "Epoch 1 Batch 0"
    const Role role = spaced && IsDigit(mark) ? MeaningOf(unit).role : Role::kOther;
    if (role == Role::kStepInEpoch || role == Role::kStep || role == Role::kEpoch) return;
    const bool known =
        UnitOf(unit).dimension != Dimension::kNone || (!spaced && HumanFactor(unit) > 0);
    if (mark == '=' || !known) return;
    line_.fields.back().unit = unit;
    at_ = end;
    StartPhrase(at_);
  }

  void EmitAverage(size_t begin, size_t end, bool letters) {
    Field field = line_.fields[average_of_];
    field.begin = begin;
    field.end = end;
    field.average = true;
    field.unit = {};
    field.form = letters ? FieldForm::kWord : FieldForm::kNumber;
    line_.fields.push_back(std::move(field));
    ++at_;
    after_value_ = false;
    StartPhrase(at_);
  }

  void Emit(size_t begin, size_t end, FieldForm form) {
    Field field;
    const bool named = phrase_end_ > phrase_begin_ && (!list_ || separated_);
    if (separated_ && !lead_.empty() && phrase_end_ <= phrase_begin_) {
      field.key = std::exchange(lead_, {});
      field.binding = Binding::kSeparator;
    } else if (named) {
      field.key_begin = phrase_begin_;
      if (separated_ || in_bracket_) {
        field.key = Phrase();
        field.binding = separated_ ? Binding::kSeparator : Binding::kBracket;
      } else if (!phrase_words_.empty()) {
        // Without a separator only the last word is the name.
        const auto& word = phrase_words_.back();
        field.key = text_.substr(word.at, phrase_end_ - word.at);
        field.key_begin = word.at;
        field.binding = Binding::kSpace;
        phrase_words_.pop_back();
        // "val loss 4.3": whose it is.
        if (!phrase_words_.empty()) {
          const auto& whose = phrase_words_.back();
          const LineWord meaning = LineWordOf(whose.text);
          if (meaning == LineWord::kTrain || meaning == LineWord::kEval) {
            field.key = text_.substr(whose.at, phrase_end_ - whose.at);
            field.key_begin = whose.at;
          }
        }
        if (phrase_words_.size() > 1 && phrase_words_.back().text == "at") {
          lead_ = phrase_words_[phrase_words_.size() - 2].text;
        }
        for (auto& other : phrase_words_) line_.words.push_back(std::move(other));
      }
      phrase_words_.clear();
    } else {
      field.listed = list_;
    }
    for (const std::string& key : nesting_) {
      if (key.empty()) continue;
      if (!field.group.empty()) field.group += '.';
      field.group += key;
    }
    field.form = form;
    field.begin = begin;
    field.end = end;
    line_.fields.push_back(std::move(field));
    if (in_bracket_) list_ = true;
    after_value_ = true;
    StartPhrase(end);
  }

  std::string_view text_;
  size_t from_;  // behind the line's prefix
  size_t at_;
  ScannedLine line_;
  size_t phrase_begin_ = 0, phrase_end_ = 0;
  std::vector<ScannedLine::Word> phrase_words_;
  std::vector<std::string> nesting_;
  std::string bracket_key_;
  std::string lead_;  // of "Score at iteration 100": what the line is about
  size_t average_of_ = 0;
  bool separated_ = false;     // ':' or '=' stands behind the phrase
  bool in_bracket_ = false;    // in '[' with a number
  bool list_ = false;          // the bracket's first number was read
  bool after_value_ = false;   // only spaces since a value
  bool after_number_ = false;  // no delimiter since a number
};

}  // namespace

ScannedLine ScanFields(std::string_view text, size_t from) {
  const bool ascii = std::all_of(text.begin(), text.end(),
                                 [](char c) { return static_cast<unsigned char>(c) < 0x80; });
  if (ascii) return Scanner(text, from).Run();
  const std::string plain = PlainMarks(text);
  ScannedLine line = Scanner(plain, from).Run();
  const auto original = [&](std::string_view* view) {
    if (!view->empty())
      *view = text.substr(static_cast<size_t>(view->data() - plain.data()), view->size());
  };
  for (Field& field : line.fields) {
    original(&field.unit);
    original(&field.after);
  }
  return line;
}

}  // namespace epochmeter::ingest::log
