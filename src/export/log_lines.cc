// SPDX-License-Identifier: Apache-2.0
#include "export/log_lines.h"

namespace epochmeter::exporting {
namespace {

LogLine Finish(LogLine line) {
  if (!line.text.empty() && line.text.back() == '\r') line.text.pop_back();
  return line;
}

}  // namespace

std::vector<LogLine> LogLines::TakeUntil(int64_t end_ns) {
  std::vector<LogLine> lines;
  for (; next_ < run_.log.size() && run_.log[next_].t_ns <= end_ns; ++next_) {
    Split(run_.log[next_], &lines);
  }
  return lines;
}

std::vector<LogLine> LogLines::TakeRest() {
  std::vector<LogLine> lines;
  for (auto& [stream, line] : open_) lines.push_back(Finish(std::move(line)));
  open_.clear();
  return lines;
}

void LogLines::Split(const model::LogText& piece, std::vector<LogLine>* lines) {
  std::string_view rest = piece.text;
  while (!rest.empty()) {
    LogLine& open = open_[piece.stream];
    if (open.text.empty()) open = {.t_ns = piece.t_ns, .stream = piece.stream, .text = {}};
    const size_t end = rest.find('\n');
    open.text += rest.substr(0, end);
    if (end == std::string_view::npos) return;
    lines->push_back(Finish(std::move(open)));
    open_.erase(piece.stream);
    rest.remove_prefix(end + 1);
  }
}

}  // namespace epochmeter::exporting
