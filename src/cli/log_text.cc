// SPDX-License-Identifier: Apache-2.0
#include "cli/log_text.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "base/strings.h"
#include "ingest/log/file_head.h"

namespace epochmeter::cli {
namespace {

constexpr size_t kTellingBytes = 1024;

}  // namespace

void LogText::Survey(const std::string& first, const std::string& last) {
  several_ = first != last;
  const auto is_file = [](const std::string& path) {
    struct stat info {};
    return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
  };
  if (first == "-" || !is_file(first) || !is_file(last)) return;
  const base::Result<LogPart> oldest = LogPart::Open(first);
  const base::Result<LogPart> newest = LogPart::Open(last);
  if (!oldest.ok() || !newest.ok()) return;
  const std::string head = oldest->Head();
  if (!head.empty()) engine_->Survey(number_, head, newest->Tail());
}

base::Result<> LogText::Read(const std::string& path, const std::function<bool()>& going_on,
                             std::vector<std::string>* warnings) {
  EndLine();
  places_.push_back({path.substr(path.rfind('/') + 1), lines_ + 1});
  EPM_ASSIGN(LogPart part, LogPart::Open(path));
  bool begun = false, strange = false;
  const auto take = [&](std::string_view text) {
    if (!std::exchange(begun, true)) {
      strange = text.size() >= kTellingBytes &&
                ingest::log::KindOfHead(text) == ingest::log::HeadKind::kBinary;
    }
    Give(text);
  };
  base::Result<> done = part.Read(take, going_on);
  if (strange) {
    warnings->push_back(
        (path == "-" ? "stdin" : path) +
        " begins with bytes that are no text; what was found in it may mean nothing");
  }
  warnings->insert(warnings->end(), part.warnings().begin(), part.warnings().end());
  return done;
}

void LogText::Give(std::string_view bytes) {
  if (bytes.empty()) return;
  bytes_ += bytes.size();
  open_line_ = bytes.back() != '\n';
  if (several_) lines_ += static_cast<uint64_t>(std::count(bytes.begin(), bytes.end(), '\n'));
  engine_->Feed(number_, bytes);
}

void LogText::EndLine() {
  if (open_line_) Give("\n");
}

std::string LogText::Places() const {
  std::vector<std::string> places;
  for (const Place& place : places_) {
    places.push_back(fmt::format("{} from line {}", place.name, place.line));
  }
  return base::Join(places, ", ");
}

}  // namespace epochmeter::cli
