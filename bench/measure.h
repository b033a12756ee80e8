// SPDX-License-Identifier: Apache-2.0
// Time and memory of this process.
#pragma once

#include <cstdint>
#include <string>

namespace epochmeter::bench {

double CpuSeconds();   // of this thread, user and system
double WallSeconds();  // monotonic
// VmRSS and VmHWM of /proc/self/status in MB (10^6 bytes); 0 where that can't be read.
double RssMb();
double PeakRssMb();
uint64_t FileBytes(const std::string& path);  // 0 without it

// CPU and wall of what lies between construction and a call.
class Stopwatch {
 public:
  Stopwatch() : cpu_(CpuSeconds()), wall_(WallSeconds()) {}
  double cpu_s() const { return CpuSeconds() - cpu_; }
  double wall_s() const { return WallSeconds() - wall_; }

 private:
  double cpu_, wall_;
};

}  // namespace epochmeter::bench
