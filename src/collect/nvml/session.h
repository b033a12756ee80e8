// SPDX-License-Identifier: Apache-2.0
// The GPUs of this machine as one NVML session sees them: identities, handles, and what becomes of
// devices that are lost or come back. One thread; every NVML call of the process goes through it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

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
  model::EntityId entity = 0;
  bool lost = false;
  std::string lost_detail;
  int64_t retry_at_ns = 0;
  int unknown_in_a_row = 0;
};

class Session {
 public:
  explicit Session(LibraryOptions options) : options_(std::move(options)) {}
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Loads NVML and finds the devices, unless that was done before; every GPU source calls it when
  // it is made. Keeps the context's registry and sink, which must outlive the session's sources.
  // Errors are kept for a second, so that many sources don't repeat a slow attempt.
  base::Result<> Open(const SourceContext& context);

  const Api& api() const { return library_->api(); }
  const Library& library() const { return *library_; }
  // Only grows; a device keeps its place for the session's life.
  std::vector<Device>& devices() { return devices_; }

  // First thing of every source's Sample: tries lost devices again (each 30 s) and initialises
  // NVML again when it asked for that (after 1, 2, 4 ... 60 s).
  void Maintain(int64_t now_ns);
  // Told of every device call's result: a lost device is marked, and so is one that answers
  // UNKNOWN or TIMEOUT five times in a row.
  void Note(Device& device, NvmlReturn rc, int64_t now_ns);

 private:
  base::Result<> Enumerate();
  void Identify(NvmlDevice handle, uint32_t index);
  void Describe(Device& device);
  void MarkLost(Device& device, const std::string& detail, int64_t now_ns);
  bool Reacquire(Device& device, int64_t now_ns);
  void Reinitialise(int64_t now_ns);
  void Tell(const std::string& name, const Device& device, const std::string& detail,
            int64_t now_ns);

  LibraryOptions options_;
  std::unique_ptr<Library> library_;
  std::vector<Device> devices_;
  model::Registry* registry_ = nullptr;
  model::Sink* sink_ = nullptr;
  base::Error open_error_;
  int64_t open_again_at_ns_ = 0;
  bool reinit_wanted_ = false;
  int64_t reinit_at_ns_ = 0;
  int64_t reinit_wait_ns_ = base::kNsPerSecond;
};

// "0000:1a:00.0": the form of sysfs and CUDA for NVML's "00000000:1A:00.0".
std::string SysfsBusId(const std::string& nvml_bus_id);

}  // namespace epochmeter::collect::nvml
