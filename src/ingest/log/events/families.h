// SPDX-License-Identifier: Apache-2.0
// Every family of events, each in the file of its name.
#pragma once

#include "ingest/log/events/event_family.h"

namespace epochmeter::ingest::log {

extern const EventFamily kTracebackFamily;
extern const EventFamily kOomGpuFamily;
extern const EventFamily kOomHostFamily;
extern const EventFamily kKilledFamily;
extern const EventFamily kSlurmFamily;
extern const EventFamily kSignalFamily;
extern const EventFamily kLauncherFamily;
extern const EventFamily kNcclFamily;
extern const EventFamily kDeviceFamily;
extern const EventFamily kCudaFamily;
extern const EventFamily kKernelFamily;
extern const EventFamily kXlaFamily;
extern const EventFamily kPrecisionFamily;
extern const EventFamily kWorkersFamily;
extern const EventFamily kDataFamily;
extern const EventFamily kRayFamily;
extern const EventFamily kStorageFamily;
extern const EventFamily kStopFamily;
extern const EventFamily kNoteFamily;

}  // namespace epochmeter::ingest::log
