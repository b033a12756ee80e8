// SPDX-License-Identifier: Apache-2.0
// For tests: speaks to a replay library as any NVML client does, by dlopen, dlsym and calls.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <time.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "collect/nvml/abi.h"

namespace nvml_replay {

inline std::string EnvOr(const char* name, const std::string& fallback) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : fallback;
}

inline std::string Recording(const std::string& name) {
  return EnvOr("EPOCHMETER_SHARED", "../shared") + "/recordings/" + name;
}

inline int64_t NowNs() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<int64_t>(now.tv_sec) * 1000000000 + now.tv_nsec;
}

inline void SleepMs(int ms) {
  const timespec time{ms / 1000, (ms % 1000) * 1000000L};
  nanosleep(&time, nullptr);
}

inline std::string WriteScript(const std::string& text) {
  const auto* test = testing::UnitTest::GetInstance()->current_test_info();
  const std::string path =
      testing::TempDir() + "/" + test->test_suite_name() + "-" + test->name() + ".json";
  std::ofstream(path) << text;
  return path;
}

// A freshly loaded replay library, so that each test has its own clock and faults. `what` is a
// recording, a script file or the text of a script; playing begins at second `at_s`.
class Client {
 public:
  explicit Client(const std::string& what, double at_s = 0, const std::string& variant = "") {
    setenv("EPOCHMETER_REPLAY", what.front() == '{' ? WriteScript(what).c_str() : what.c_str(), 1);
    SetTime(at_s);
    const std::string path =
        EnvOr("EPOCHMETER_BUILD_DIR", ".") + "/nvml-replay" + variant + "/libnvidia-ml.so.1";
    handle_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    EXPECT_NE(handle_, nullptr) << dlerror();
  }
  ~Client() {
    if (handle_ == nullptr) return;
    while ((*this)("nvmlShutdown") == kNvmlSuccess) {
    }
    dlclose(handle_);
  }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // Holds from the next first nvmlInit on.
  static void SetTime(double at_s) {
    const int64_t t0_ns = NowNs() - static_cast<int64_t>(at_s * 1e9);
    setenv("EPOCHMETER_REPLAY_T0_NS", std::to_string(t0_ns).c_str(), 1);
  }

  template <typename... Args>
  NvmlReturn operator()(const char* name, Args... args) {
    auto* function = reinterpret_cast<NvmlReturn (*)(Args...)>(dlsym(handle_, name));
    if (function == nullptr) return kNvmlFunctionNotFound;
    return function(args...);
  }

  bool Exports(const char* name) const { return dlsym(handle_, name) != nullptr; }

  uint32_t Count() {
    uint32_t count = 0;
    EXPECT_EQ((*this)("nvmlDeviceGetCount_v2", &count), kNvmlSuccess);
    return count;
  }

  NvmlDevice Device(uint32_t index) {
    NvmlDevice device = nullptr;
    EXPECT_EQ((*this)("nvmlDeviceGetHandleByIndex_v2", index, &device), kNvmlSuccess);
    return device;
  }

  uint32_t U32(const char* name, NvmlDevice device) {
    uint32_t value = 0;
    EXPECT_EQ((*this)(name, device, &value), kNvmlSuccess) << name;
    return value;
  }

  std::string Text(const char* name, NvmlDevice device) {
    char text[kNvmlUuidBufferSize] = {};
    EXPECT_EQ((*this)(name, device, &text[0], static_cast<uint32_t>(sizeof(text))), kNvmlSuccess);
    return text;
  }

  NvmlFieldValue Field(NvmlDevice device, uint32_t id, uint32_t scope = 0) {
    NvmlFieldValue field{};
    field.field_id = id;
    field.scope_id = scope;
    field.value.u64 = 0xDEAD;
    EXPECT_EQ((*this)("nvmlDeviceGetFieldValues", device, 1, &field), kNvmlSuccess);
    return field;
  }

 private:
  void* handle_ = nullptr;
};

#define SKIP_WITHOUT(path)                                                     \
  if (!std::filesystem::exists(path)) {                                        \
    GTEST_SKIP() << "no recording at " << (path) << "; set EPOCHMETER_SHARED"; \
  }

}  // namespace nvml_replay
