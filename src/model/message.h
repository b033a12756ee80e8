// SPDX-License-Identifier: Apache-2.0
// A sentence for people in each language that reports speak. A new language is one member.
#pragma once

#include <string>

namespace epochmeter::model {

struct Message {
  std::string en;
  std::string zh;
  bool empty() const { return en.empty(); }
  bool operator==(const Message&) const = default;
};

}  // namespace epochmeter::model
