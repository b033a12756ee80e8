// SPDX-License-Identifier: Apache-2.0
#include "base/check.h"

#include <cstdio>
#include <cstdlib>
#include <string>

namespace epochmeter::base {

CheckFailure::CheckFailure(const char* file, int line, const char* condition) {
  stream_ << "epochmeter: internal error at " << file << ":" << line << ": " << condition << " ";
}

CheckFailure::~CheckFailure() {
  const std::string text = stream_.str() + "\n";
  std::fputs(text.c_str(), stderr);
  std::abort();
}

}  // namespace epochmeter::base
