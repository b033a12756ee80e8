// SPDX-License-Identifier: Apache-2.0
#include "base/redact.h"

#include <algorithm>
#include <array>

#include "base/strings.h"

namespace epochmeter::base {
namespace {

bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsWord(char c) { return IsLetter(c) || IsDigit(c) || c == '_' || c == '-' || c == '.'; }

// Ends of names whose values are secrets; a letter before them would be another word.
constexpr std::array<std::string_view, 14> kSecretEnds = {
    "token",  "secret",     "password",   "passwd",     "passphrase", "api_key",     "api-key",
    "apikey", "access_key", "access-key", "secret_key", "credential", "credentials", "private_key"};
// Of language models; no secrets.
constexpr std::array<std::string_view, 8> kVocabulary = {"pad", "eos", "bos",  "unk",
                                                         "cls", "sep", "mask", "next"};

bool NamesSecret(std::string_view word) {
  const std::string lower = ToLowerAscii(word);
  if (lower == "authorization" || EndsWith(lower, "-authorization")) return true;
  for (const std::string_view end : kSecretEnds) {
    if (!EndsWith(lower, end)) continue;
    std::string_view before = std::string_view(lower).substr(0, lower.size() - end.size());
    const size_t at = before.size();
    const bool new_word = before.empty() || !IsLetter(before.back()) ||
                          (word[at] >= 'A' && word[at] <= 'Z');  // apiToken
    if (!new_word) continue;
    while (!before.empty() && !IsLetter(before.back())) before.remove_suffix(1);
    return std::none_of(kVocabulary.begin(), kVocabulary.end(),
                        [&](std::string_view part) { return EndsWith(before, part); });
  }
  return false;
}

// The shapes of tokens of well-known services.
bool LooksLikeToken(std::string_view word) {
  struct Shape {
    std::string_view prefix;
    size_t least;  // characters
  };
  constexpr std::array<Shape, 11> kShapes = {{{"hf_", 20},
                                              {"ghp_", 20},
                                              {"gho_", 20},
                                              {"ghs_", 20},
                                              {"github_pat_", 24},
                                              {"glpat-", 16},
                                              {"sk-", 24},
                                              {"xoxb-", 16},
                                              {"xoxp-", 16},
                                              {"AKIA", 20},
                                              {"eyJ", 40}}};
  const auto shape = std::find_if(kShapes.begin(), kShapes.end(), [&](const Shape& known) {
    return StartsWith(word, known.prefix) && word.size() >= known.least;
  });
  return shape != kShapes.end() && std::any_of(word.begin(), word.end(), IsDigit);
}

bool EndsValue(char c) {
  constexpr std::string_view kEnds = " \t\r\n\"'\\,;&)]}<>";
  return kEnds.find(c) != std::string_view::npos;
}

size_t ValueEnd(std::string_view text, size_t at) {
  while (at < text.size() && !EndsValue(text[at])) ++at;
  return at;
}

size_t WordEnd(std::string_view text, size_t at) {
  while (at < text.size() && IsWord(text[at])) ++at;
  return at;
}

// Length of the part of a path that leads into a home folder: "/home/ann", "/data/users/ann",
// "/root"; 0 when it does not.
size_t HomeLength(std::string_view path) {
  size_t at = 0;
  for (int depth = 0; depth < 4 && at < path.size() && path[at] == '/'; ++depth) {
    const size_t end = WordEnd(path, at + 1);
    const std::string part = ToLowerAscii(path.substr(at + 1, end - at - 1));
    if (depth == 0 && part == "root") return end;
    const bool homes = part == "home" || part == "users";
    const bool has_name = end + 1 < path.size() && path[end] == '/' && IsWord(path[end + 1]);
    if (homes && has_name) return WordEnd(path, end + 1);
    at = end;
  }
  return 0;
}

bool IsPlainValue(std::string_view value) {
  const std::string lower = ToLowerAscii(value);
  if (lower == "none" || lower == "null" || lower == "true" || lower == "false") return true;
  return value.size() < 8 && ParseDouble(value).has_value();
}

// Where the secret value begins that stands behind the word that ends at `at`; npos when none does.
size_t SecretBegin(std::string_view text, std::string_view word, size_t at) {
  const bool flag = StartsWith(word, "--");
  size_t from = at;
  const auto skip = [&](std::string_view any) {
    while (from < text.size() && any.find(text[from]) != std::string_view::npos) ++from;
  };
  skip("\\\"'");
  const size_t separator = from;
  skip(flag ? "=: " : "=:");
  if (from == separator) return std::string_view::npos;
  const bool spaced = from < text.size() && text[from] == ' ';
  skip(" \\\"'");
  const size_t scheme = WordEnd(text, from);
  const std::string_view kind = text.substr(from, scheme - from);
  if ((kind == "Bearer" || kind == "Basic") && scheme < text.size() && text[scheme] == ' ') {
    return scheme + 1;
  }
  // "unexpected token: foo" is prose.
  if (spaced && ValueEnd(text, from) - from < 8) return std::string_view::npos;
  return from;
}

// Goes through a text once and copies what may be seen.
class Scan {
 public:
  Scan(std::string_view text, std::set<std::string>* found, std::string* out)
      : text_(text), found_(*found), out_(*out) {}

  void Run() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '\\') {
        Copy(std::min(at_ + 2, text_.size()));  // an escape is no part of a word
        in_path_ = false;
      } else if (c == '/') {
        Slash();
      } else if (text_.substr(at_, 3) == "://") {
        Authority();
      } else if (IsWord(c)) {
        Word();
      } else {
        Copy(at_ + 1);
        in_path_ = false;
      }
    }
  }

 private:
  void Copy(size_t end) {
    out_.append(text_.substr(at_, end - at_));
    at_ = end;
  }
  void Hide(size_t end, std::string_view by, const char* what) {
    out_.append(by);
    at_ = end;
    found_.insert(what);
  }

  void Slash() {
    const size_t home = in_path_ ? 0 : HomeLength(text_.substr(at_));
    in_path_ = home > 0;
    home > 0 ? Hide(at_ + home, "~", "home folder") : Copy(at_ + 1);
  }

  void Authority() {
    const size_t end = std::min(text_.find_first_of("/?#", at_ + 3), ValueEnd(text_, at_ + 3));
    const std::string url = RedactUrl(text_.substr(at_, end - at_));
    url == text_.substr(at_, end - at_) ? Copy(end) : Hide(end, url, "credentials in a URL");
    in_path_ = end > at_;
  }

  void Word() {
    const size_t end = WordEnd(text_, at_);
    const std::string_view word = text_.substr(at_, end - at_);
    in_path_ = true;
    if (LooksLikeToken(word)) return Hide(end, kHidden, "token");
    Copy(end);
    if (!NamesSecret(word)) return;
    const size_t from = SecretBegin(text_, word, end);
    if (from >= text_.size()) return;
    const size_t to = ValueEnd(text_, from);
    const std::string_view value = text_.substr(from, to - from);
    if (value.empty() || value == kHidden || IsPlainValue(value)) return;
    Copy(from);
    Hide(to, kHidden, "secret");
  }

  std::string_view text_;
  std::set<std::string>& found_;
  std::string& out_;
  size_t at_ = 0;
  bool in_path_ = false;  // behind a word: a slash here begins no path
};

// The index behind the string literal that begins at `at`.
size_t LiteralEnd(std::string_view json, size_t at) {
  for (++at; at < json.size(); ++at) {
    if (json[at] == '\\') {
      ++at;
    } else if (json[at] == '"') {
      return at + 1;
    }
  }
  return json.size();
}

}  // namespace

bool IsSecretName(std::string_view name) {
  const std::string lower = ToLowerAscii(name);
  constexpr std::array<std::string_view, 9> kParts = {"token",  "secret",     "password",
                                                      "passwd", "api-key",    "api_key",
                                                      "apikey", "credential", "access_key"};
  return std::any_of(kParts.begin(), kParts.end(), [&lower](std::string_view part) {
    return lower.find(part) != std::string::npos;
  });
}

std::string RedactUrl(std::string_view word) {
  std::string url(word);
  const size_t scheme = url.find("://");
  if (scheme == std::string::npos) return url;
  const size_t end = url.find_first_of("/?#", scheme + 3);
  const size_t at = url.rfind('@', end);
  if (at == std::string::npos || at < scheme + 3) return url;
  return url.replace(scheme + 3, at - scheme - 3, kHidden);
}

std::string Redactor::Text(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  Scan(text, &found_, &out).Run();
  return out;
}

std::string Redactor::Json(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  bool secret = false;  // the key before is the name of one
  size_t at = 0;
  while (at < json.size()) {
    const size_t quote = std::min(json.find('"', at), json.size());
    out.append(json.substr(at, quote - at));
    if (quote == json.size()) break;
    at = LiteralEnd(json, quote);
    const std::string_view literal = json.substr(quote, at - quote);
    const bool key = at < json.size() && json[at] == ':';
    if (secret && !key && literal.size() > 2) {
      found_.insert("secret");
      out.append("\"").append(kHidden).append("\"");
    } else {
      Scan(literal, &found_, &out).Run();
    }
    secret = key && IsSecretName(literal) && json.substr(at, 2) == ":\"";
  }
  return out;
}

}  // namespace epochmeter::base
