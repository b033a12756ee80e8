// SPDX-License-Identifier: Apache-2.0
// Asks the driver's library what it is, which GPUs it shows in which mode, and what its calls cost.
// For a process that may hang or crash in it: each step is announced to the sink before it is
// taken.
#pragma once

#include "collect/nvml/library.h"
#include "model/sink.h"

namespace epochmeter::collect::nvml {

// Writes events of kind mark: one probe.library, one probe.device per GPU, and probe.call before
// and after each call. Takes some ms per GPU; calls are timed on the first GPU that answers.
void ProbeNvml(const LibraryOptions& options, model::Sink& sink);

}  // namespace epochmeter::collect::nvml
