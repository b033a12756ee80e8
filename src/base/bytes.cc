// SPDX-License-Identifier: Apache-2.0
#include "base/bytes.h"

namespace epochmeter::base {

bool ByteReader::LongVarint(uint64_t* v) {
  uint64_t value = 0;
  for (size_t i = 0; i < 10 && i < rest_.size(); ++i) {
    const auto byte = static_cast<uint8_t>(rest_[i]);
    if (i == 9 && byte > 1) return false;
    value |= static_cast<uint64_t>(byte & 0x7F) << (7 * i);
    if ((byte & 0x80) == 0) {
      rest_.remove_prefix(i + 1);
      *v = value;
      return true;
    }
  }
  return false;
}

}  // namespace epochmeter::base
