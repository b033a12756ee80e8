// SPDX-License-Identifier: Apache-2.0
// The sampler process: owns every NVML call, in one thread. A driver that hangs or crashes takes
// only this process with it; the recorder kills it and starts another.
#pragma once

#include "cli/command.h"

namespace epochmeter::cli {

// Hidden verb: `epochmeter internal-sampler --channel FD --interval-ns N --root-pid P`. Sends
// records in the codec of runfile/record_codec.h, several a packet, over the SOCK_SEQPACKET
// descriptor; takes kSampleNow. Ends when the other side is closed.
int RunSampler(const Arguments& arguments);
extern const std::span<const FlagSpec> kSamplerFlags;

}  // namespace epochmeter::cli
