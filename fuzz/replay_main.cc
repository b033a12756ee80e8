// SPDX-License-Identifier: Apache-2.0
// Feeds every file of a folder to one target, so that the corpus is a plain test:
//   fuzz_replay TARGET FOLDER
// Memory is bounded as under the fuzzer, and an input that takes longer than kMostSeconds of CPU
// is a failure as it is there.
#include <sys/resource.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>

#include "base/clock.h"
#include "fuzz/target.h"

namespace {

constexpr rlim_t kMostBytes = rlim_t{512} << 20;
constexpr double kMostSeconds = 5;

// The path is printed first, so that a crash names its input.
bool Replay(const epochmeter::fuzz::Target& target, const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  std::fprintf(stderr, "%s\n", path.c_str());
  const int64_t began_ns = epochmeter::base::ThreadCpuNs();
  target.Feed(bytes);
  const double took_s = epochmeter::base::SecondsFromNs(epochmeter::base::ThreadCpuNs() - began_ns);
  if (took_s > kMostSeconds) std::printf("%s took %.1f s of CPU\n", path.c_str(), took_s);
  return took_s <= kMostSeconds;
}

}  // namespace

// An empty corpus is a failure: a test that feeds nothing proves nothing.
int main(int argc, char** argv) {
  const auto* target = argc == 3 ? epochmeter::fuzz::FindTarget(argv[1]) : nullptr;
  if (target == nullptr) {
    std::fprintf(stderr, "usage: fuzz_replay TARGET FOLDER\n");
    return 2;
  }
  // Of the heap; a sanitizer's shadow is none of it.
  const rlimit limit{.rlim_cur = kMostBytes, .rlim_max = kMostBytes};
  ::setrlimit(RLIMIT_DATA, &limit);
  int fed = 0;
  bool good = true;
  std::error_code error;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(argv[2], error)) {
    if (!entry.is_regular_file()) continue;
    good = Replay(*target, entry.path()) && good;
    ++fed;
  }
  if (error) std::fprintf(stderr, "%s: %s\n", argv[2], error.message().c_str());
  std::printf("%d inputs replayed\n", fed);
  return fed > 0 && good ? 0 : 1;
}
