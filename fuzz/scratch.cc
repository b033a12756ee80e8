// SPDX-License-Identifier: Apache-2.0
#include "fuzz/scratch.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/check.h"

namespace epochmeter::fuzz {
namespace fs = std::filesystem;

Scratch::Scratch() {
  path_ = fs::temp_directory_path() / "epochmeter-fuzz-XXXXXX";
  EPM_CHECK(::mkdtemp(path_.data()) != nullptr) << path_;
}

Scratch::~Scratch() {
  std::error_code error;
  fs::remove_all(path_, error);
}

void Scratch::Write(std::string_view name, std::string_view bytes) const {
  const fs::path path = Path(name);
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << bytes;
  EPM_CHECK(out.good()) << path;
}

void Scratch::Clear() const {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(path_, error)) {
    fs::remove_all(entry.path(), error);
  }
}

}  // namespace epochmeter::fuzz
