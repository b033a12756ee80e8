// SPDX-License-Identifier: Apache-2.0
// Exported calls: events of the system, the driver bound to a GPU or unbound from it.
#include <algorithm>
#include <cstdio>

#include "call.h"
#include "clock.h"
#include "event_sets.h"

namespace nvml_replay {
namespace {

EventSets& SystemSets() {
  static EventSets sets;
  return sets;
}

// Domain, bus and slot of the GPU in one number.
uint32_t GpuId(const DeviceModel& model) {
  unsigned domain = 0;
  unsigned bus = 0;
  unsigned slot = 0;
  std::sscanf(model.bus_id.c_str(), "%x:%x:%x", &domain, &bus, &slot);
  return (domain << 16U) | (bus << 8U) | slot;
}

NvmlReturn PollSystem(NvmlSystemEventWaitV1* request) {
  const Call call("nvmlSystemEventSetWait");
  if (call.rc() != kNvmlSuccess) return call.rc();
  if (request == nullptr) return kNvmlInvalidArgument;
  if (request->version != static_cast<uint32_t>(kNvmlSystemEventWaitV1Version)) {
    return kNvmlArgumentVersionMismatch;
  }
  EventSet* set = SystemSets().Find(request->set);
  if (set == nullptr || request->entries == nullptr || request->room == 0) {
    return kNvmlInvalidArgument;
  }
  const Player& player = call.player();
  request->count = 0;
  while (request->count < request->room) {
    const EventModel* event = set->Take(player.scenario().system_events, player.PlayNs(), true);
    if (event == nullptr) break;
    request->entries[request->count++] = {event->type, GpuId(player.model({event->device}))};
  }
  return request->count > 0 ? kNvmlSuccess : kNvmlTimeout;
}

bool GoodSetRequest(const NvmlSystemEventSetRequestV1* request) {
  return request->version == static_cast<uint32_t>(kNvmlSystemEventSetRequestV1Version);
}

}  // namespace
}  // namespace nvml_replay

using nvml_replay::Call;
using nvml_replay::EventSet;
using nvml_replay::SystemSets;

EPM_REPLAY_EXPORT NvmlReturn nvmlSystemEventSetCreate(NvmlSystemEventSetRequestV1* request) {
  const Call call("nvmlSystemEventSetCreate");
  if (call.rc() != kNvmlSuccess) return call.rc();
  if (request == nullptr) return kNvmlInvalidArgument;
  if (!nvml_replay::GoodSetRequest(request)) return kNvmlArgumentVersionMismatch;
  request->set = reinterpret_cast<NvmlSystemEventSet>(SystemSets().Create());
  return kNvmlSuccess;
}

EPM_REPLAY_EXPORT NvmlReturn nvmlSystemEventSetFree(NvmlSystemEventSetRequestV1* request) {
  const Call call("nvmlSystemEventSetFree");
  if (call.rc() != kNvmlSuccess) return call.rc();
  if (request == nullptr) return kNvmlInvalidArgument;
  if (!nvml_replay::GoodSetRequest(request)) return kNvmlArgumentVersionMismatch;
  return SystemSets().Free(request->set) ? kNvmlSuccess : kNvmlInvalidArgument;
}

EPM_REPLAY_EXPORT NvmlReturn nvmlSystemRegisterEvents(NvmlSystemRegisterEventsV1* request) {
  const Call call("nvmlSystemRegisterEvents");
  if (call.rc() != kNvmlSuccess) return call.rc();
  if (request == nullptr) return kNvmlInvalidArgument;
  if (request->version != static_cast<uint32_t>(kNvmlSystemRegisterEventsV1Version)) {
    return kNvmlArgumentVersionMismatch;
  }
  EventSet* set = SystemSets().Find(request->set);
  if (set == nullptr) return kNvmlInvalidArgument;
  set->Register({0, request->types, call.player().PlayNs()});
  return kNvmlSuccess;
}

EPM_REPLAY_EXPORT NvmlReturn nvmlSystemEventSetWait(NvmlSystemEventWaitV1* request) {
  const uint32_t timeout_ms = request != nullptr ? request->timeout_ms : 0;
  const int64_t end_ns = nvml_replay::MonotonicNs() + static_cast<int64_t>(timeout_ms) * 1000000;
  constexpr int64_t kStepNs = 2000000;
  for (;;) {
    const NvmlReturn rc = nvml_replay::PollSystem(request);
    const int64_t left_ns = end_ns - nvml_replay::MonotonicNs();
    if (rc != kNvmlTimeout || left_ns <= 0) return rc;
    nvml_replay::SleepNs(std::min(left_ns, kStepNs));
  }
}
