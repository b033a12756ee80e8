// SPDX-License-Identifier: Apache-2.0
#include "base/result.h"

#include <cstring>

namespace epochmeter::base {

std::string Error::Message() const {
  std::string text = what;
  for (const std::string& part : {where, why}) {
    if (!part.empty()) text += ": " + part;
  }
  if (!what_to_do.empty()) text += " (" + what_to_do + ")";
  return text;
}

Error SystemError(std::string what, std::string where, int errno_value, std::string what_to_do) {
  char buffer[128];
  const char* why = strerror_r(errno_value, buffer, sizeof buffer);
  return Error{.what = std::move(what),
               .where = std::move(where),
               .why = why,
               .what_to_do = std::move(what_to_do),
               .code = errno_value};
}

}  // namespace epochmeter::base
