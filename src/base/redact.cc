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

bool IsHexDigit(char c) { return IsDigit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }
bool IsUpper(char c) { return c >= 'A' && c <= 'Z'; }
bool IsBase64(char c) { return IsLetter(c) || IsDigit(c) || c == '+' || c == '/' || c == '='; }

// Ends of names whose values are secrets; a letter before them would be another word.
constexpr std::array<std::string_view, 21> kSecretEnds = {
    "token",       "secret",      "password",       "passwd",      "passphrase", "api_key",
    "api-key",     "apikey",      "access_key",     "access-key",  "accesskey",  "secret_key",
    "secretkey",   "account_key", "accountkey",     "storage_key", "credential", "credentials",
    "private_key", "privatekey",  "accesssignature"};
// Of language models; no secrets.
constexpr std::array<std::string_view, 8> kVocabulary = {"pad", "eos", "bos",  "unk",
                                                         "cls", "sep", "mask", "next"};

bool NamesSecret(std::string_view word, const std::string& lower) {
  if (lower == "authorization" || EndsWith(lower, "-authorization")) return true;
  for (const std::string_view end : kSecretEnds) {
    if (!EndsWith(lower, end)) continue;
    std::string_view before = std::string_view(lower).substr(0, lower.size() - end.size());
    const size_t at = before.size();
    const bool new_word =
        before.empty() || !IsLetter(before.back()) || IsUpper(word[at]);  // apiToken
    if (!new_word) continue;
    while (!before.empty() && !IsLetter(before.back())) before.remove_suffix(1);
    return std::none_of(kVocabulary.begin(), kVocabulary.end(),
                        [&](std::string_view part) { return EndsWith(before, part); });
  }
  return false;
}

// Parameters of signed URLs. Most have names that other things have, too, elsewhere than behind
// the sign that begins a parameter.
bool SignsUrl(const std::string& lower, char before) {
  if (StartsWith(lower, "x-") && EndsWith(lower, "-signature")) return true;
  const bool parameter = before == '?' || before == '&' || before == ';';
  return parameter && (lower == "sig" || lower == "signature" || lower == "q-signature" ||
                       EndsWith(lower, "accesskeyid"));
}

// The shapes of tokens of well-known services.
enum class Rest : uint8_t { kAny, kPlain, kCapital };  // letters, digits and "_-."; no signs
struct TokenShape {
  std::string_view prefix;
  size_t least;  // characters
  Rest rest = Rest::kAny;
};
constexpr TokenShape kTokenShapes[] = {
    {"hf_", 20, Rest::kPlain},
    {"ghp_", 20, Rest::kPlain},
    {"gho_", 20, Rest::kPlain},
    {"ghs_", 20, Rest::kPlain},
    {"ghu_", 20, Rest::kPlain},
    {"ghr_", 20, Rest::kPlain},
    {"github_pat_", 24},
    {"glpat-", 16},
    {"sk-", 24},
    {"nvapi-", 24},
    {"wandb_v1_", 24},
    {"xoxa-", 16},
    {"xoxb-", 16},
    {"xoxe-", 16},
    {"xoxp-", 16},
    {"xoxr-", 16},
    {"xoxs-", 16},
    {"AIza", 39},
    {"AKIA", 20, Rest::kCapital},
    {"ASIA", 20, Rest::kCapital},
    {"LTAI", 20, Rest::kPlain},
    {"eyJ", 40},
};

bool HasShape(std::string_view word, const TokenShape& shape) {
  if (!StartsWith(word, shape.prefix) || word.size() < shape.least) return false;
  const std::string_view rest = word.substr(shape.prefix.size());
  return shape.rest == Rest::kAny || std::all_of(rest.begin(), rest.end(), [&](char c) {
           return IsDigit(c) || IsUpper(c) || (shape.rest == Rest::kPlain && IsLetter(c));
         });
}

bool LooksLikeToken(std::string_view word) {
  return std::any_of(std::begin(kTokenShapes), std::end(kTokenShapes),
                     [&](const TokenShape& shape) { return HasShape(word, shape); }) &&
         std::any_of(word.begin(), word.end(), IsDigit);
}

// What a line of a key has and a hash has not: small and capital letters and digits.
bool LooksLikeKeyBody(std::string_view run) {
  constexpr size_t kLeast = 32;
  const auto small = [](char c) { return IsLetter(c) && !IsUpper(c); };
  return run.size() >= kLeast && std::any_of(run.begin(), run.end(), small) &&
         std::any_of(run.begin(), run.end(), IsUpper) &&
         std::any_of(run.begin(), run.end(), IsDigit);
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

// A number is no token; a whole one may be a password.
bool IsPlainValue(std::string_view value, bool of_token) {
  const std::string lower = ToLowerAscii(value);
  if (lower == "none" || lower == "null" || lower == "true" || lower == "false") return true;
  const bool short_or_real = value.size() < 8 || value.find('.') != std::string_view::npos;
  return (of_token || short_or_real) && ParseDouble(value).has_value();
}

// Where the secret value begins that stands behind the word that ends at `at`; npos when none does.
size_t SecretBegin(std::string_view text, std::string_view word, size_t at) {
  const bool flag = StartsWith(word, "--");
  size_t from = at;
  const auto skip = [&](std::string_view any) {
    while (from < text.size() && any.find(text[from]) != std::string_view::npos) ++from;
  };
  skip("\\\"'");
  const size_t behind = from;
  skip(" ");
  const bool is = from < text.size() && (text[from] == '=' || text[from] == ':');
  if (!is) from = behind;
  const size_t separator = from;
  skip(flag ? "=: " : "=:");
  if (from == separator || text.substr(separator, 2) == "==") return std::string_view::npos;
  const bool spaced = from < text.size() && text[from] == ' ';
  skip(" \\\"'");
  const size_t scheme = WordEnd(text, from);
  const std::string_view kind = text.substr(from, scheme - from);
  if ((kind == "Bearer" || kind == "Basic") && scheme < text.size() && text[scheme] == ' ') {
    return scheme + 1;
  }
  if (!spaced) return from;
  // "unexpected token: foo" is prose, "token = next(tokens)" is code.
  const std::string_view value = text.substr(from, ValueEnd(text, from) - from);
  const bool code = value.find_first_of("([") != std::string_view::npos;
  return value.size() < 8 || code ? std::string_view::npos : from;
}

// Goes through a text once and copies what may be seen.
class Scan {
 public:
  // `in_key`: the texts before had the begin of a private key and not its end.
  Scan(std::string_view text, bool* in_key, std::set<std::string>* found, std::string* out)
      : text_(text), in_key_(*in_key), found_(*found), out_(*out) {}

  void Run() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (in_key_ && at_ >= no_key_until_ && KeyBody()) continue;
      if (c == '\\') {
        if (text_.substr(at_, 2) == "\\n") EndLine();
        Copy(std::min(at_ + 2, text_.size()));  // an escape is no part of a word
        in_path_ = false;
      } else if (c == '/') {
        Slash();
      } else if (text_.substr(at_, 3) == "://") {
        Authority();
      } else if (IsWord(c)) {
        Word();
      } else {
        if (c == '\n') EndLine();
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
  void EndLine() { says_wandb_ = says_login_ = false; }

  void Slash() {
    const size_t home = in_path_ ? 0 : HomeLength(text_.substr(at_));
    in_path_ = home > 0;
    home > 0 ? Hide(at_ + home, "~", "home folder") : Copy(at_ + 1);
  }

  // Passwords may have signs in them that elsewhere end a value.
  void Authority() {
    const size_t most = std::min(text_.find_first_of("/?# \t\r\n\"<>\\`", at_ + 3), text_.size());
    const bool credentials =
        text_.substr(at_ + 3, most - at_ - 3).find('@') != std::string_view::npos;
    const size_t end = credentials ? most : ValueEnd(text_.substr(0, most), at_ + 3);
    const std::string url = RedactUrl(text_.substr(at_, end - at_));
    in_path_ = end > at_ + 3;
    credentials ? Hide(end, url, "credentials in a URL") : Copy(end);
  }

  // One line of a private key, whatever stands before it.
  bool KeyBody() {
    size_t end = at_;
    while (end < text_.size() && IsBase64(text_[end])) ++end;
    no_key_until_ = end;
    if (!LooksLikeKeyBody(text_.substr(at_, end - at_))) return false;
    Hide(end, kHidden, "private key");
    return true;
  }

  // "-----BEGIN RSA PRIVATE KEY-----", with the key where its end is in this text, too.
  bool KeyMark(std::string_view word) {
    constexpr std::string_view kBegin = "-----BEGIN", kEnd = "-----END", kDashes = "-----";
    if (StartsWith(word, kEnd)) in_key_ = false;
    if (!StartsWith(word, kBegin)) return false;
    const size_t dashes = text_.find(kDashes, at_ + kBegin.size());
    constexpr size_t kLongest = 64;
    if (dashes > at_ + kLongest) return false;
    const std::string_view mark = text_.substr(at_, dashes - at_);
    if (mark.find("PRIVATE KEY") == std::string_view::npos) return false;
    Copy(dashes + kDashes.size());
    const size_t end = has_no_end_ ? std::string_view::npos : text_.find(kEnd, at_);
    in_key_ = has_no_end_ = end == std::string_view::npos;
    if (!in_key_ && end > at_) Hide(end, kHidden, "private key");
    return true;
  }

  // "wandb login KEY": the key looks like the hash of a commit.
  bool IsKeyOfWandb(std::string_view word, const std::string& lower) {
    constexpr size_t kDigits = 40;
    if (word.size() == kDigits && std::all_of(word.begin(), word.end(), IsHexDigit)) {
      return says_wandb_ && says_login_;
    }
    says_wandb_ = says_wandb_ || lower.find("wandb") != std::string::npos;
    says_login_ = says_login_ || EndsWith(lower, "login");
    return false;
  }

  void Word() {
    size_t end = WordEnd(text_, at_);
    const std::string_view word = text_.substr(at_, end - at_);
    in_path_ = true;
    if (KeyMark(word)) return;
    std::string_view bare = word;  // "It is KEY."
    while (EndsWith(bare, ".")) bare.remove_suffix(1);
    const std::string lower = ToLowerAscii(word);
    if (LooksLikeToken(bare) || IsKeyOfWandb(bare, lower)) {
      return Hide(at_ + bare.size(), kHidden, "token");
    }
    const char before = at_ > 0 ? text_[at_ - 1] : '\0';
    Copy(end);
    if (NamesSecret(word, lower) || SignsUrl(lower, before)) Value(word, lower, end);
  }

  // Of the secret whose name ends at `end`.
  void Value(std::string_view word, const std::string& lower, size_t end) {
    const size_t from = SecretBegin(text_, word, end);
    if (from >= text_.size()) return;
    const size_t to = ValueEnd(text_, from);
    const std::string_view value = text_.substr(from, to - from);
    if (value.empty() || value == kHidden || IsPlainValue(value, EndsWith(lower, "token"))) return;
    Copy(from);
    Hide(to, kHidden, "secret");
  }

  std::string_view text_;
  bool& in_key_;
  std::set<std::string>& found_;
  std::string& out_;
  size_t at_ = 0;
  bool has_no_end_ = false;                       // of a private key, from here on
  size_t no_key_until_ = 0;                       // no line of a key begins before
  bool in_path_ = false;                          // behind a word: a slash here begins no path
  bool says_wandb_ = false, says_login_ = false;  // this line
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
  constexpr std::array<std::string_view, 11> kParts = {
      "token",  "secret",     "password",   "passwd",    "api-key",   "api_key",
      "apikey", "credential", "access_key", "accesskey", "accountkey"};
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
  Scan(text, &in_key_, &found_, &out).Run();
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
      Scan(literal, &in_key_, &found_, &out).Run();
    }
    secret = key && IsSecretName(literal) && json.substr(at, 2) == ":\"";
  }
  return out;
}

}  // namespace epochmeter::base
