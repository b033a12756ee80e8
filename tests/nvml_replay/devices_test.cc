// SPDX-License-Identifier: Apache-2.0
// Devices that differ, are lost, come, go and move; and what they show.
#include <set>
#include <string>

#include "client.h"

namespace nvml_replay {
namespace {

TEST(Devices, MayBeSixteenOfMixedModels) {
  Client nvml(R"({"devices":[
      {"count":14,"values":{"memory_total":150754820096,"mem_used":1}},
      {"name":"NVIDIA L40S","values":{"memory_total":48305799168,"mem_used":2}},
      {"name":"Tesla V100-SXM2-32GB","uuid":"GPU-mine","bus_id":"00000001:3B:00.0",
       "serial":"42","values":{"minor":7}}]})");
  ASSERT_EQ(nvml("nvmlInit_v2"), kNvmlSuccess);
  ASSERT_EQ(nvml.Count(), 16U);
  std::set<std::string> uuids;
  for (uint32_t i = 0; i < 16; ++i) uuids.insert(nvml.Text("nvmlDeviceGetUUID", nvml.Device(i)));
  EXPECT_EQ(uuids.size(), 16U);
  EXPECT_EQ(nvml.U32("nvmlDeviceGetArchitecture", nvml.Device(0)), uint32_t{kNvmlArchHopper});
  EXPECT_EQ(nvml.U32("nvmlDeviceGetArchitecture", nvml.Device(14)), uint32_t{kNvmlArchAda});
  EXPECT_EQ(nvml.U32("nvmlDeviceGetMinorNumber", nvml.Device(15)), 7U);
  int32_t major = 0;
  int32_t minor = 0;
  EXPECT_EQ(nvml("nvmlDeviceGetCudaComputeCapability", nvml.Device(15), &major, &minor),
            kNvmlSuccess);
  EXPECT_EQ(10 * major + minor, 70);
  NvmlPciInfo pci{};
  ASSERT_EQ(nvml("nvmlDeviceGetPciInfo_v3", nvml.Device(15), &pci), kNvmlSuccess);
  EXPECT_STREQ(pci.bus_id_legacy, "0001:3B:00.0");
  EXPECT_EQ(pci.bus, 0x3BU);
  NvmlDevice by_serial = nullptr;
  ASSERT_EQ(nvml("nvmlDeviceGetHandleBySerial", "42", &by_serial), kNvmlSuccess);
  EXPECT_EQ(by_serial, nvml.Device(15));
}

TEST(Devices, LostForATimeComesBackWithANewHandleAndOldOnesStayLost) {
  Client nvml(R"({"devices":[{"values":{"power_mw":5}},{"values":{"power_mw":6},
      "lost":{"at_s":1,"for_s":0.1}}]})",
              0.9);
  ASSERT_EQ(nvml("nvmlInit_v2"), kNvmlSuccess);
  const NvmlDevice old = nvml.Device(1);
  EXPECT_EQ(nvml.U32("nvmlDeviceGetPowerUsage", old), 6U);
  SleepMs(120);
  uint32_t power = 0;
  EXPECT_EQ(nvml("nvmlDeviceGetPowerUsage", old, &power), kNvmlGpuIsLost);
  EXPECT_EQ(nvml.Count(), 2U) << "a lost GPU stays counted";
  NvmlDevice none = nullptr;
  EXPECT_EQ(nvml("nvmlDeviceGetHandleByIndex_v2", 1U, &none), kNvmlGpuIsLost);
  EXPECT_EQ(nvml.U32("nvmlDeviceGetPowerUsage", nvml.Device(0)), 5U);
  SleepMs(120);
  const NvmlDevice fresh = nvml.Device(1);
  EXPECT_NE(fresh, old);
  EXPECT_EQ(nvml.U32("nvmlDeviceGetPowerUsage", fresh), 6U);
  EXPECT_EQ(nvml("nvmlDeviceGetPowerUsage", old, &power), kNvmlGpuIsLost);
}

TEST(Devices, StaleHandleCrashesOrIsInvalidWhenTheScriptSaysSo) {
  const auto script = [](const char* what) {
    return std::string(R"({"stale_handle":")") + what +
           R"(","new_handles_on_init":true,"devices":{"values":{"power_mw":5}}})";
  };
  for (const char* what : {"invalid", "crash"}) {
    Client nvml(script(what));
    ASSERT_EQ(nvml("nvmlInit_v2"), kNvmlSuccess);
    const NvmlDevice old = nvml.Device(0);
    ASSERT_EQ(nvml("nvmlShutdown"), kNvmlSuccess);
    ASSERT_EQ(nvml("nvmlInit_v2"), kNvmlSuccess);
    uint32_t power = 0;
    if (std::string(what) == "invalid") {
      EXPECT_EQ(nvml("nvmlDeviceGetPowerUsage", old, &power), kNvmlInvalidArgument);
    } else {
      EXPECT_EXIT(nvml("nvmlDeviceGetPowerUsage", old, &power), testing::KilledBySignal(SIGSEGV),
                  "");
    }
    EXPECT_EQ(nvml.U32("nvmlDeviceGetPowerUsage", nvml.Device(0)), 5U);
  }
}

constexpr const char* kMoving = R"({"devices":[
    {"uuid":"GPU-a","values":{"index":[[0,0],[5,9]]}},
    {"uuid":"GPU-b","absent":[2,4]},
    {"uuid":"GPU-c","absent":[[0,3]]}]})";

TEST(Devices, AppearVanishAndMoveInTheEnumeration) {
  const auto order = [](double at_s) {
    Client nvml(kMoving, at_s);
    EXPECT_EQ(nvml("nvmlInit_v2"), kNvmlSuccess);
    std::string out;
    for (uint32_t i = 0; i < nvml.Count(); ++i) {
      const NvmlDevice device = nvml.Device(i);
      EXPECT_EQ(nvml.U32("nvmlDeviceGetIndex", device), i);
      out += nvml.Text("nvmlDeviceGetUUID", device).substr(4);
    }
    return out;
  };
  EXPECT_EQ(order(1), "ab");
  EXPECT_EQ(order(2.5), "a");
  EXPECT_EQ(order(3.5), "ac");
  EXPECT_EQ(order(4.5), "abc");
  EXPECT_EQ(order(6), "bca");
}

TEST(Devices, AreEnumeratedAtInitOnlyWhenTheScriptSaysSo) {
  Client nvml(R"({"enumerate_at_init":true,"devices":[{},{"absent":[[0,1]]}]})", 0.95);
  ASSERT_EQ(nvml("nvmlInit_v2"), kNvmlSuccess);
  EXPECT_EQ(nvml.Count(), 1U);
  SleepMs(80);
  EXPECT_EQ(nvml.Count(), 1U);
  ASSERT_EQ(nvml("nvmlShutdown"), kNvmlSuccess);
  ASSERT_EQ(nvml("nvmlInit_v2"), kNvmlSuccess);
  EXPECT_EQ(nvml.Count(), 2U);
}

TEST(Devices, WithoutPermissionAreCountedAndGiveNoHandle) {
  Client nvml(R"({"devices":[{},{"permitted":false}]})");
  ASSERT_EQ(nvml("nvmlInit_v2"), kNvmlSuccess);
  EXPECT_EQ(nvml.Count(), 2U);
  NvmlDevice none = nullptr;
  EXPECT_EQ(nvml("nvmlDeviceGetHandleByIndex_v2", 1U, &none), kNvmlNoPermission);
}

TEST(Devices, InitFailsAsTold) {
  for (const int code : {9, 18, 28, 999}) {
    Client nvml(R"({"devices":{},"faults":[{"function":"nvmlInit*","return":)" +
                std::to_string(code) + ",\"times\":1}]}");
    uint32_t count = 0;
    EXPECT_EQ(nvml("nvmlInitWithFlags", 1U), code);
    EXPECT_EQ(nvml("nvmlDeviceGetCount_v2", &count), kNvmlUninitialized);
    EXPECT_EQ(nvml("nvmlInit_v2"), kNvmlSuccess) << "the fault was for one call";
  }
}

TEST(Devices, FaultLetsCallsPassBeforeItHits) {
  Client nvml(R"({"devices":{"values":{"power_mw":5}},"faults":[
      {"function":"nvmlDeviceGetPower*","after":2,"times":1,"return":15}]})");
  ASSERT_EQ(nvml("nvmlInit_v2"), kNvmlSuccess);
  uint32_t power = 0;
  const NvmlDevice device = nvml.Device(0);
  const NvmlReturn expected[] = {kNvmlSuccess, kNvmlSuccess, kNvmlGpuIsLost, kNvmlSuccess};
  for (const NvmlReturn rc : expected) {
    EXPECT_EQ(nvml("nvmlDeviceGetPowerUsage", device, &power), rc);
  }
}

TEST(Devices, CountersResetAndWrapAndValuesBecomeUnreadable) {
  const std::string script = R"({"devices":{"values":{
      "energy_mj":{"start":1000,"per_s":100,"resets_at_s":[5]},
      "pcie_tx_bytes":{"start":4294967000,"per_s":100,"wrap":4294967296},
      "temp_c":[[0,40],[6,null]],"power_mw":[[0,5],[6,{"return":999}]],
      "util_gpu":{"low":1,"high":99,"period_s":4,"duty":0.5},"util_mem":0}}})";
  const auto energy = [&](double at_s) {
    Client nvml(script, at_s);
    EXPECT_EQ(nvml("nvmlInit_v2"), kNvmlSuccess);
    return static_cast<double>(nvml.Field(nvml.Device(0), kNvmlFieldTotalEnergy).value.u64);
  };
  EXPECT_NEAR(energy(4), 1400, 20);
  EXPECT_NEAR(energy(7), 200, 20);
  Client nvml(script, 7);
  ASSERT_EQ(nvml("nvmlInit_v2"), kNvmlSuccess);
  const NvmlDevice device = nvml.Device(0);
  EXPECT_NEAR(static_cast<double>(nvml.Field(device, kNvmlFieldPcieTxBytes).value.u64), 404, 20);
  uint32_t value = 0;
  EXPECT_EQ(nvml("nvmlDeviceGetTemperature", device, 0U, &value), kNvmlNotSupported);
  EXPECT_EQ(nvml("nvmlDeviceGetPowerUsage", device, &value), kNvmlUnknown);
  NvmlUtilization use{};
  ASSERT_EQ(nvml("nvmlDeviceGetUtilizationRates", device, &use), kNvmlSuccess);
  EXPECT_EQ(use.gpu, 1U) << "second half of the wave";
}

TEST(Devices, SentinelsReachTheCallerUnchanged) {
  Client nvml(R"({"devices":{"values":{"energy_mj":18446744073709551615,
      "field:83@4":9223372036854775807,"power_mw":4294967295,"temp_c":2147483647,
      "memory_total":18446744073709551615,"mem_used":0}}})");
  ASSERT_EQ(nvml("nvmlInit_v2"), kNvmlSuccess);
  const NvmlDevice device = nvml.Device(0);
  EXPECT_EQ(nvml.Field(device, 83).value.u64, UINT64_MAX);
  EXPECT_EQ(nvml.Field(device, 83, 4).value.u64, uint64_t{1} << 63U);
  EXPECT_EQ(nvml.U32("nvmlDeviceGetPowerUsage", device), UINT32_MAX);
  NvmlMemory memory{};
  ASSERT_EQ(nvml("nvmlDeviceGetMemoryInfo", device, &memory), kNvmlSuccess);
  EXPECT_EQ(memory.total, UINT64_MAX);
}

TEST(Devices, CallsCostWhatTheScriptSays) {
  Client nvml(R"({"devices":{"values":{"power_mw":5,"energy_mj":6}},
      "latency_us":{"nvmlDeviceGetPowerUsage":20000,"field:83":30000}})");
  ASSERT_EQ(nvml("nvmlInit_v2"), kNvmlSuccess);
  const NvmlDevice device = nvml.Device(0);
  const int64_t begin_ns = NowNs();
  nvml.U32("nvmlDeviceGetPowerUsage", device);
  const int64_t middle_ns = NowNs();
  EXPECT_GE(middle_ns - begin_ns, 20000000);
  EXPECT_GE(nvml.Field(device, 83).latency_us, 30000);
  EXPECT_GE(NowNs() - middle_ns, 30000000);
}

TEST(Devices, LogNamesEveryCallWithItsDevice) {
  const std::string log = testing::TempDir() + "/replay-calls-" + std::to_string(NowNs());
  setenv("EPOCHMETER_REPLAY_LOG", log.c_str(), 1);
  Client nvml(R"({"devices":{"count":2,"values":{"power_mw":5,"energy_mj":6}}})", 10);
  ASSERT_EQ(nvml("nvmlInit_v2"), kNvmlSuccess);
  unsetenv("EPOCHMETER_REPLAY_LOG");
  nvml.U32("nvmlDeviceGetPowerUsage", nvml.Device(1));
  nvml.Field(nvml.Device(0), 83);
  std::ifstream in(log);
  std::string calls;
  for (std::string time, name, device; in >> time >> name >> device;) {
    EXPECT_EQ(time.substr(0, 3), "10.");
    calls += name + device + " ";
  }
  EXPECT_EQ(calls,
            "nvmlInit_v2-1 nvmlDeviceGetHandleByIndex_v21 nvmlDeviceGetPowerUsage1 "
            "nvmlDeviceGetHandleByIndex_v20 nvmlDeviceGetFieldValues0 field:830 ");
  std::filesystem::remove(log);
}

TEST(Devices, OneFieldMayHangOrCrash) {
  Client nvml(R"({"devices":{"values":{"energy_mj":6,"power_instant_mw":5}},"faults":[
      {"function":"field:83","hang_s":0.05},{"function":"field:186","crash":true}]})");
  ASSERT_EQ(nvml("nvmlInit_v2"), kNvmlSuccess);
  const NvmlDevice device = nvml.Device(0);
  const int64_t begin_ns = NowNs();
  EXPECT_EQ(nvml.Field(device, 83).value.u64, 6U) << "it answers when it comes back";
  EXPECT_GE(NowNs() - begin_ns, 50000000);
  EXPECT_EXIT(nvml.Field(device, 186), testing::KilledBySignal(SIGSEGV), "");
}

}  // namespace
}  // namespace nvml_replay
