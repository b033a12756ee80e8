// SPDX-License-Identifier: Apache-2.0
#include "runfile/record_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>

#include "base/strings.h"
#include "runfile/record_fields.h"

namespace epochmeter::runfile {
namespace {

constexpr std::array<std::string_view, std::variant_size_v<model::Record>> kRecordNames = {
    "run", "anchor", "entity", "series", "samples", "state", "event", "log", "loss", "end"};
constexpr std::string_view kBits = "bits:";  // of a double that has no number text

std::string_view NameOf(model::Scope v) { return model::ScopeName(v); }
std::string_view NameOf(model::MetricKind v) { return model::MetricKindName(v); }
std::string_view NameOf(model::SeriesCondition v) { return model::SeriesConditionName(v); }
std::string_view NameOf(model::EventKind v) { return model::EventKindName(v); }
std::string_view NameOf(model::LossSeverity v) {
  constexpr std::array<std::string_view, 3> kNames = {"info", "data_loss", "error"};
  return kNames[static_cast<size_t>(v)];
}

std::string Quote(std::string_view text) {
  const bool utf8 = base::ToValidUtf8(text) == text;
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (byte < 0x20 || byte == 0x7F || (byte >= 0x80 && !utf8)) {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out += c;
    }
  }
  return out += '"';
}

std::string NumberText(double v) {
  return std::isfinite(v) ? fmt::format("{}", v)
                          : fmt::format("{}{:016x}", kBits, std::bit_cast<uint64_t>(v));
}

class Printer {
 public:
  explicit Printer(std::string_view name) : out_(name) {}
  std::string Take() { return std::move(out_); }

  void operator()(const char* name, const std::string& v) { Put(name, Quote(v)); }
  void operator()(const char* name, double v) { Put(name, NumberText(v)); }
  template <typename T>
  requires std::is_integral_v<T>
  void operator()(const char* name, T v) { Put(name, fmt::format("{}", v)); }
  template <typename E>
  requires std::is_enum_v<E>
  void operator()(const char* name, E v) { Put(name, NameOf(v)); }
  template <typename T>
  void operator()(const char* name, const std::optional<T>& v) {
    Put(name, v ? fmt::format("{}", *v) : "-");
  }
  void operator()(const char* name, const model::Labels& labels) {
    std::string list;
    for (const auto& [key, value] : labels) list += Quote(key) + "=" + Quote(value) + ",";
    Put(name, "{" + list + "}");
  }
  void operator()(const char* name, const std::vector<model::SampleValue>& values) {
    std::string list;
    for (const auto& v : values) list += fmt::format("{}:{},", v.series, NumberText(v.value));
    Put(name, "{" + list + "}");
  }
  void operator()(const char* name, const std::vector<model::EventField>& fields) {
    std::string list;
    for (const model::EventField& field : fields) {
      list += Quote(field.key) + "=";
      if (const auto* v = std::get_if<int64_t>(&field.value)) list += fmt::format("i{}", *v);
      if (const auto* v = std::get_if<double>(&field.value)) list += "f" + NumberText(*v);
      if (const auto* v = std::get_if<std::string>(&field.value)) list += Quote(*v);
      list += ",";
    }
    Put(name, "{" + list + "}");
  }

 private:
  void Put(const char* name, std::string_view value) { out_ += fmt::format(" {}={}", name, value); }
  std::string out_;
};

class Parser {
 public:
  explicit Parser(std::string_view rest) : rest_(rest) {}
  bool done() const { return ok_ && rest_.empty(); }

  void operator()(const char* name, std::string& v) {
    Key(name);
    Text(v);
  }
  void operator()(const char* name, double& v) {
    Key(name);
    Number(v);
  }
  template <typename T>
  requires std::is_integral_v<T>
  void operator()(const char* name, T& v) {
    Key(name);
    Integer(v);
  }
  template <typename E>
  requires std::is_enum_v<E>
  void operator()(const char* name, E& v) {
    Key(name);
    const std::string_view word = rest_.substr(0, rest_.find(' '));
    bool found = false;
    for (int i = 0; i < kEnumCount<E> && !found; ++i) {
      found = NameOf(static_cast<E>(i)) == word;
      if (found) v = static_cast<E>(i);
    }
    ok_ = ok_ && found;
    rest_.remove_prefix(word.size());
  }
  template <typename T>
  void operator()(const char* name, std::optional<T>& v) {
    Key(name);
    if (rest_ == "-" || rest_.starts_with("- ")) {
      Expect("-");
    } else {
      Integer(v.emplace());
    }
  }
  void operator()(const char* name, model::Labels& labels) {
    Key(name);
    List([&] {
      auto& [key, value] = labels.emplace_back();
      Text(key);
      Expect("=");
      Text(value);
    });
  }
  void operator()(const char* name, std::vector<model::SampleValue>& values) {
    Key(name);
    List([&] {
      model::SampleValue& sample = values.emplace_back();
      Integer(sample.series);
      Expect(":");
      Number(sample.value);
    });
  }
  void operator()(const char* name, std::vector<model::EventField>& fields) {
    Key(name);
    List([&] {
      model::EventField& field = fields.emplace_back();
      Text(field.key);
      Expect("=");
      if (Skip("i")) {
        Integer(field.value.emplace<int64_t>());
      } else if (Skip("f")) {
        Number(field.value.emplace<double>());
      } else {
        Text(field.value.emplace<std::string>());
      }
    });
  }

 private:
  bool Skip(std::string_view word) {
    if (!ok_ || !rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  void Expect(std::string_view word) { ok_ = Skip(word); }
  void Key(const char* name) {
    Expect(" ");
    Expect(name);
    Expect("=");
  }
  template <typename Item>
  void List(const Item& item) {
    Expect("{");
    while (ok_ && !Skip("}")) {
      item();
      Expect(",");
    }
  }
  template <typename T>
  void Integer(T& v) {
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), v);
    ok_ = ok_ && error == std::errc();
    if (ok_) rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
  }
  void Number(double& v) {
    if (!Skip(kBits)) return Integer(v);
    uint64_t bits = 0;
    const size_t digits = std::min<size_t>(rest_.size(), 16);
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + digits, bits, 16);
    ok_ = ok_ && error == std::errc() && end == rest_.data() + 16;
    if (ok_) rest_.remove_prefix(16);
    v = std::bit_cast<double>(bits);
  }
  void Text(std::string& v) {
    Expect("\"");
    while (ok_ && !Skip("\"")) {
      if (Skip("\\x")) {
        std::string byte;
        ok_ = BytesFromHex(rest_.substr(0, 2), &byte) && byte.size() == 1;
        if (ok_) rest_.remove_prefix(2);
        v += byte;
      } else if (Skip("\\n")) {
        v += '\n';
      } else {
        Skip("\\");
        ok_ = ok_ && !rest_.empty();
        if (!ok_) return;
        v += rest_.front();
        rest_.remove_prefix(1);
      }
    }
  }

  std::string_view rest_;
  bool ok_ = true;
};

template <size_t kIndex = 0>
bool ParseBody(std::string_view name, std::string_view body, model::Record* record) {
  if constexpr (kIndex < std::variant_size_v<model::Record>) {
    if (name != kRecordNames[kIndex]) return ParseBody<kIndex + 1>(name, body, record);
    Parser parser(body);
    Fields(parser, record->emplace<kIndex>());
    return parser.done();
  }
  return false;
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

}  // namespace

std::string RecordToText(const model::Record& record) {
  Printer printer(kRecordNames[record.index()]);
  std::visit([&printer](const auto& typed) { Fields(printer, typed); }, record);
  return printer.Take();
}

bool RecordFromText(std::string_view line, model::Record* record) {
  const size_t space = std::min(line.find(' '), line.size());
  return ParseBody(line.substr(0, space), line.substr(space), record);
}

std::string HexText(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  out.reserve(2 * bytes.size());
  for (const char c : bytes) {
    out += kDigits[static_cast<unsigned char>(c) >> 4];
    out += kDigits[static_cast<unsigned char>(c) & 15];
  }
  return out;
}

bool BytesFromHex(std::string_view text, std::string* bytes) {
  bytes->clear();
  if (text.size() % 2 != 0) return false;
  for (size_t i = 0; i < text.size(); i += 2) {
    const int high = HexDigit(text[i]), low = HexDigit(text[i + 1]);
    if (high < 0 || low < 0) return false;
    *bytes += static_cast<char>(high * 16 + low);
  }
  return true;
}

}  // namespace epochmeter::runfile
