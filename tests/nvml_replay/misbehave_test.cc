// SPDX-License-Identifier: Apache-2.0
// The replay library as a broken driver.
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>

#include "client.h"

namespace nvml_replay {
namespace {

std::string ScriptWith(const std::string& fault) {
  return R"({"devices":{"name":"NVIDIA H200","processes":[[11,1000]]},"faults":[)" + fault + "]}";
}

void CrashInCall(const std::string& how) {
  Client nvml(ScriptWith(R"({"function":"nvmlDeviceGetName","crash":")" + how + R"("})"));
  nvml("nvmlInit_v2");
  nvml.Text("nvmlDeviceGetName", nvml.Device(0));
}

void CrashAtLoad(const char* how) {
  setenv("EPOCHMETER_REPLAY_AT_LOAD", how, 1);
  const Client nvml(ScriptWith(""));
}

TEST(Misbehave, EndsTheProcessInEachWay) {
  EXPECT_EXIT(CrashInCall("segv"), testing::KilledBySignal(SIGSEGV), "");
  EXPECT_EXIT(CrashInCall("abort"), testing::KilledBySignal(SIGABRT), "");
  EXPECT_EXIT(CrashInCall("exit"), testing::ExitedWithCode(3), "");
  EXPECT_EXIT(CrashInCall("double_free"), testing::KilledBySignal(SIGABRT), "double free");
}

TEST(Misbehave, EndsTheProcessThatLoadsIt) {
  EXPECT_EXIT(CrashAtLoad("segv"), testing::KilledBySignal(SIGSEGV), "");
  EXPECT_EXIT(CrashAtLoad("exit"), testing::ExitedWithCode(3), "");
}

TEST(Misbehave, RefusesACrashOfAnUnknownKind) {
  Client nvml(ScriptWith(R"({"crash":"boom"})"));
  EXPECT_EQ(nvml("nvmlInit_v2"), kNvmlDriverNotLoaded);
}

TEST(Misbehave, HangsUntilTheFaultIsOver) {
  Client nvml(ScriptWith(R"({"function":"nvmlDeviceGetName","hang":true,"for_s":0.3})"));
  const int64_t begin_ns = NowNs();
  ASSERT_EQ(nvml("nvmlInit_v2"), kNvmlSuccess);
  EXPECT_EQ(nvml.Text("nvmlDeviceGetName", nvml.Device(0)), "NVIDIA H200");
  EXPECT_GE(NowNs() - begin_ns, 280000000);
  const int64_t again_ns = NowNs();
  nvml.Text("nvmlDeviceGetName", nvml.Device(0));
  EXPECT_LT(NowNs() - again_ns, 250000000) << "it is over";
}

TEST(Misbehave, GivesTextsWithoutAnEndAndCountsWithoutEntries) {
  Client nvml(ScriptWith(R"({"function":"nvmlDeviceGet*","corrupt":true})"));
  ASSERT_EQ(nvml("nvmlInit_v2"), kNvmlSuccess);
  const NvmlDevice device = nvml.Device(0);
  char name[8];
  ASSERT_EQ(nvml("nvmlDeviceGetName", device, &name[0], 8U), kNvmlSuccess);
  EXPECT_EQ(std::string(name, sizeof name), "XXXXXXXX");
  uint32_t count = 4;
  NvmlProcessInfo entries[4] = {};
  ASSERT_EQ(nvml("nvmlDeviceGetComputeRunningProcesses_v3", device, &count, &entries[0]),
            kNvmlSuccess);
  EXPECT_EQ(count, UINT32_MAX);
  EXPECT_EQ(entries[0].pid, 0U);
}

TEST(Misbehave, WritesGarbageIntoEveryPacketSocket) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
  Client nvml(ScriptWith(R"({"function":"nvmlDeviceGetName","garbage":3})"));
  ASSERT_EQ(nvml("nvmlInit_v2"), kNvmlSuccess);
  EXPECT_EQ(nvml.Text("nvmlDeviceGetName", nvml.Device(0)), "NVIDIA H200") << "and it goes on";
  char packet[4096];
  int packets = 0;
  for (const int end : ends) {
    while (::recv(end, packet, sizeof packet, MSG_DONTWAIT) > 64) ++packets;
    ::close(end);
  }
  EXPECT_EQ(packets, 6) << "three over either end";
}

}  // namespace
}  // namespace nvml_replay
