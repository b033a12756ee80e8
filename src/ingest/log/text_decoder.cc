// SPDX-License-Identifier: Apache-2.0
#include "ingest/log/text_decoder.h"

#include <simdjson.h>

#include <algorithm>
#include <utility>

#include "ingest/log/byte_scan.h"

namespace epochmeter::ingest::log {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";
constexpr std::string_view kUtf8Mark = "\xef\xbb\xbf";
constexpr std::string_view kLittleMark = "\xff\xfe";
constexpr std::string_view kBigMark = "\xfe\xff";
// Bytes that tell whether a line after UTF-16 is UTF-8 again: as many letters without a single NUL
// are not met in UTF-16.
constexpr size_t kLookAhead = 32;
// What follows a NUL: three more letters with their NULs.
constexpr size_t kNulEvidence = 7;

unsigned char Byte(char c) { return static_cast<unsigned char>(c); }
bool IsAsciiText(char c) {
  return (c >= 0x20 && c < 0x7f) || c == '\t' || c == '\r' || c == '\n' || c == '\x1b';
}
// Bytes that no encoding uses inside a character, and no colour begins with.
bool IsSeparator(char c) { return Byte(c) < 0x20 && c != '\t' && c != '\x1b'; }

size_t SeparatorFrom(std::string_view text, size_t at) {
  while (at < text.size() && !IsSeparator(text[at])) ++at;
  return at;
}

bool HasLongCharacter(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char c) { return Byte(c) >= 0xe0; });
}

// The alphabet of a two-byte character whose bytes could be a Chinese one as well; 0 without any,
// and for signs and accents, which stand beside every alphabet.
int AlphabetOf(unsigned char lead, unsigned char trail) {
  if (lead < 0xc4 || lead > 0xdf || trail < 0xa1 || lead == 0xcc || lead == 0xcd) return 0;
  if (lead < 0xcc) return 1;                                    // Latin
  if (lead < 0xd0) return 2;                                    // Greek
  if (lead < 0xd4 || (lead == 0xd4 && trail < 0xb0)) return 3;  // Cyrillic
  return lead < 0xd8 ? 4 : 5;                                   // Armenian and Hebrew, Arabic
}

// Whether letters of two alphabets stand side by side in UTF-8 without NULs, as in no word.
bool MixesAlphabets(std::string_view text) {
  int before = 0;
  while (!text.empty()) {
    const size_t ascii = AsciiLength(text);
    if (ascii > 0) before = 0;
    text.remove_prefix(ascii);
    if (text.size() < 2) return false;
    const unsigned char lead = Byte(text[0]);
    const int alphabet = AlphabetOf(lead, Byte(text[1]));
    if (before != 0 && alphabet != 0 && alphabet != before) return true;
    before = alphabet;
    text.remove_prefix(std::min<size_t>(lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2, text.size()));
  }
  return false;
}

// Whether all is ASCII or characters of GB2312, with two of these side by side.
bool IsChineseThroughout(std::string_view bytes) {
  size_t row = 0, longest = 0;
  for (size_t at = 0; at<bytes.size(); at += row> 0 ? 2 : 1) {
    const unsigned char lead = Byte(bytes[at]);
    const bool pair =
        at + 1 < bytes.size() && lead >= 0xa1 && lead <= 0xf7 && Byte(bytes[at + 1]) >= 0xa1;
    if (lead >= 0x80 && !pair) return false;
    row = pair ? row + 1 : 0;
    longest = std::max(longest, row);
  }
  return longest >= 2;
}

// The length of a valid UTF-8 character, else 0.
size_t CharacterLength(std::string_view text) {
  const unsigned char lead = Byte(text[0]);
  if (lead < 0x80) return 1;
  const size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((Byte(text[i]) & 0xc0) != 0x80) return 0;
  }
  const unsigned char second = Byte(text[1]);
  const bool wrong = (lead == 0xe0 && second < 0xa0) || (lead == 0xed && second > 0x9f) ||
                     (lead == 0xf0 && second < 0x90) || (lead == 0xf4 && second > 0x8f);
  return wrong ? 0 : length;
}

// A character of which bytes are missing at the end.
bool IsIncomplete(std::string_view rest) {
  const unsigned char lead = Byte(rest[0]);
  const size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  return lead >= 0xc2 && lead <= 0xf4 && rest.size() < length &&
         std::all_of(rest.begin() + 1, rest.end(), [](char c) { return (Byte(c) & 0xc0) == 0x80; });
}

// Whether there is neither a NUL nor anything else that is no UTF-8 text; the last character may be
// incomplete.
bool ReadsAsUtf8(std::string_view bytes) {
  for (size_t at = 0; at < bytes.size();) {
    const std::string_view rest = bytes.substr(at);
    const size_t length = CharacterLength(rest);
    if (length == 0) return IsIncomplete(rest);
    if (length == 1 && !IsAsciiText(rest[0])) return false;
    at += length;
  }
  return true;
}

// Where a line that is too long to wait for its end may be cut: behind a byte that is no part of a
// longer character.
size_t CutPlace(std::string_view line) {
  constexpr size_t kMostBack = 4096;
  const size_t least = line.size() - std::min(line.size() - 1, kMostBack);
  for (size_t at = line.size(); at > least; --at) {
    if (Byte(line[at - 1]) < 0x30) return at;
  }
  for (size_t at = line.size(); at > 1 && at + 4 > line.size(); --at) {
    if (Byte(line[at - 1]) >= 0xc0) return at - 1;
  }
  return line.size();
}

// How the bytes of a stretch read in the encodings that are tried.
struct Evidence {
  size_t utf8_good = 0, utf8_bad = 0;  // bytes beyond ASCII
  bool utf8_long = false;              // characters of three bytes or more
  size_t pairs = 0;                    // of a lead and a trail byte
  size_t common_chinese = 0;           // of these, in the part of GB18030 that daily words use
  size_t kana = 0;                     // of these, Japanese syllables in Shift-JIS
};

Evidence Weigh(std::string_view bytes) {
  Evidence out;
  for (size_t at = 0; at < bytes.size();) {
    const size_t length = CharacterLength(bytes.substr(at));
    if (length > 1) out.utf8_good += length;
    if (length > 2) out.utf8_long = true;
    if (length == 0) ++out.utf8_bad;
    at += std::max<size_t>(length, 1);
  }
  for (size_t at = 0; at + 1 < bytes.size(); ++at) {
    const unsigned char lead = Byte(bytes[at]);
    const unsigned char trail = Byte(bytes[at + 1]);
    if (lead < 0x81) continue;
    ++out.pairs;
    if (lead >= 0xa1 && lead <= 0xf7 && trail >= 0xa1) ++out.common_chinese;
    if ((lead == 0x82 && trail >= 0x9f && trail <= 0xf1) ||
        (lead == 0x83 && trail >= 0x40 && trail <= 0x96)) {
      ++out.kana;
    }
    ++at;
  }
  return out;
}

void AppendUtf8(std::string& out, uint32_t code) {
  if (code < 0x80) {
    out += static_cast<char>(code);
    return;
  }
  if (code >= 0x10000) {
    out += static_cast<char>(0xf0 | (code >> 18));
    out += static_cast<char>(0x80 | ((code >> 12) & 0x3f));
  } else if (code >= 0x800) {
    out += static_cast<char>(0xe0 | (code >> 12));
  } else {
    out += static_cast<char>(0xc0 | (code >> 6));
    out += static_cast<char>(0x80 | (code & 0x3f));
    return;
  }
  out += static_cast<char>(0x80 | ((code >> 6) & 0x3f));
  out += static_cast<char>(0x80 | (code & 0x3f));
}

}  // namespace

void TextDecoder::Feed(std::string_view bytes) {
  while (!held_.empty() && !bytes.empty()) {
    const bool line = mode_ == Mode::kText && held_[0] != '\0';
    bytes.remove_prefix(line ? FeedHeldLine(bytes) : FeedHeldBegin(bytes));
  }
  if (bytes.empty()) return;
  const size_t used = Consume(bytes, false);
  held_.append(bytes.substr(used));
}

// A line waits for its end. Returns how many bytes were taken.
size_t TextDecoder::FeedHeldLine(std::string_view bytes) {
  const size_t end = SeparatorFrom(bytes, 0);
  const size_t take = std::min(end, kMostHeld + 1 - std::min(held_.size(), kMostHeld));
  held_.append(bytes.substr(0, take));
  const bool ended = take == end && end < bytes.size();
  if (!ended && held_.size() <= kMostHeld) return take;
  const std::string line = std::exchange(held_, {});
  const size_t cut = ended ? line.size() : CutPlace(line);
  Stretch(std::string_view(line).substr(0, cut));
  held_ = line.substr(cut + GiveAscii(std::string_view(line).substr(cut)));
  return take;
}

// A mark, a NUL or the begin of a line after UTF-16 waits for the few bytes that decide.
size_t TextDecoder::FeedHeldBegin(std::string_view bytes) {
  const size_t take = std::min(bytes.size(), kLookAhead);
  const size_t before = held_.size();
  held_.append(bytes.substr(0, take));
  const std::string all = std::exchange(held_, {});
  const size_t used = Consume(all, false);
  if (used >= before) return used - before;
  held_.assign(all, used);
  return take;
}

void TextDecoder::Finish() {
  const std::string rest = std::exchange(held_, {});
  Consume(rest, true);
  mode_ = Mode::kText;
}

// Returns how many bytes were decided; all of them when they are the last.
size_t TextDecoder::Consume(std::string_view bytes, bool last) {
  size_t at = 0;
  while (at < bytes.size()) {
    const std::string_view rest = bytes.substr(at);
    const Mode mode = mode_;
    size_t used = 0;
    if (mode == Mode::kBegin) {
      used = Begin(rest, last);
    } else if (mode == Mode::kText) {
      used = Text(rest, last);
    } else {
      used = Utf16(rest, last);
    }
    at += used;
    if (used == 0 && mode == mode_) return at;
  }
  return at;
}

size_t TextDecoder::Begin(std::string_view bytes, bool last) {
  const std::string_view three = bytes.substr(0, 3);
  const bool open = three.size() < 3 && (kUtf8Mark.substr(0, three.size()) == three ||
                                         kLittleMark.substr(0, three.size()) == three ||
                                         kBigMark.substr(0, three.size()) == three);
  if (open && !last && three.size() < 2) return 0;
  if (open && !last && three == kUtf8Mark.substr(0, 2)) return 0;
  mode_ = Mode::kText;
  if (three == kUtf8Mark) return 3;
  if (three.substr(0, 2) == kLittleMark) mode_ = Mode::kLittleEndian;
  if (three.substr(0, 2) == kBigMark) mode_ = Mode::kBigEndian;
  return mode_ == Mode::kText ? 0 : 2;
}

size_t TextDecoder::Text(std::string_view bytes, bool last) {
  const size_t first = AsciiLength(bytes);
  if (first == bytes.size()) {
    Give(bytes);
    return bytes.size();
  }
  size_t end = std::min(bytes.find('\0', first), bytes.size());
  if (end == first) {
    Give(bytes.substr(0, first));
    return first + Nul(bytes.substr(first), last);
  }
  // Whole lines, unless a NUL ends the last one.
  if (end == bytes.size() && !last) {
    while (end > first && !IsSeparator(bytes[end - 1])) --end;
  }
  Lines(bytes.substr(0, end));
  if (end == bytes.size() || bytes[end] == '\0') return end;
  end += GiveAscii(bytes.substr(end));
  const std::string_view open = bytes.substr(end);
  if (open.size() <= kMostHeld) return end;
  const size_t cut = CutPlace(open.substr(0, kMostHeld + 1));
  Stretch(open.substr(0, cut));
  return end + cut;
}

// `bytes` begin with a NUL: UTF-16 when letters and NULs alternate, else it is given on.
size_t TextDecoder::Nul(std::string_view bytes, bool last) {
  const bool big = last_ < 0;
  bool alternate = last_ != 0;  // one inside a run is not judged again
  size_t seen = 1;
  for (; alternate && seen < std::min(bytes.size(), kNulEvidence); ++seen) {
    alternate = seen % 2 == 0 ? bytes[seen] == '\0' : IsAsciiText(bytes[seen]);
  }
  if (alternate && seen < kNulEvidence && !last) return 0;
  if (alternate && seen == kNulEvidence) {
    // The letter before a first NUL of little endian was given already, as itself.
    mode_ = big ? Mode::kBigEndian : Mode::kLittleEndian;
    ++counts_.utf16;
    line_begin_ = false;
    return big ? 0 : 1;
  }
  const char* begin = bytes.data();
  const auto nuls = static_cast<size_t>(SkipNuls(begin, begin + bytes.size()) - begin);
  Give(bytes.substr(0, nuls));
  return nuls;
}

// UTF-16 up to the end, or to where UTF-8 begins again.
size_t TextDecoder::Utf16(std::string_view bytes, bool last) {
  size_t at = 0;
  while (at < bytes.size()) {
    if (line_begin_) {
      const std::string_view next = bytes.substr(at, kLookAhead);
      const bool text = ReadsAsUtf8(next);
      if (text && next.size() < kLookAhead && !last) return at;
      if (text) {
        mode_ = Mode::kText;
        return at;
      }
    }
    const size_t used = Utf16Line(bytes.substr(at), last);
    at += used;
    if (used == 0) break;
  }
  if (!last || at == bytes.size()) return at;
  ++counts_.bad_bytes;
  Give(kReplacement);
  return bytes.size();
}

// At most one line. An odd byte or half of a pair at the end is left.
size_t TextDecoder::Utf16Line(std::string_view bytes, bool last) {
  if (line_begin_) ++counts_.utf16;
  const auto unit = [&](size_t at) -> uint32_t {
    const uint32_t first = Byte(bytes[at]);
    const uint32_t second = Byte(bytes[at + 1]);
    return mode_ == Mode::kLittleEndian ? first | second << 8 : first << 8 | second;
  };
  out_.clear();
  line_begin_ = false;
  size_t at = 0;
  while (at + 1 < bytes.size() && !line_begin_) {
    uint32_t code = unit(at);
    size_t size = 2;
    if (code >= 0xd800 && code < 0xe000) {
      if (at + 3 >= bytes.size() && !last) break;
      const uint32_t low = at + 3 < bytes.size() ? unit(at + 2) : 0;
      const bool pair = code < 0xdc00 && low >= 0xdc00 && low < 0xe000;
      if (pair) size = 4;
      if (!pair) counts_.bad_bytes += 2;
      code = pair ? 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00) : 0xfffd;
    }
    at += size;
    line_begin_ = code == '\n';
    if (code != 0xfeff) AppendUtf8(out_, code);
  }
  Give(out_);
  return at;
}

// Text that ends at a separator or at the end of what can be decided.
void TextDecoder::Lines(std::string_view text) {
  const bool chinese = counts_.gb18030 > 0 && !utf8_seen_;
  if (!chinese && simdjson::validate_utf8(text.data(), text.size()) &&
      (utf8_seen_ || !MixesAlphabets(text))) {
    utf8_seen_ = utf8_seen_ || HasLongCharacter(text);
    return Give(text);
  }
  size_t at = 0;
  while (at < text.size()) {
    const size_t begin = at + GiveAscii(text.substr(at));
    at = SeparatorFrom(text, begin);
    if (at > begin) Stretch(text.substr(begin, at - begin));
    // A NUL at the end is the next thing to look at; one inside can't be.
    const size_t next = std::min(at + 1, text.size());
    Give(text.substr(at, next - at));
    at = next;
  }
}

// From the first byte beyond ASCII to the end of its line.
void TextDecoder::Stretch(std::string_view bytes) {
  const bool utf8 = simdjson::validate_utf8(bytes.data(), bytes.size());
  // Two-byte characters alone may be Chinese that looks valid.
  const bool odd = counts_.gb18030 > 0 || MixesAlphabets(bytes);
  if (utf8 && (utf8_seen_ || !odd || HasLongCharacter(bytes))) {
    utf8_seen_ = utf8_seen_ || HasLongCharacter(bytes);
    return Give(bytes);
  }
  const Evidence seen = Weigh(bytes);
  const bool word = !utf8_seen_ && !seen.utf8_long && IsChineseThroughout(bytes);
  if (!utf8 && !word && seen.utf8_good >= seen.utf8_bad + (seen.utf8_long ? 0 : 1)) {
    utf8_seen_ = true;
  } else {
    // Where characters of UTF-8 were seen, a torn one is likelier than one Chinese word.
    const size_t least = utf8_seen_ && counts_.gb18030 == 0 ? 3 : 1;
    const bool chinese = seen.common_chinese >= least && seen.common_chinese * 2 >= seen.pairs;
    const bool japanese = seen.kana >= 2 && seen.kana * 3 >= seen.pairs;
    if (japanese && !chinese && Convert("CP932", bytes)) {
      ++counts_.shift_jis;
      return;
    }
    if ((chinese || counts_.gb18030 > 0) && Convert("GB18030", bytes)) {
      ++counts_.gb18030;
      return;
    }
  }
  Repair(bytes);
}

// False, and nothing given, when more than a torn end makes no sense in this encoding.
bool TextDecoder::Convert(const char* encoding, std::string_view bytes) {
  if (encoding_ != encoding) {
    void* const handle = iconv_open("UTF-8", encoding);
    // The C library may be installed without its tables.
    if (handle == reinterpret_cast<void*>(-1)) return false;  // NOLINT
    converter_.reset(handle);
    encoding_ = encoding;
  }
  out_.resize(bytes.size() * 4);
  char* in = const_cast<char*>(bytes.data());  // NOLINT: iconv does not write there
  size_t in_left = bytes.size();
  char* out = out_.data();
  size_t out_left = out_.size();
  const size_t most_bad = 1 + bytes.size() / 32;
  size_t bad = 0;
  iconv(converter_.get(), nullptr, nullptr, nullptr, nullptr);
  while (iconv(converter_.get(), &in, &in_left, &out, &out_left) == static_cast<size_t>(-1)) {
    if (++bad > most_bad || out_left < kReplacement.size()) return false;
    out = std::copy(kReplacement.begin(), kReplacement.end(), out);
    out_left -= kReplacement.size();
    ++in;
    --in_left;
  }
  counts_.bad_bytes += bad;
  Give(std::string_view(out_).substr(0, out_.size() - out_left));
  return true;
}

void TextDecoder::Repair(std::string_view bytes) {
  out_.clear();
  for (size_t at = 0; at < bytes.size();) {
    const size_t length = CharacterLength(bytes.substr(at));
    if (length == 0) {
      out_ += kReplacement;
      ++counts_.bad_bytes;
      ++at;
      continue;
    }
    out_ += bytes.substr(at, length);
    at += length;
  }
  Give(out_);
}

size_t TextDecoder::GiveAscii(std::string_view text) {
  const size_t length = AsciiLength(text);
  Give(text.substr(0, length));
  return length;
}

void TextDecoder::Give(std::string_view text) {
  if (text.empty()) return;
  last_ = Byte(text.back());
  sink_.OnText(text);
}

}  // namespace epochmeter::ingest::log
