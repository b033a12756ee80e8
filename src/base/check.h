// SPDX-License-Identifier: Apache-2.0
// EPM_CHECK(condition) << "context": a broken promise of ours ends the process with its place.
// Never for bad input or a failing system. Any thread.
#pragma once

#include <sstream>

namespace epochmeter::base {

// Collects the message and aborts when destroyed.
class CheckFailure {
 public:
  CheckFailure(const char* file, int line, const char* condition);
  CheckFailure(const CheckFailure&) = delete;
  CheckFailure& operator=(const CheckFailure&) = delete;
  [[noreturn]] ~CheckFailure();
  std::ostream& stream() { return stream_; }

 private:
  std::ostringstream stream_;
};

// Gives both branches of EPM_CHECK the type void.
struct CheckVoidify {
  void operator&(std::ostream&) const {}
};

}  // namespace epochmeter::base

#define EPM_CHECK(condition)                         \
  (condition) ? (void)0                              \
              : ::epochmeter::base::CheckVoidify() & \
                    ::epochmeter::base::CheckFailure(__FILE__, __LINE__, #condition).stream()
