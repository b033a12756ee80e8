// SPDX-License-Identifier: Apache-2.0
// A libnvidia-ml.so.1 that passes every call on to the real one and counts what it took, so that a
// sampler's own part can be told from the driver's in one run.
//
// EPOCHMETER_TAP_LIBRARY is the library behind it, EPOCHMETER_TAP_OUT the table that it writes: one
// line for each call (fields and sample buffers by their number) with count, wall and CPU time, and
// at the end the process as a whole, less what the counting itself took. The first
// EPOCHMETER_TAP_WARM_S seconds (5) don't count. The table is written each ten seconds and when the
// library is closed.
//
// A call is passed on as six words in registers, which is what NVML's integer and pointer arguments
// are on x86-64 and AArch64. One thread, as NVML's callers here are.
#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <map>
#include <string>

namespace {

using Call = long (*)(long, long, long, long, long, long);
constexpr long kFunctionNotFound = 13;
constexpr int64_t kSecond = 1'000'000'000;
constexpr long kFieldValueBytes = 40;

int64_t Now(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return time.tv_sec * kSecond + time.tv_nsec;
}

struct Cost {
  uint64_t calls = 0;
  int64_t wall_ns = 0, cpu_ns = 0;
};

class Tap {
 public:
  Tap() {
    const char* path = std::getenv("EPOCHMETER_TAP_LIBRARY");
    if (path != nullptr) library_ = ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library_ == nullptr)
      std::fprintf(stderr, "nvml tap: EPOCHMETER_TAP_LIBRARY: %s\n", ::dlerror());
    const char* warm = std::getenv("EPOCHMETER_TAP_WARM_S");
    counts_from_ns_ = Now(CLOCK_MONOTONIC) + (warm != nullptr ? std::atoi(warm) : 5) * kSecond;
  }
  Tap(const Tap&) = delete;
  Tap& operator=(const Tap&) = delete;
  ~Tap() { Write(); }

  Call Find(const char* name) const {
    return library_ == nullptr ? nullptr : reinterpret_cast<Call>(::dlsym(library_, name));
  }

  void Count(const std::string& name, int64_t wall_ns, int64_t cpu_ns) {
    const int64_t now_ns = Now(CLOCK_MONOTONIC);
    if (now_ns < counts_from_ns_) return;
    if (began_ns_ == 0) {
      began_ns_ = written_ns_ = now_ns;
      cpu_at_begin_ns_ = Now(CLOCK_PROCESS_CPUTIME_ID);
      return;
    }
    Cost& cost = costs_[name];
    ++cost.calls;
    cost.wall_ns += wall_ns;
    cost.cpu_ns += cpu_ns;
    if (now_ns - written_ns_ > 10 * kSecond) Write();
  }
  // What passing a call on took beside the call.
  void CountOwn(int64_t cpu_ns) {
    if (began_ns_ != 0) own_cpu_ns_ += cpu_ns;
  }

 private:
  void Write() {
    written_ns_ = Now(CLOCK_MONOTONIC);
    const char* path = std::getenv("EPOCHMETER_TAP_OUT");
    std::FILE* out = path != nullptr && began_ns_ != 0 ? std::fopen(path, "w") : nullptr;
    if (out == nullptr) return;
    const double seconds = static_cast<double>(written_ns_ - began_ns_) / kSecond;
    const double process_us =
        static_cast<double>(Now(CLOCK_PROCESS_CPUTIME_ID) - cpu_at_begin_ns_ - own_cpu_ns_) / 1e3;
    double cpu_us = 0, wall_us = 0;
    std::fprintf(out, "%-48s %8s %10s %10s\n", "call", "count", "wall_us", "cpu_us");
    for (const auto& [name, cost] : costs_) {
      const auto calls = static_cast<double>(cost.calls);
      std::fprintf(out, "%-48s %8.0f %10.1f %10.1f\n", name.c_str(), calls,
                   static_cast<double>(cost.wall_ns) / 1e3 / calls,
                   static_cast<double>(cost.cpu_ns) / 1e3 / calls);
      cpu_us += static_cast<double>(cost.cpu_ns) / 1e3;
      wall_us += static_cast<double>(cost.wall_ns) / 1e3;
    }
    std::fprintf(out,
                 "seconds %.1f  process_cpu_us_per_s %.1f  nvml_cpu_us_per_s %.1f  "
                 "nvml_wall_us_per_s %.1f  ratio %.3f  tap_cpu_us_per_s %.1f\n",
                 seconds, process_us / seconds, cpu_us / seconds, wall_us / seconds,
                 process_us / cpu_us, static_cast<double>(own_cpu_ns_) / 1e3 / seconds);
    std::fclose(out);
  }

  void* library_ = nullptr;
  int64_t counts_from_ns_ = 0, began_ns_ = 0, written_ns_ = 0, cpu_at_begin_ns_ = 0;
  int64_t own_cpu_ns_ = 0;
  std::map<std::string, Cost> costs_;
};

Tap& TheTap() {
  static Tap tap;
  return tap;
}

// What a call that serves many purposes was made for.
std::string KeyOf(const char* name, long second, long third) {
  std::string key = name;
  if (std::strcmp(name, "nvmlDeviceGetFieldValues") == 0) {
    for (long i = 0; i < second; ++i) {
      uint32_t id = 0;
      std::memcpy(&id, reinterpret_cast<const char*>(third) + i * kFieldValueBytes, sizeof id);
      key += (i == 0 ? ":" : ",") + std::to_string(id);
    }
  } else if (std::strcmp(name, "nvmlDeviceGetSamples") == 0) {
    key += ":" + std::to_string(second);
  }
  return key;
}

long Pass(const char* name, Call real, long a, long b, long c, long d, long e, long f) {
  if (real == nullptr) return kFunctionNotFound;
  const int64_t begin_ns = Now(CLOCK_THREAD_CPUTIME_ID);
  const std::string key = KeyOf(name, b, c);
  const int64_t wall_ns = Now(CLOCK_MONOTONIC), cpu_ns = Now(CLOCK_THREAD_CPUTIME_ID);
  const long result = real(a, b, c, d, e, f);
  const int64_t cpu_end_ns = Now(CLOCK_THREAD_CPUTIME_ID), wall_end_ns = Now(CLOCK_MONOTONIC);
  TheTap().Count(key, wall_end_ns - wall_ns, cpu_end_ns - cpu_ns);
  // Of the clock's own call, one half lies outside what it measures, before and after.
  const int64_t clock_ns = Now(CLOCK_THREAD_CPUTIME_ID);
  const int64_t end_ns = Now(CLOCK_THREAD_CPUTIME_ID);
  TheTap().CountOwn(end_ns - begin_ns - (cpu_end_ns - cpu_ns) + (end_ns - clock_ns));
  return result;
}

}  // namespace

#define EPM_TAP(name)                                                                         \
  extern "C" __attribute__((visibility("default"))) long name(long a, long b, long c, long d, \
                                                              long e, long f) {               \
    static const Call kReal = TheTap().Find(#name);                                           \
    return Pass(#name, kReal, a, b, c, d, e, f);                                              \
  }
#include "nvml_tap_symbols.inc"
