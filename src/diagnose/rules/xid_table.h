// SPDX-License-Identifier: Apache-2.0
// What the driver's XID codes mean for a training, and what to do.
#pragma once

#include <cstdint>
#include <string_view>

#include "model/report.h"

namespace epochmeter::diagnose {

enum class XidCause : uint8_t {
  kProgram,      // a kernel of the program, mostly
  kHardware,     // board, memory or link
  kDriver,       // driver or firmware
  kConsequence,  // told because something else happened before
  kUnknown,
};

struct XidMeaning {
  int64_t code;
  XidCause cause;
  model::Severity severity;  // when the training went on all the same
  std::string_view en, zh;   // what it is
};

// After NVIDIA's catalogue of XID errors; a code that isn't in it is kUnknown.
XidMeaning MeaningOf(int64_t code);

// What to do about an error of that cause; `code` where one needs something of its own.
model::Message XidAction(const XidMeaning& meaning);

}  // namespace epochmeter::diagnose
