// SPDX-License-Identifier: Apache-2.0
// The program of libFuzzer. All targets are in it, since the libraries under them are the bulk of
// it: EPOCHMETER_FUZZ_TARGET names the one to feed.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "fuzz/target.h"

namespace {

const epochmeter::fuzz::Target& ChosenTarget() {
  const char* name = std::getenv("EPOCHMETER_FUZZ_TARGET");
  const auto* target = name == nullptr ? nullptr : epochmeter::fuzz::FindTarget(name);
  if (target != nullptr) return *target;
  std::fprintf(stderr, "set EPOCHMETER_FUZZ_TARGET to one of:\n");
  for (const auto& known : epochmeter::fuzz::Targets()) {
    std::fprintf(stderr, "%.*s\n", static_cast<int>(known.name.size()), known.name.data());
  }
  std::exit(2);
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* /*argc*/, char*** /*argv*/) {
  ChosenTarget();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const epochmeter::fuzz::Target& target = ChosenTarget();
  target.Feed({reinterpret_cast<const char*>(data), size});
  return 0;
}
