// SPDX-License-Identifier: Apache-2.0
// The driver's libnvidia-ml.so.1, loaded at run time and initialised once. Never links or calls
// CUDA. Owned by one thread of one process: NVML must not be used across fork.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "collect/nvml/api.h"
#include "collect/nvml/symbols.h"

namespace epochmeter::collect::nvml {

// 0 when the file can be opened for reading and writing, else errno.
int TryNode(const std::string& path);
// The text in a buffer that NVML filled: it ends at a zero, or, by a broken driver, with the
// buffer.
std::string TextInBuffer(const char* buffer, size_t size);

struct LibraryOptions {
  std::string library;  // EPOCHMETER_NVML_LIBRARY: a file or its folder; tried alone when not empty
  // Prefix of absolute paths, for tests: /dev/dxg, /dev/kmsg, /dev/nvidia0, /proc/driver/nvidia.
  std::string root;
  // Opens a device node and closes it; 0 or errno. Another one for tests only.
  int (*try_node)(const std::string& path) = &TryNode;
};
// From the environment of this process.
LibraryOptions LibraryOptionsFromEnv();

// Where libnvidia-ml.so.1 is looked for, in order. Never the unversioned name: that is the CUDA
// toolkit's stub or absent.
std::vector<std::string> LibraryCandidates(const LibraryOptions& options);

class Library {
 public:
  // Loads and initialises. May block for seconds (the driver wakes GPUs) or hang with the driver:
  // call it in a process that a watchdog may kill. Errors say what was tried and what to do.
  static base::Result<std::unique_ptr<Library>> Open(const LibraryOptions& options);
  // Shuts NVML down and unmaps the library. All handles and GPM samples must be gone.
  ~Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  const Api& api() const { return api_; }
  // The file that was mapped, as the loader names it.
  const std::string& path() const { return path_; }
  const std::string& driver_version() const { return driver_version_; }
  const std::string& nvml_version() const { return nvml_version_; }
  const ChosenSymbols& symbols() const { return symbols_; }

  // The driver's text for a code, or "code N".
  std::string ErrorText(NvmlReturn rc) const;
  // Shutdown and initialise again within the same mapping; every handle is stale afterwards.
  base::Result<> Reinitialise();
  void Shutdown();

 private:
  Library() = default;
  base::Result<> Map(const LibraryOptions& options);
  base::Result<> Resolve();
  base::Result<> Initialise();
  void ReadVersions();

  LibraryOptions options_;
  void* handle_ = nullptr;
  bool initialised_ = false;
  Api api_{};
  ChosenSymbols symbols_;
  std::string path_;
  std::string driver_version_;
  std::string nvml_version_;
};

}  // namespace epochmeter::collect::nvml
