// SPDX-License-Identifier: Apache-2.0
// The sources of the recorder, each defined in the .cc of its name. For sources.cc and tests.
#pragma once

#include "collect/source.h"

namespace epochmeter::collect {

extern const SourceDef kHostCpu;
extern const SourceDef kHostMemory;
extern const SourceDef kHostPressure;
extern const SourceDef kHostDisk;
extern const SourceDef kHostNetwork;
extern const SourceDef kHostFs;
extern const SourceDef kHostNuma;
extern const SourceDef kHostEnergy;
extern const SourceDef kHostRdma;
extern const SourceDef kCgroupMemory;
extern const SourceDef kCgroupCpu;
extern const SourceDef kCgroupPressure;
extern const SourceDef kCgroupIo;
extern const SourceDef kProcessTree;
extern const SourceDef kRecorderSelf;

}  // namespace epochmeter::collect
