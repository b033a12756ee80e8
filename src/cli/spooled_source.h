// SPDX-License-Identifier: Apache-2.0
// What comes through a pipe as a file: importers read their source twice.
#pragma once

#include <string>

#include "base/result.h"

namespace epochmeter::cli {

// A source of `import`. Removes what it made when it goes.
class SpooledSource {
 public:
  static constexpr uint64_t kMostBytes = uint64_t{1} << 30;

  // "-" is stdin. A file, a folder, or what can't be looked at stays as it is; a pipe is read to
  // its end into a file below TMPDIR. An error when that fails or more than `most_bytes` come.
  static base::Result<SpooledSource> Make(const std::string& source,
                                          uint64_t most_bytes = kMostBytes);
  SpooledSource(SpooledSource&& other) noexcept;
  SpooledSource& operator=(SpooledSource&&) = delete;
  ~SpooledSource();

  const std::string& path() const { return path_; }
  // As a person would name it.
  const std::string& name() const { return name_; }
  // The same error without the name of our own file.
  base::Error Renamed(base::Error error) const;

 private:
  SpooledSource(std::string path, std::string name)
      : path_(std::move(path)), name_(std::move(name)) {}
  base::Result<> Fill(uint64_t most_bytes);

  std::string path_, name_;
  std::string folder_;  // ours; empty: nothing was made
};

}  // namespace epochmeter::cli
