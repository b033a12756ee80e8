// SPDX-License-Identifier: Apache-2.0
// Preloaded into recorder, sampler and training alike: shows them clocks that a test moves while
// they run. EPOCHMETER_CLOCK_FAULTS names a file of four int64 in the machine's byte order, which
// is mapped, so that what the test writes is seen at the next call:
//   ns added to CLOCK_REALTIME; ns added to CLOCK_BOOTTIME;
//   ppb by which CLOCK_REALTIME runs fast, and since which CLOCK_MONOTONIC ns it does.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <ctime>

namespace {

struct Faults {
  int64_t wall_ns;
  int64_t boot_ns;
  int64_t drift_ppb;
  int64_t drift_since_ns;
};

constexpr int64_t kNsPerSecond = 1'000'000'000;

// Null when there is no such file: then the clocks are the machine's.
const volatile Faults* Map() {
  const char* path = std::getenv("EPOCHMETER_CLOCK_FAULTS");
  const int fd = path != nullptr ? ::open(path, O_RDONLY | O_CLOEXEC) : -1;
  if (fd < 0) return nullptr;
  void* mapped = ::mmap(nullptr, sizeof(Faults), PROT_READ, MAP_SHARED, fd, 0);
  ::close(fd);
  return mapped == MAP_FAILED ? nullptr : static_cast<const volatile Faults*>(mapped);
}

using GetTime = int (*)(clockid_t, timespec*);

int RealTime(clockid_t clock, timespec* out) {
  static const auto real = reinterpret_cast<GetTime>(::dlsym(RTLD_NEXT, "clock_gettime"));
  return real(clock, out);
}

int64_t Ns(const timespec& time) { return int64_t{time.tv_sec} * kNsPerSecond + time.tv_nsec; }

int64_t ShiftOf(clockid_t clock) {
  static const volatile Faults* const faults = Map();
  if (faults == nullptr) return 0;
  if (clock == CLOCK_BOOTTIME) return faults->boot_ns;
  if (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE) return 0;
  const int64_t ppb = faults->drift_ppb;
  if (ppb == 0) return faults->wall_ns;
  timespec mono{};
  RealTime(CLOCK_MONOTONIC, &mono);
  return faults->wall_ns + (Ns(mono) - faults->drift_since_ns) / 1000 * ppb / 1'000'000;
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* out) noexcept {
  const int result = RealTime(clock, out);
  const int64_t shift_ns = result == 0 ? ShiftOf(clock) : 0;
  if (shift_ns == 0) return result;
  const int64_t shown_ns = Ns(*out) + shift_ns;
  out->tv_sec = shown_ns / kNsPerSecond;
  out->tv_nsec = shown_ns % kNsPerSecond;
  return 0;
}

// The C library's declaration takes no null.
int gettimeofday(timeval* out, void*) noexcept {
  timespec now{};
  const int result = clock_gettime(CLOCK_REALTIME, &now);
  *out = {.tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000};
  return result;
}

time_t time(time_t* out) noexcept {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  if (out != nullptr) *out = now.tv_sec;
  return now.tv_sec;
}

}  // extern "C"
