// SPDX-License-Identifier: Apache-2.0
#include "misbehave.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "clock.h"

namespace nvml_replay {
namespace {

constexpr std::array<std::string_view, 4> kDeaths = {"segv", "abort", "exit", "double_free"};
constexpr int kMostDescriptors = 256;

bool IsPacketSocket(int fd) {
  int type = 0;
  socklen_t size = sizeof type;
  return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_SEQPACKET;
}

// Every second one begins like a record: a length, a type, and then nothing that fits.
std::string Garbage(uint32_t seed) {
  std::string text = seed % 2 == 0 ? "NVRM: Xid (PCI:0000:1a:00): 79, GPU has fallen off the bus\n"
                                   : std::string("\x40\x04", 2);
  for (uint32_t i = 0; i < 64 + seed % 1000; ++i) {
    seed = seed * 1664525 + 1013904223;
    text += static_cast<char>(seed >> 24);
  }
  return text;
}

// A library may misbehave before anyone calls it. EPOCHMETER_REPLAY_AT_LOAD says how.
__attribute__((constructor)) void MisbehaveAtLoad() {
  const char* how = std::getenv("EPOCHMETER_REPLAY_AT_LOAD");
  if (how == nullptr) return;
  if (std::string_view(how) == "hang") SleepNs(INT64_MAX);
  Die(how);
}

}  // namespace

bool IsDeath(std::string_view how) {
  return std::find(kDeaths.begin(), kDeaths.end(), how) != kDeaths.end();
}

void Die(std::string_view how) {
  if (how == "segv") {
    std::signal(SIGSEGV, SIG_DFL);
    std::raise(SIGSEGV);
  }
  if (how == "abort") std::abort();
  if (how == "exit") std::exit(3);
  if (how == "double_free") {
    void* volatile block = std::malloc(100);
    void* volatile again = block;
    std::free(block);
    std::free(again);
  }
}

void SendGarbage(int packets) {
  for (int fd = 3; fd < kMostDescriptors; ++fd) {
    if (!IsPacketSocket(fd)) continue;
    for (int i = 0; i < packets; ++i) {
      const std::string text = Garbage(static_cast<uint32_t>(i));
      send(fd, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    }
  }
}

}  // namespace nvml_replay
