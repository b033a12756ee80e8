// SPDX-License-Identifier: Apache-2.0
// Exported calls: events of devices.
#include <algorithm>

#include "call.h"
#include "clock.h"
#include "event_sets.h"
#include "generation.h"

namespace nvml_replay {
namespace {

EventSets& Sets() {
  static EventSets sets;
  return sets;
}

// ECC, P-state, XID and clock changes; power source and storms came with R560.
uint64_t SupportedTypes(const Call& call) {
  const uint64_t early = kNvmlEventSingleBitEcc | kNvmlEventDoubleBitEcc | kNvmlEventPstate |
                         kNvmlEventXid | kNvmlEventClock;
  const uint64_t late = kNvmlEventPowerSource | kNvmlEventEccStorm | kNvmlEventDramRetirement |
                        kNvmlEventDramRetirementFailure | kNvmlEventNonFatalPoison |
                        kNvmlEventFatalPoison | kNvmlEventGpuUnavailable | kNvmlEventRecoveryAction;
  return call.U64Or("event_types", kGeneration.branch >= 560 ? early | late : early);
}

// One look without waiting. TIMEOUT: nothing is due.
NvmlReturn Poll(std::string_view function, NvmlEventSet handle, bool ids, NvmlEventData* out) {
  const Call call(function);
  if (call.rc() != kNvmlSuccess) return call.rc();
  EventSet* set = Sets().Find(handle);
  if (set == nullptr || out == nullptr) return kNvmlInvalidArgument;
  Player& player = call.player();
  const EventModel* event = set->Take(player.scenario().events, player.PlayNs(), false);
  if (event == nullptr) {
    const auto& all = set->registrations();
    const bool lost = std::any_of(all.begin(), all.end(), [&](const auto& registration) {
      return player.StateOf({registration.device}) == kNvmlGpuIsLost;
    });
    return lost ? kNvmlGpuIsLost : kNvmlTimeout;
  }
  out->device = player.HandleOf({event->device});
  out->type = event->type;
  out->data = event->data;
  if (!ids) return kNvmlSuccess;
  const auto id = [](int value) {
    return value < 0 ? kNvmlNoInstance : static_cast<uint32_t>(value);
  };
  out->gpu_instance_id = id(event->gpu_instance);
  out->compute_instance_id = id(event->compute_instance);
  return kNvmlSuccess;
}

// The library's lock is free while it waits.
NvmlReturn Wait(std::string_view function, NvmlEventSet set, bool ids, NvmlEventData* out,
                uint32_t timeout_ms) {
  const int64_t end_ns = MonotonicNs() + static_cast<int64_t>(timeout_ms) * 1000000;
  constexpr int64_t kStepNs = 2000000;
  for (;;) {
    const NvmlReturn rc = Poll(function, set, ids, out);
    const int64_t left_ns = end_ns - MonotonicNs();
    if (rc != kNvmlTimeout || left_ns <= 0) return rc;
    SleepNs(std::min(left_ns, kStepNs));
  }
}

}  // namespace
}  // namespace nvml_replay

using nvml_replay::Call;
using nvml_replay::EventSet;
using nvml_replay::Sets;
using nvml_replay::SupportedTypes;

EPM_REPLAY_EXPORT NvmlReturn nvmlEventSetCreate(NvmlEventSet* set) {
  const Call call("nvmlEventSetCreate");
  if (call.rc() != kNvmlSuccess) return call.rc();
  if (set == nullptr) return kNvmlInvalidArgument;
  *set = reinterpret_cast<NvmlEventSet>(Sets().Create());
  return kNvmlSuccess;
}

EPM_REPLAY_EXPORT NvmlReturn nvmlEventSetFree(NvmlEventSet set) {
  const Call call("nvmlEventSetFree");
  if (call.rc() != kNvmlSuccess) return call.rc();
  return Sets().Free(set) ? kNvmlSuccess : kNvmlInvalidArgument;
}

EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceGetSupportedEventTypes(NvmlDevice device, uint64_t* types) {
  const Call call("nvmlDeviceGetSupportedEventTypes", device);
  if (call.rc() != kNvmlSuccess) return call.rc();
  if (types == nullptr) return kNvmlInvalidArgument;
  *types = SupportedTypes(call);
  return kNvmlSuccess;
}

EPM_REPLAY_EXPORT NvmlReturn nvmlDeviceRegisterEvents(NvmlDevice device, uint64_t types,
                                                      NvmlEventSet handle) {
  const Call call("nvmlDeviceRegisterEvents", device);
  if (call.rc() != kNvmlSuccess) return call.rc();
  EventSet* set = Sets().Find(handle);
  if (set == nullptr || types == 0) return kNvmlInvalidArgument;
  if ((types & ~SupportedTypes(call)) != 0) return kNvmlNotSupported;
  set->Register({call.unit().device, types, call.player().PlayNs()});
  return kNvmlSuccess;
}

EPM_REPLAY_EXPORT NvmlReturn nvmlEventSetWait_v2(NvmlEventSet set, NvmlEventData* data,
                                                 uint32_t timeout_ms) {
  return nvml_replay::Wait("nvmlEventSetWait_v2", set, true, data, timeout_ms);
}

// Knows nothing of MIG: the ids of instances stay as the caller left them.
EPM_REPLAY_EXPORT NvmlReturn nvmlEventSetWait(NvmlEventSet set, NvmlEventData* data,
                                              uint32_t timeout_ms) {
  return nvml_replay::Wait("nvmlEventSetWait", set, false, data, timeout_ms);
}
