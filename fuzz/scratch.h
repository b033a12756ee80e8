// SPDX-License-Identifier: Apache-2.0
// A folder for the targets whose code under test takes paths.
#pragma once

#include <string>
#include <string_view>

namespace epochmeter::fuzz {

// Below TMPDIR. Removed with the object.
class Scratch {
 public:
  Scratch();
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  const std::string& path() const { return path_; }
  std::string Path(std::string_view name) const { return path_ + "/" + std::string(name); }
  // Makes the folders above it too. Ends the process when that can't be.
  void Write(std::string_view name, std::string_view bytes) const;
  void Clear() const;

 private:
  std::string path_;
};

}  // namespace epochmeter::fuzz
