// SPDX-License-Identifier: Apache-2.0
#include "ingest/lines.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>

namespace epochmeter::ingest {
namespace {

constexpr size_t kChunkBytes = size_t{1} << 16;
constexpr size_t kMaxLineBytes = size_t{1} << 20;

}  // namespace

base::Result<LineReader> LineReader::Open(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    return base::SystemError("cannot read", path, EISDIR);
  }
  errno = 0;
  Handle file(gzopen(path.c_str(), "rbe"));
  if (!file) return base::SystemError("cannot read", path, errno != 0 ? errno : ENOMEM);
  return LineReader(std::move(file), std::filesystem::path(path).filename().string());
}

base::Result<std::string> LineReader::ReadBegin(const std::string& path, size_t limit) {
  EPM_ASSIGN(LineReader reader, Open(path));
  while (reader.buffer_.size() < limit && reader.Fill()) {
  }
  reader.buffer_.resize(std::min(reader.buffer_.size(), limit));
  return std::move(reader.buffer_);
}

// Drops what was used and reads one chunk more. False at the end.
bool LineReader::Fill() {
  if (ended_) return false;
  buffer_.erase(0, used_);
  used_ = 0;
  const size_t kept = buffer_.size();
  buffer_.resize(kept + kChunkBytes);
  const int got = gzread(file_.get(), buffer_.data() + kept, kChunkBytes);
  buffer_.resize(kept + static_cast<size_t>(got > 0 ? got : 0));
  if (got == static_cast<int>(kChunkBytes)) return true;
  int code = Z_OK;
  gzerror(file_.get(), &code);
  broken_ = got < 0 || code == Z_BUF_ERROR || code == Z_DATA_ERROR;
  ended_ = got <= 0 || broken_;
  return got > 0;
}

LineReader::Next LineReader::Read(std::string_view* line) {
  bool too_long = false;
  size_t searched = used_;
  while (true) {
    const size_t end = buffer_.find('\n', searched);
    if (end != std::string::npos) {
      *line = std::string_view(buffer_).substr(used_, end - used_);
      used_ = end + 1;
      ++line_number_;
      return too_long || line->size() > kMaxLineBytes ? Next::kTooLong : Next::kLine;
    }
    if (buffer_.size() - used_ > kMaxLineBytes) {
      too_long = true;
      used_ = buffer_.size();
    }
    searched = buffer_.size() - used_;
    if (!Fill()) break;
  }
  const std::string_view rest = std::string_view(buffer_).substr(used_);
  used_ = buffer_.size();
  if (!rest.empty() || too_long) {
    ++line_number_;
    *line = rest;
    return too_long ? Next::kTooLong : Next::kLine;
  }
  const bool broken = broken_;
  broken_ = false;
  return broken ? Next::kBroken : Next::kEnd;
}

}  // namespace epochmeter::ingest
