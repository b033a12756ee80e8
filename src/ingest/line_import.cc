// SPDX-License-Identifier: Apache-2.0
#include "ingest/line_import.h"

#include <sys/stat.h>

#include <cerrno>

#include "base/clock.h"
#include "ingest/lines.h"

namespace epochmeter::ingest {
namespace {

constexpr LossReason kTruncated{
    "import.truncated", model::LossSeverity::kDataLoss, "files",
    "The compressed file ends early or is damaged; what came before was imported. Copy it again."};

class NoSink : public model::Sink {
 public:
  void Write(const model::Record& /*record*/) override {}
};

// Byte order marks, and the zero bytes that Windows shells put between ASCII characters.
std::string_view Plain(std::string_view line, std::string* buffer) {
  constexpr std::string_view kUtf8Mark = "\xEF\xBB\xBF";
  if (line.substr(0, kUtf8Mark.size()) == kUtf8Mark) line.remove_prefix(kUtf8Mark.size());
  if (line.find('\0') != std::string_view::npos) {
    buffer->clear();
    for (const char c : line) {
      if (c != '\0' && c != '\xFF' && c != '\xFE') *buffer += c;
    }
    line = *buffer;
  }
  while (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  return line;
}

base::Result<> ReadOnce(const LineSource& source, const std::string& path,
                        const ImportOptions& options, ForeignRun* run) {
  EPM_ASSIGN(LineReader lines, LineReader::Open(path));
  const auto format = source.Make(*run, options);
  std::string buffer;
  std::string_view line;
  while (true) {
    const LineReader::Next next = lines.Read(&line);
    if (next == LineReader::Next::kEnd) break;
    run->SetPlace("line " + std::to_string(lines.line_number()));
    if (next == LineReader::Next::kBroken) run->Lost(kTruncated, 1, lines.name());
    if (next == LineReader::Next::kTooLong) run->BadLine("longer than 1 MiB");
    if (next == LineReader::Next::kLine) format->Line(Plain(line, &buffer));
  }
  return {};
}

}  // namespace

base::Result<ImportSummary> ImportLines(const LineSource& source, const std::string& path,
                                        const ImportOptions& options, model::Sink& sink) {
  struct stat about {};
  if (::stat(path.c_str(), &about) != 0) return base::SystemError("cannot read", path, errno);
  if (!S_ISREG(about.st_mode)) {
    return base::Error{.what = "cannot import",
                       .where = path,
                       .why = "it is no regular file",
                       .what_to_do = "write the tool's output to a file; it is read twice"};
  }
  const int64_t modified_ns = about.st_mtim.tv_sec * base::kNsPerSecond + about.st_mtim.tv_nsec;
  NoSink nowhere;
  ForeignRun first(source.tool, options, nowhere);
  EPM_TRY(ReadOnce(source, path, options, &first));
  if (first.values() == 0) {
    return base::Error{.what = "nothing to import",
                       .where = path,
                       .why = "no line holds a number that " + std::string(source.tool) + " writes",
                       .what_to_do = std::string(source.nothing_usable)};
  }
  first.Settle(modified_ns, source.default_interval_s);
  ForeignRun run(source.tool, options, sink);
  run.Repeat(first, path);
  EPM_TRY(ReadOnce(source, path, options, &run));
  // A tool that watches does not see how the training ended.
  run.Finish({.t_ns = 0, .reason = "detached", .exit_code = {}, .signal = {}});
  return run.summary();
}

}  // namespace epochmeter::ingest
