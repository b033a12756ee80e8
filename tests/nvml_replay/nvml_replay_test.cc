// SPDX-License-Identifier: Apache-2.0
// Recordings, values over time, faults.
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "client.h"

namespace nvml_replay {
namespace {

TEST(NvmlReplay, RefusesCallsBeforeInitAndAfterShutdown) {
  Client nvml(WriteScript(R"({"devices":{"count":1}})"));
  uint32_t count = 0;
  EXPECT_EQ(nvml("nvmlDeviceGetCount_v2", &count), kNvmlUninitialized);
  EXPECT_EQ(nvml("nvmlInit_v2"), kNvmlSuccess);
  EXPECT_EQ(nvml("nvmlDeviceGetCount_v2", &count), kNvmlSuccess);
  EXPECT_EQ(count, 1U);
  EXPECT_EQ(nvml("nvmlShutdown"), kNvmlSuccess);
  EXPECT_EQ(nvml("nvmlDeviceGetCount_v2", &count), kNvmlUninitialized);
}

TEST(NvmlReplay, AnswersDriverNotLoadedWhenTheScenarioIsMissing) {
  Client nvml("/nonexistent/recording");
  EXPECT_EQ(nvml("nvmlInit_v2"), kNvmlDriverNotLoaded);
}

TEST(NvmlReplay, ShowsTheFirstSampleOfHealthyBeforeT0AndTheLastAfterTheEnd) {
  SKIP_WITHOUT(Recording("healthy"));
  {
    Client early(Recording("healthy"), -100);
    ASSERT_EQ(early("nvmlInit_v2"), kNvmlSuccess);
    EXPECT_EQ(early.U32("nvmlDeviceGetPowerUsage", early.Device(0)), 85340U);
  }
  Client late(Recording("healthy"), 1000);
  ASSERT_EQ(late("nvmlInit_v2"), kNvmlSuccess);
  EXPECT_EQ(late.U32("nvmlDeviceGetPowerUsage", late.Device(0)), 131304U);
  uint64_t energy_mj = 0;
  EXPECT_EQ(late("nvmlDeviceGetTotalEnergyConsumption", late.Device(0), &energy_mj), kNvmlSuccess);
  EXPECT_EQ(energy_mj, 15523247U);
}

TEST(NvmlReplay, ShowsDriverMemoryAndProcessesOfHealthy) {
  SKIP_WITHOUT(Recording("healthy"));
  Client nvml(Recording("healthy"));
  ASSERT_EQ(nvml("nvmlInitWithFlags", 0U), kNvmlSuccess);
  char driver[kNvmlVersionBufferSize] = {};
  EXPECT_EQ(nvml("nvmlSystemGetDriverVersion", &driver[0], 96U), kNvmlSuccess);
  EXPECT_STREQ(driver, "580.159.04");
  EXPECT_EQ(nvml("nvmlSystemGetDriverVersion", &driver[0], 4U), kNvmlInsufficientSize);
  const NvmlDevice device = nvml.Device(0);
  NvmlMemoryV2 memory = {kNvmlMemoryV2Version, 0, 0, 0, 0};
  ASSERT_EQ(nvml("nvmlDeviceGetMemoryInfo_v2", device, &memory), kNvmlSuccess);
  EXPECT_EQ(memory.total, 150754820096U);
  EXPECT_EQ(memory.used, 552402944U);
  EXPECT_EQ(memory.used + memory.free + memory.reserved, memory.total);
  memory.version = 1;
  EXPECT_EQ(nvml("nvmlDeviceGetMemoryInfo_v2", device, &memory), kNvmlArgumentVersionMismatch);
  NvmlMemory v1 = {};
  ASSERT_EQ(nvml("nvmlDeviceGetMemoryInfo", device, &v1), kNvmlSuccess);
  EXPECT_EQ(v1.used, memory.used + memory.reserved);

  uint32_t count = 0;
  NvmlProcessInfo* none = nullptr;
  EXPECT_EQ(nvml("nvmlDeviceGetComputeRunningProcesses_v3", device, &count, none),
            kNvmlInsufficientSize);
  ASSERT_EQ(count, 1U);
  NvmlProcessInfo process = {};
  EXPECT_EQ(nvml("nvmlDeviceGetComputeRunningProcesses_v3", device, &count, &process),
            kNvmlSuccess);
  EXPECT_EQ(process.pid, 503U);
  EXPECT_EQ(process.used_gpu_memory, 543162368U);
}

TEST(NvmlReplay, ReadsFieldsOneByOneAndLeavesUnknownOnesNotSupported) {
  SKIP_WITHOUT(Recording("healthy"));
  Client nvml(Recording("healthy"), -1);
  ASSERT_EQ(nvml("nvmlInit_v2"), kNvmlSuccess);
  std::vector<NvmlFieldValue> fields(3);
  fields[0].field_id = kNvmlFieldPowerInstant;
  fields[1].field_id = 251;
  fields[2].field_id = kNvmlFieldTotalEnergy;
  ASSERT_EQ(nvml("nvmlDeviceGetFieldValues", nvml.Device(0), 3, fields.data()), kNvmlSuccess);
  EXPECT_EQ(fields[0].nvml_return, kNvmlSuccess);
  EXPECT_EQ(fields[0].value_type, static_cast<uint32_t>(kNvmlValueUint));
  EXPECT_EQ(fields[0].value.u32, 122465U);
  EXPECT_EQ(fields[1].nvml_return, kNvmlNotSupported);
  EXPECT_EQ(fields[2].value.u64, 6181504U);
}

TEST(NvmlReplay, GivesDdpHealthyTwoDistinctStableDevices) {
  SKIP_WITHOUT(Recording("ddp_healthy"));
  std::string uuids[2][2];
  for (auto& run : uuids) {
    Client nvml(Recording("ddp_healthy"));
    ASSERT_EQ(nvml("nvmlInit_v2"), kNvmlSuccess);
    for (uint32_t i = 0; i < 2; ++i) {
      char uuid[kNvmlUuidBufferSize] = {};
      ASSERT_EQ(nvml("nvmlDeviceGetUUID", nvml.Device(i), &uuid[0], 96U), kNvmlSuccess);
      run[i] = uuid;
    }
    NvmlDevice by_uuid = nullptr;
    ASSERT_EQ(nvml("nvmlDeviceGetHandleByUUID", run[1].c_str(), &by_uuid), kNvmlSuccess);
    EXPECT_EQ(by_uuid, nvml.Device(1));
    NvmlPciInfo pci = {};
    ASSERT_EQ(nvml("nvmlDeviceGetPciInfo_v3", by_uuid, &pci), kNvmlSuccess);
    NvmlDevice by_pci = nullptr;
    const char* legacy = pci.bus_id_legacy;
    ASSERT_EQ(nvml("nvmlDeviceGetHandleByPciBusId_v2", legacy, &by_pci), kNvmlSuccess);
    EXPECT_EQ(by_pci, by_uuid);
    NvmlDevice third = nullptr;
    EXPECT_EQ(nvml("nvmlDeviceGetHandleByIndex_v2", 2U, &third), kNvmlInvalidArgument);
  }
  EXPECT_EQ(uuids[0][0], uuids[1][0]);
  EXPECT_NE(uuids[0][0], uuids[0][1]);
  EXPECT_EQ(uuids[0][0].size(), 40U);
}

TEST(NvmlReplay, PlaysGpmAsTheMeanBetweenTwoSamples) {
  SKIP_WITHOUT(Recording("ddp_healthy"));
  Client nvml(Recording("ddp_healthy"), 22);
  ASSERT_EQ(nvml("nvmlInit_v2"), kNvmlSuccess);
  NvmlGpmSample samples[2] = {};
  const auto request = std::make_unique<NvmlGpmMetricsGet>();
  *request = {};
  for (NvmlGpmSample& sample : samples) {
    ASSERT_EQ(nvml("nvmlGpmSampleAlloc", &sample), kNvmlSuccess);
  }
  request->version = kNvmlGpmVersion;
  request->num_metrics = 2;
  request->sample1 = samples[0];
  request->sample2 = samples[1];
  request->metrics[0].metric_id = kNvmlGpmSmUtil;
  request->metrics[1].metric_id = 200;
  EXPECT_EQ(nvml("nvmlGpmMetricsGet", request.get()), kNvmlInvalidArgument);
  ASSERT_EQ(nvml("nvmlGpmSampleGet", nvml.Device(0), samples[0]), kNvmlSuccess);
  SleepMs(450);
  ASSERT_EQ(nvml("nvmlGpmSampleGet", nvml.Device(0), samples[1]), kNvmlSuccess);
  ASSERT_EQ(nvml("nvmlGpmMetricsGet", request.get()), kNvmlSuccess);
  EXPECT_EQ(request->metrics[0].nvml_return, kNvmlSuccess);
  EXPECT_GT(request->metrics[0].value, 20);
  EXPECT_LT(request->metrics[0].value, 60);
  EXPECT_EQ(request->metrics[1].nvml_return, kNvmlNotSupported);
  for (NvmlGpmSample sample : samples) nvml("nvmlGpmSampleFree", sample);
}

TEST(NvmlReplay, KeepsTheLastPowerPointsAndSaysNotFoundWhenNothingIsNew) {
  SKIP_WITHOUT(Recording("healthy"));
  Client nvml(Recording("healthy"), 15);
  ASSERT_EQ(nvml("nvmlInit_v2"), kNvmlSuccess);
  uint32_t type = 99;
  uint32_t count = 0;
  NvmlSample* none = nullptr;
  const NvmlDevice device = nvml.Device(0);
  ASSERT_EQ(nvml("nvmlDeviceGetSamples", device, 0U, uint64_t{0}, &type, &count, none),
            kNvmlSuccess);
  EXPECT_EQ(count, 119U);
  std::vector<NvmlSample> points(count);
  ASSERT_EQ(nvml("nvmlDeviceGetSamples", device, 0U, uint64_t{0}, &type, &count, points.data()),
            kNvmlSuccess);
  EXPECT_EQ(count, 119U);
  EXPECT_EQ(type, static_cast<uint32_t>(kNvmlValueUint));
  EXPECT_NEAR(static_cast<double>(points[118].timestamp_us - points[0].timestamp_us), 118 * 2e4,
              2e3);
  const uint64_t newest = points[118].timestamp_us + 1000000;
  EXPECT_EQ(nvml("nvmlDeviceGetSamples", device, 0U, newest, &type, &count, points.data()),
            kNvmlNotFound);
}

constexpr const char* kScript = R"({"devices":{"count":2,"values":{
    "util_gpu":[[0,10],[5,95]],"util_mem":1,"power_mw":{"start":1000,"per_s":100}}},
    "faults":[{"function":"nvmlDeviceGetPowerUsage","device":1,"return":15,"at_s":4,"for_s":4},
              {"function":"nvmlDeviceGetMemoryInfo","hang_s":0.2,"times":1},
              {"values":{"util_mem":1.8446744073709552e19},"at_s":8}]})";

TEST(NvmlReplay, PlaysScriptValuesOverTimeAndInjectedFaults) {
  Client nvml(WriteScript(kScript), 6);
  ASSERT_EQ(nvml("nvmlInit_v2"), kNvmlSuccess);
  NvmlUtilization util = {};
  ASSERT_EQ(nvml("nvmlDeviceGetUtilizationRates", nvml.Device(0), &util), kNvmlSuccess);
  EXPECT_EQ(util.gpu, 95U);
  EXPECT_NEAR(nvml.U32("nvmlDeviceGetPowerUsage", nvml.Device(0)), 1600, 20);
  uint32_t power_mw = 0;
  EXPECT_EQ(nvml("nvmlDeviceGetPowerUsage", nvml.Device(1), &power_mw), kNvmlGpuIsLost);
  EXPECT_EQ(nvml("nvmlDeviceGetTemperature", nvml.Device(0), 0U, &power_mw), kNvmlNotSupported);
  NvmlMemory memory = {};
  const int64_t begin_ns = NowNs();
  EXPECT_EQ(nvml("nvmlDeviceGetMemoryInfo", nvml.Device(0), &memory), kNvmlNotSupported);
  EXPECT_GE(NowNs() - begin_ns, 200000000);
}

TEST(NvmlReplay, EndsAFaultAfterItsTimeAndShowsGarbageWhenTold) {
  Client nvml(WriteScript(kScript), 8.5);
  ASSERT_EQ(nvml("nvmlInit_v2"), kNvmlSuccess);
  NvmlUtilization util = {};
  EXPECT_EQ(nvml("nvmlDeviceGetUtilizationRates", nvml.Device(1), &util), kNvmlSuccess);
  EXPECT_EQ(util.memory, UINT32_MAX);
  EXPECT_NEAR(nvml.U32("nvmlDeviceGetPowerUsage", nvml.Device(1)), 1850, 20);
}

TEST(NvmlReplay, SpendsTheMeasuredTimeAndPlaysFasterWhenAsked) {
  setenv("EPOCHMETER_REPLAY_LATENCY", "1", 1);
  setenv("EPOCHMETER_REPLAY_SPEED", "100", 1);
  Client nvml(WriteScript(R"({"devices":{"count":1,"values":{
      "energy_mj":{"start":0,"per_s":1000}}}})"));
  ASSERT_EQ(nvml("nvmlInit_v2"), kNvmlSuccess);
  unsetenv("EPOCHMETER_REPLAY_LATENCY");
  unsetenv("EPOCHMETER_REPLAY_SPEED");
  SleepMs(50);
  uint64_t energy_mj = 0;
  const int64_t begin_ns = NowNs();
  EXPECT_EQ(nvml("nvmlDeviceGetTotalEnergyConsumption", nvml.Device(0), &energy_mj), kNvmlSuccess);
  EXPECT_GE(NowNs() - begin_ns, 3300000);
  EXPECT_GE(energy_mj, 5000U) << "50 ms are 5 s of play time";
}

TEST(NvmlReplay, CrashesWithSigsegvWhenTheScriptSaysSo) {
  const std::string script = R"({"devices":{"count":1},
      "faults":[{"function":"nvmlDeviceGetName","crash":true}]})";
  Client nvml(script);
  ASSERT_EQ(nvml("nvmlInit_v2"), kNvmlSuccess);
  char name[kNvmlNameBufferSize] = {};
  EXPECT_EXIT(nvml("nvmlDeviceGetName", nvml.Device(0), &name[0], 96U),
              testing::KilledBySignal(SIGSEGV), "");
}

TEST(NvmlReplay, AnswersAsAnEarlyR535DriverWithLongerProcessEntries) {
  const std::string script = R"({"devices":{"count":1,
      "processes":[[11,1000],[12,2000]]},"driver":"535.54.03"})";
  Client nvml(script, 0, "-r535");
  ASSERT_EQ(nvml("nvmlInit_v2"), kNvmlSuccess);
  uint32_t count = 2;
  NvmlProcessInfoR535 entries[2] = {};
  ASSERT_EQ(nvml("nvmlDeviceGetComputeRunningProcesses_v3", nvml.Device(0), &count, &entries[0]),
            kNvmlSuccess);
  EXPECT_EQ(entries[1].pid, 12U);
  EXPECT_EQ(entries[1].used_gpu_memory, 2000U);
}

}  // namespace
}  // namespace nvml_replay
