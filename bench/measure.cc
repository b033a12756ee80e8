// SPDX-License-Identifier: Apache-2.0
#include "measure.h"

#include <ctime>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace epochmeter::bench {
namespace {

double ClockSeconds(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

double StatusMb(const std::string& key) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    double kib = 0;
    if (word == key && status >> kib) return kib * 1024 / 1e6;
  }
  return 0;
}

}  // namespace

double CpuSeconds() { return ClockSeconds(CLOCK_THREAD_CPUTIME_ID); }
double WallSeconds() { return ClockSeconds(CLOCK_MONOTONIC); }
double RssMb() { return StatusMb("VmRSS:"); }
double PeakRssMb() { return StatusMb("VmHWM:"); }

uint64_t FileBytes(const std::string& path) {
  std::error_code error;
  const uintmax_t size = std::filesystem::file_size(path, error);
  return error ? 0 : static_cast<uint64_t>(size);
}

}  // namespace epochmeter::bench
