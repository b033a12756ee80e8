// SPDX-License-Identifier: Apache-2.0
// What each driver generation exports and understands. The expectations are written out here, not
// taken from symbols.txt, so that a slip in the list shows.
#include <string>
#include <vector>

#include "client.h"

namespace nvml_replay {
namespace {

struct Expected {
  const char* folder;
  int branch;
  const char* driver;
};

constexpr Expected kGenerations[] = {
    {"-470", 470, "470.256.02"}, {"-510", 510, "510.108.03"}, {"-535.43", 535, "535.43.02"},
    {"-550", 550, "550.163.01"}, {"-580", 580, "580.159.04"}, {"", 580, "580.159.04"},
    {"-r535", 535, "535.54.03"}, {"-615", 615, "615.36.01"},
};

struct Since {
  const char* name;
  int branch;
};

// The first branch of each, from the published headers and change log.
constexpr Since kSince[] = {
    {"nvmlInit_v2", 470},
    {"nvmlDeviceGetMemoryInfo", 470},
    {"nvmlDeviceGetCurrentClocksThrottleReasons", 470},
    {"nvmlDeviceGetComputeRunningProcesses_v2", 470},
    {"nvmlDeviceGetProcessUtilization", 470},
    {"nvmlDeviceGetMigDeviceHandleByIndex", 470},
    {"nvmlEventSetWait_v2", 470},
    {"nvmlDeviceGetMemoryInfo_v2", 510},
    {"nvmlDeviceGetComputeRunningProcesses_v3", 510},
    {"nvmlGpmSampleGet", 520},
    {"nvmlGpmMigSampleGet", 520},
    {"nvmlDeviceGetCurrentClocksEventReasons", 535},
    {"nvmlDeviceGetConfComputeMemSizeInfo", 535},
    {"nvmlDeviceGetJpgUtilization", 535},
    {"nvmlDeviceGetModuleId", 535},
    {"nvmlDeviceGetRunningProcessDetailList", 536},
    {"nvmlDeviceGetProcessesUtilizationInfo", 550},
    {"nvmlDeviceGetNumaNodeId", 550},
    {"nvmlDeviceGetFanSpeedRPM", 565},
    {"nvmlDeviceGetTemperatureV", 570},
    {"nvmlDeviceGetMarginTemperature", 570},
    {"nvmlSystemEventSetWait", 575},
    {"nvmlDeviceGetAddressingMode", 580},
};

TEST(Generations, ExportExactlyTheCallsOfTheirTime) {
  for (const Expected& generation : kGenerations) {
    const Client nvml(R"({"devices":{}})", 0, generation.folder);
    for (const Since& symbol : kSince) {
      EXPECT_EQ(nvml.Exports(symbol.name), generation.branch >= symbol.branch)
          << generation.folder << " " << symbol.name;
    }
    EXPECT_FALSE(nvml.Exports("_ZN11nvml_replay6Player3GetEv"))
        << "only NVML names leave the library";
  }
}

TEST(Generations, SayTheirDriverAndCudaVersions) {
  for (const Expected& generation : kGenerations) {
    Client nvml(R"({"devices":{}})", 0, generation.folder);
    ASSERT_EQ(nvml("nvmlInit_v2"), kNvmlSuccess);
    char text[kNvmlVersionBufferSize] = {};
    ASSERT_EQ(nvml("nvmlSystemGetDriverVersion", &text[0], 96U), kNvmlSuccess);
    EXPECT_STREQ(text, generation.driver);
    int32_t cuda = 0;
    ASSERT_EQ(nvml("nvmlSystemGetCudaDriverVersion_v2", &cuda), kNvmlSuccess);
    EXPECT_EQ(cuda / 1000, generation.branch < 520 ? 11 : generation.branch < 580 ? 12 : 13);
  }
}

TEST(Generations, KnowOnlyTheFieldsOfTheirTime) {
  const std::string script = R"({"devices":{"values":{"power_instant_mw":1000,"pcie_tx_bytes":5,
      "recovery_action":1,"energy_mj":7,"field:251":9}}})";
  struct {
    const char* folder;
    bool instant, pcie, recovery;
  } const cases[] = {{"-470", false, false, false},   {"-510", false, false, false},
                     {"-535.43", true, false, false}, {"-550", true, false, false},
                     {"-580", true, true, true},      {"-615", true, true, true}};
  for (const auto& expected : cases) {
    Client nvml(script, 0, expected.folder);
    ASSERT_EQ(nvml("nvmlInit_v2"), kNvmlSuccess);
    const auto code = [&](uint32_t id) { return nvml.Field(nvml.Device(0), id).nvml_return; };
    const auto rc = [](bool known) { return known ? kNvmlSuccess : kNvmlNotSupported; };
    EXPECT_EQ(code(kNvmlFieldPowerInstant), rc(expected.instant)) << expected.folder;
    EXPECT_EQ(code(kNvmlFieldPcieTxBytes), rc(expected.pcie)) << expected.folder;
    EXPECT_EQ(code(kNvmlFieldRecoveryAction), rc(expected.recovery)) << expected.folder;
    EXPECT_EQ(code(kNvmlFieldTotalEnergy), kNvmlSuccess) << expected.folder;
    EXPECT_EQ(code(251), kNvmlSuccess) << "a raw id is what the script says it is";
    EXPECT_EQ(code(5000), kNvmlNotSupported);
  }
}

// Every call with a version word refuses the next version.
TEST(Generations, RefuseStructVersionsTheyDoNotKnow) {
  Client nvml(R"({"devices":{"values":{"memory_total":5,"mem_used":1,"temp_c":3,"fan_rpm":900,
      "margin_temperature_c":4,"addressing_mode":1,"gpm.sm_util":3}}})",
              0, "-615");
  ASSERT_EQ(nvml("nvmlInit_v2"), kNvmlSuccess);
  const NvmlDevice device = nvml.Device(0);
  const auto expect = [&](const char* name, auto good_version, auto* request) {
    request->version = static_cast<uint32_t>(good_version);
    EXPECT_NE(nvml(name, device, request), kNvmlArgumentVersionMismatch) << name;
    request->version = static_cast<uint32_t>(good_version) + (1U << 24U);
    EXPECT_EQ(nvml(name, device, request), kNvmlArgumentVersionMismatch) << name;
  };
  NvmlMemoryV2 memory{};
  expect("nvmlDeviceGetMemoryInfo_v2", kNvmlMemoryV2Version, &memory);
  NvmlTemperatureV1 temperature{};
  expect("nvmlDeviceGetTemperatureV", kNvmlTemperatureV1Version, &temperature);
  NvmlMarginTemperatureV1 margin{};
  expect("nvmlDeviceGetMarginTemperature", kNvmlMarginTemperatureV1Version, &margin);
  NvmlFanSpeedInfoV1 fan{};
  expect("nvmlDeviceGetFanSpeedRPM", kNvmlFanSpeedInfoV1Version, &fan);
  NvmlAddressingModeV1 mode{};
  expect("nvmlDeviceGetAddressingMode", kNvmlAddressingModeV1Version, &mode);
  NvmlProcessDetailListV1 details{};
  expect("nvmlDeviceGetRunningProcessDetailList", kNvmlProcessDetailListV1Version, &details);
  NvmlProcessesUtilizationInfoV1 use{};
  expect("nvmlDeviceGetProcessesUtilizationInfo", kNvmlProcessesUtilizationInfoV1Version, &use);
  NvmlGpmSupport gpm{};
  expect("nvmlGpmQueryDeviceSupport", kNvmlGpmVersion, &gpm);
}

TEST(Generations, StubWarnsAndAnswersNineOrWhatItIsTold) {
  testing::internal::CaptureStderr();
  {
    Client stub(R"({"devices":{}})", 0, "-stub");
    EXPECT_EQ(stub("nvmlInit_v2"), kNvmlDriverNotLoaded);
    setenv("EPOCHMETER_REPLAY_STUB_RETURN", "999", 1);
    EXPECT_EQ(stub("nvmlInitWithFlags", 0U), kNvmlUnknown);
    unsetenv("EPOCHMETER_REPLAY_STUB_RETURN");
    EXPECT_FALSE(stub.Exports("nvmlDeviceGetPowerUsage"));
  }
  EXPECT_NE(testing::internal::GetCapturedStderr().find("WARNING"), std::string::npos);
}

TEST(Generations, BrokenLibraryIsRefusedByTheLoader) {
  const std::string path =
      EnvOr("EPOCHMETER_BUILD_DIR", ".") + "/nvml-replay-broken/libnvidia-ml.so.1";
  ASSERT_TRUE(std::filesystem::exists(path));
  EXPECT_EQ(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL), nullptr);
  EXPECT_NE(std::string(dlerror()).find("undefined symbol"), std::string::npos);
}

}  // namespace
}  // namespace nvml_replay
