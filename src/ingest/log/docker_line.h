// SPDX-License-Identifier: Apache-2.0
// One line of Docker's json-file log. Pure but for its buffer.
#pragma once

#include <string>
#include <string_view>

namespace epochmeter::ingest::log {

struct DockerLine {
  std::string log;        // what the program wrote, with its line end where it wrote one
  std::string_view time;  // as printed
  bool error_stream = false;
};

inline bool LooksLikeDockerLine(std::string_view text) {
  // {"log":" or {"log": "
  constexpr std::string_view kBegin = "{\"log\":";
  return text.size() > 9 && text.substr(0, kBegin.size()) == kBegin &&
         (text[7] == '"' || (text[7] == ' ' && text[8] == '"'));
}

// False when the text is not whole or not of this form; `line` is then not meant.
bool ReadDockerLine(std::string_view text, DockerLine& line);

}  // namespace epochmeter::ingest::log
