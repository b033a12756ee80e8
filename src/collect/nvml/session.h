// SPDX-License-Identifier: Apache-2.0
// The GPUs of this machine as one NVML session sees them: identities, handles, and what becomes of
// devices that are lost or come back. One thread; every NVML call of the process goes through it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "collect/nvml/identity.h"
#include "collect/nvml/library.h"
#include "collect/source.h"

namespace epochmeter::collect::nvml {

struct Device {
  NvmlDevice handle = nullptr;
  // Rises with each new handle: what was learnt through an older one (latches, GPM samples) is
  // void.
  uint32_t generation = 0;
  uint32_t index = 0;  // NVML's, at the last enumeration; only a label
  std::string uuid;    // the identity; the bus id where the driver gives none
  std::string bus_id;  // as NVML prints it, "00000000:1A:00.0"
  std::string model;   // "NVIDIA H200"; empty when not told
  model::EntityId entity = 0;
  uint32_t architecture = 0;  // NvmlArchitecture; 0 unknown
  bool mig = false;           // MIG mode is on: most readings are of the instances only
  model::Labels attributes;   // of the entity
  bool lost = false;
  std::string lost_detail;
  model::SeriesCondition lost_condition = model::SeriesCondition::kDeviceLost;
  int64_t retry_at_ns = 0;
  int64_t retry_wait_ns = 0;
  int unknown_in_a_row = 0;
  // Has a handle again, but no call has succeeded through it yet.
  bool on_probation = false;
  // Not this job's, and therefore not read: job_gpus.cc decides. `job` is the entity's attribute
  // of this name: "yes", "no", or empty while nothing says whose it is.
  bool excluded = false;
  bool used_by_job = false;  // a process of the job was found on it
  std::string job;
};

class Session {
 public:
  explicit Session(LibraryOptions options) : options_(std::move(options)) {}
  ~Session() { FreeEventSet(); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Loads NVML and finds the devices, unless that was done before; every GPU source calls it when
  // it is made. Keeps the context's registry and sink, which must outlive the session's sources.
  // Errors are kept for a second, so that many sources don't repeat a slow attempt.
  base::Result<> Open(const SourceContext& context);

  const Api& api() const { return library_->api(); }
  const Library& library() const { return *library_; }
  const std::string& root() const { return options_.root; }
  // Rises with each initialisation of NVML: event sets made before are void.
  uint32_t initialisation() const { return initialisation_; }
  // False while NVML is shut down or waits to be initialised again: no call may be made.
  bool usable() const { return library_ != nullptr && !reinit_wanted_; }
  // Only grows; a device keeps its place for the session's life.
  std::vector<Device>& devices() { return devices_; }

  // First thing of every source's Sample: tries lost devices again (each 30 s), looks for new ones
  // (each 30 s) and initialises NVML again when it asked for that (after 1, 2, 4 ... 60 s).
  void Maintain(int64_t now_ns);
  // Told of every device call's result: a lost device is marked, and so is one that answers UNKNOWN
  // or TIMEOUT five times in a row: access to it was revoked if its node can't be opened any more.
  // "gpu.lost" or "gpu.access_revoked" is told once, and "gpu.back" when a call succeeds again; a
  // device that keeps failing in between is tried less and less often, quietly.
  void Note(Device& device, NvmlReturn rc, int64_t now_ns);
  // Adds to, or changes, what the run says of the device.
  void SetAttribute(Device& device, const std::string& key, const std::string& value);
  void TellLoss(const model::Loss& loss) { sink_->Write(loss); }
  // Shuts NVML down for `pause_ns`, so that others can reset or reconfigure the GPUs: nothing of
  // the driver stays open. "nvml.released" tells it, "nvml.taken_up" its end. Asked again, the
  // pause begins anew. Only between two readings: the caller is the thread that makes them.
  void Release(int64_t now_ns, int64_t pause_ns);
  // The one event set of this initialisation, made when first asked for; null where the driver has
  // none. The session frees it: a set that is left over keeps the driver's nodes open.
  NvmlEventSet event_set();

 private:
  base::Result<> OpenNow();
  base::Result<> Enumerate();
  void Identify(NvmlDevice handle, uint32_t index);
  void LookForNew(int64_t now_ns);
  void TellRefused(uint64_t refused, const std::string& refusal);
  void TellSymbols(int64_t now_ns);
  void Describe(Device& device);
  void TakeUnknown(Device& device, const std::string& text, int64_t now_ns);
  void MarkLost(Device& device, model::SeriesCondition condition, const std::string& detail,
                int64_t now_ns);
  bool Reacquire(Device& device, int64_t now_ns);
  void Reinitialise(int64_t now_ns);
  // A device that is only released may be taken for lost, or back, by its next answer.
  bool EndRelease(Device& device);
  void FreeEventSet();
  void TellRelease(const std::string& name, const std::string& detail, int64_t now_ns);
  void Tell(const std::string& name, const Device& device, const std::string& detail,
            int64_t now_ns);

  LibraryOptions options_;
  std::unique_ptr<Library> library_;
  std::vector<Device> devices_;
  model::Registry* registry_ = nullptr;
  model::Sink* sink_ = nullptr;
  base::Error open_error_;
  int64_t open_again_at_ns_ = 0;
  NvmlEventSet event_set_ = nullptr;
  uint32_t initialisation_ = 0;
  uint32_t listed_ = 0;   // devices that the driver listed last
  uint64_t refused_ = 0;  // of these, those that gave no handle
  int64_t look_at_ns_ = 0;
  bool told_replaced_ = false;
  std::string sys_root_;
  bool reinit_wanted_ = false;
  bool released_ = false;  // until NVML was initialised again
  int64_t reinit_at_ns_ = 0;
  int64_t reinit_wait_ns_ = base::kNsPerSecond;
};

}  // namespace epochmeter::collect::nvml
