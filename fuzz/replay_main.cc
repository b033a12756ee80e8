// SPDX-License-Identifier: Apache-2.0
// Feeds every file of the given folders to one fuzz target, so that the corpus is a plain test.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

// Returns the number of inputs fed. The path is printed first, so that a crash names its input.
int ReplayFolder(const std::filesystem::path& folder) {
  int fed = 0;
  std::error_code error;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder, error)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream file(entry.path(), std::ios::binary);
    const std::vector<char> bytes((std::istreambuf_iterator<char>(file)), {});
    std::fprintf(stderr, "%s\n", entry.path().c_str());
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
    ++fed;
  }
  if (error) std::fprintf(stderr, "%s: %s\n", folder.c_str(), error.message().c_str());
  return fed;
}

}  // namespace

// An empty corpus is a failure: a test that feeds nothing proves nothing.
int main(int argc, char** argv) {
  int fed = 0;
  for (int i = 1; i < argc; ++i) fed += ReplayFolder(argv[i]);
  std::printf("%d inputs replayed\n", fed);
  return fed > 0 ? 0 : 1;
}
