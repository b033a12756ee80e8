// SPDX-License-Identifier: Apache-2.0
#include "ingest/log/plain_marks.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace epochmeter::ingest::log {

std::string PlainMarks(std::string_view text) {
  static constexpr std::pair<std::string_view, char> kMarks[] = {
      {"\uFF1A", ':'}, {"\uFF0C", ','}, {"\uFF1B", ';'}, {"\u3001", ','}, {"\u3002", ';'},
      {"\uFF08", '('}, {"\uFF09", ')'}, {"\uFF1D", '='}, {"\u3010", '['}, {"\u3011", ']'},
      {"\uFF5C", '|'}, {"\u2502", '|'}, {"\u2503", '|'}, {"\u3000", ' '}};
  std::string plain(text);
  for (size_t at = 0; at + 2 < plain.size(); ++at) {
    const auto lead = static_cast<unsigned char>(plain[at]);
    if (lead == 0xC2 && static_cast<unsigned char>(plain[at + 1]) == 0xA0) {  // no-break space
      plain[at] = plain[at + 1] = ' ';
      continue;
    }
    if (lead != 0xE2 && lead != 0xE3 && lead != 0xEF && lead != 0xF0) continue;
    const size_t size = lead == 0xF0 ? 4 : 3;
    const std::string_view bytes = text.substr(at, size);
    const auto* mark = std::find_if(std::begin(kMarks), std::end(kMarks),
                                    [bytes](const auto& entry) { return entry.first == bytes; });
    const bool known = mark != std::end(kMarks);
    if (!known && lead != 0xE2 && lead != 0xF0) continue;
    std::fill_n(plain.begin() + static_cast<std::ptrdiff_t>(at), bytes.size(), ' ');
    if (known) plain[at] = mark->second;
    at += bytes.size() - 1;
  }
  return plain;
}

}  // namespace epochmeter::ingest::log
