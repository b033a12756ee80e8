// SPDX-License-Identifier: Apache-2.0
// The one list of metric sources. HostSources run in the recorder, GpuSources in the sampler
// process, which owns every NVML call.
#pragma once

#include <span>

#include "collect/source.h"

namespace epochmeter::collect {

std::span<const SourceDef> HostSources();
std::span<const SourceDef> GpuSources();

}  // namespace epochmeter::collect
