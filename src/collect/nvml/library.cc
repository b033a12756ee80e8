// SPDX-License-Identifier: Apache-2.0
#include "collect/nvml/library.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/strings.h"
#include "base/unique_fd.h"

namespace epochmeter::collect::nvml {
namespace {

constexpr const char* kSoname = "libnvidia-ml.so.1";

bool Exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

// CUDA's stub for linking: it loads, and every call says that there is no driver.
bool LooksLikeStub(const std::string& path, NvmlReturn rc, const LibraryOptions& options) {
  if (path.find("/stubs/") != std::string::npos) return true;
  const bool says_no_driver = rc == kNvmlDriverNotLoaded || rc == kNvmlUnknown;
  return says_no_driver && Exists(options.root + "/proc/driver/nvidia/version");
}

std::string InitAdvice(NvmlReturn rc) {
  switch (rc) {
    case kNvmlDriverNotLoaded:
      return "load the NVIDIA kernel driver, or give the container a GPU; recording goes on "
             "without GPU metrics";
    case kNvmlLibRmVersionMismatch:
      return "the driver was upgraded while loaded; reboot or reload the nvidia modules";
    case kNvmlNoPermission:
    case kNvmlOperatingSystem:
      return "this user or container may not open /dev/nvidiactl; check the device cgroup and "
             "file permissions";
    case kNvmlGpuNotFound:
      return "no usable GPU is attached; check `lspci` and the kernel log";
    default:
      return "run `nvidia-smi` and look for NVRM lines in the kernel log";
  }
}

}  // namespace

int TryNode(const std::string& path) {
  const base::UniqueFd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK));
  return fd.valid() ? 0 : errno;
}

std::string TextInBuffer(const char* buffer, size_t size) {
  return {buffer, ::strnlen(buffer, size)};
}

LibraryOptions LibraryOptionsFromEnv() {
  const char* library = std::getenv("EPOCHMETER_NVML_LIBRARY");
  return {.library = library != nullptr ? library : "", .root = ""};
}

std::vector<std::string> LibraryCandidates(const LibraryOptions& options) {
  if (!options.library.empty()) {
    const bool folder =
        !base::EndsWith(options.library, ".1") && options.library.find(".so") == std::string::npos;
    return {folder ? options.library + "/" + kSoname : options.library};
  }
  std::vector<std::string> paths;
  const std::string wsl = std::string("/usr/lib/wsl/lib/") + kSoname;
  // Under WSL a distribution's package may shadow the working library with a useless one.
  const bool is_wsl = Exists(options.root + "/dev/dxg");
  if (is_wsl) paths.push_back(wsl);
  paths.emplace_back(kSoname);
  if (!is_wsl) paths.push_back(wsl);
  for (const char* folder :
       {"/run/opengl-driver/lib/", "/run/nvidia/driver/usr/lib/x86_64-linux-gnu/",
        "/run/nvidia/driver/usr/lib/aarch64-linux-gnu/", "/run/nvidia/driver/usr/lib64/"}) {
    paths.push_back(std::string(folder) + kSoname);
  }
  return paths;
}

base::Result<std::unique_ptr<Library>> Library::Open(const LibraryOptions& options) {
  std::unique_ptr<Library> library(new Library);
  EPM_TRY(library->Map(options));
  EPM_TRY(library->Resolve());
  EPM_TRY(library->Initialise());
  library->ReadVersions();
  return library;
}

Library::~Library() {
  Shutdown();
  if (handle_ != nullptr) dlclose(handle_);
}

// Takes the first candidate that the loader accepts; the error tells of all.
base::Result<> Library::Map(const LibraryOptions& options) {
  options_ = options;
  std::vector<std::string> not_there, tried;
  for (const std::string& path : LibraryCandidates(options)) {
    handle_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_ != nullptr) return {};
    const char* why = dlerror();
    const std::string text = why != nullptr ? why : path;
    const bool no_file = text.find("No such file or directory") != std::string::npos;
    (no_file ? not_there : tried).push_back(no_file ? path : text);
  }
  if (!not_there.empty()) tried.push_back("no such file: " + base::Join(not_there, ", "));
  const char* advice =
      options.library.empty()
          ? "install the NVIDIA driver; in a container start it with "
            "NVIDIA_DRIVER_CAPABILITIES=compute,utility; or set EPOCHMETER_NVML_LIBRARY"
          : "EPOCHMETER_NVML_LIBRARY must name libnvidia-ml.so.1 or its folder; unset it to search";
  return base::Error{.what = "cannot load the NVIDIA management library",
                     .where = kSoname,
                     .why = base::Join(tried, "; "),
                     .what_to_do = advice,
                     .code = kNvmlLibraryNotFound};
}

base::Result<> Library::Resolve() {
  BindSymbols(handle_, &api_, &symbols_);
  Dl_info info{};
  if (api_.shutdown != nullptr && dladdr(reinterpret_cast<void*>(api_.shutdown), &info) != 0) {
    path_ = info.dli_fname;
  }
  if (api_.init == nullptr || api_.shutdown == nullptr || api_.device_count == nullptr ||
      api_.handle_by_index == nullptr) {
    return base::Error{.what = "the library is not NVML",
                       .where = path_.empty() ? kSoname : path_,
                       .why =
                           "nvmlInit_v2, nvmlShutdown, nvmlDeviceGetCount or "
                           "nvmlDeviceGetHandleByIndex is missing",
                       .what_to_do = "remove the file or set EPOCHMETER_NVML_LIBRARY",
                       .code = kNvmlFunctionNotFound};
  }
  return {};
}

base::Result<> Library::Initialise() {
  NvmlReturn rc = kNvmlFunctionNotFound;
  // Initialises no GPU: each one follows with its handle, so a dead one doesn't fail the others.
  if (api_.init_with_flags != nullptr) rc = api_.init_with_flags(kNvmlInitNoGpus);
  if (rc == kNvmlFunctionNotFound || rc == kNvmlInvalidArgument) rc = api_.init();
  initialised_ = rc == kNvmlSuccess;
  if (initialised_) return {};
  if (LooksLikeStub(path_, rc, options_)) {
    return base::Error{.what = "the NVIDIA management library found is a stub",
                       .where = path_,
                       .why = ErrorText(rc) + ", although the driver is loaded",
                       .what_to_do =
                           "take CUDA's stubs folder out of LD_LIBRARY_PATH, or set "
                           "EPOCHMETER_NVML_LIBRARY to the driver's own library",
                       .code = rc};
  }
  return base::Error{.what = "cannot initialise NVML",
                     .where = path_,
                     .why = ErrorText(rc),
                     .what_to_do = InitAdvice(rc),
                     .code = rc};
}

// Empty where the driver does not tell.
void Library::ReadVersions() {
  std::array<char, kNvmlVersionBufferSize> text{};
  if (api_.driver_version != nullptr &&
      api_.driver_version(text.data(), text.size()) == kNvmlSuccess) {
    driver_version_ = TextInBuffer(text.data(), text.size());
  }
  if (api_.nvml_version != nullptr && api_.nvml_version(text.data(), text.size()) == kNvmlSuccess) {
    nvml_version_ = TextInBuffer(text.data(), text.size());
  }
}

std::string Library::ErrorText(NvmlReturn rc) const {
  const char* text = api_.error_string != nullptr ? api_.error_string(rc) : nullptr;
  if (text == nullptr) return "code " + std::to_string(rc);
  return std::string(text) + " (" + std::to_string(rc) + ")";
}

// NVML counts its initialisations: exactly one of ours is undone. The file stays mapped.
void Library::Shutdown() {
  if (initialised_) api_.shutdown();
  initialised_ = false;
}

base::Result<> Library::Reinitialise() {
  Shutdown();
  return Initialise();
}

}  // namespace epochmeter::collect::nvml
