// SPDX-License-Identifier: Apache-2.0
// MIG instances: handles with holes, what they answer, what the parent no longer does.
#include <memory>
#include <string>

#include "client.h"

namespace nvml_replay {
namespace {

constexpr const char* kMig = R"({"devices":{"name":"NVIDIA H200",
    "values":{"util_gpu":90,"util_mem":5,"power_mw":300000,"power_instant_mw":300000,"temp_c":50,
              "memory_total":1000,"mem_used":{"return":4},"remapped_corrected":0,
              "remapped_uncorrected":0,"remapped_pending":0,"remapped_failure":0},
    "process_utilization":[{"pid":77,"sm":50}],
    "mig":{"max":7,"instances":[
      {"gi":1,"ci":0,"profile":"3g.71gb","values":{"memory_total":76038537216,"mem_used":4096,
       "gpm.sm_util":44},"processes":[[77,1000]]},
      null,
      {"gi":5,"profile":"1g.18gb"},
      {"gi":2,"ci":1,"profile":"1c.3g.71gb","uuid":"MIG-mine","values":{"memory_total":9,
       "mem_used":3,"gpm.sm_util":130},"processes":[[78,2000]],"absent":[5]}]}}})";

NvmlDevice Instance(Client& nvml, uint32_t index) {
  NvmlDevice instance = nullptr;
  EXPECT_EQ(nvml("nvmlDeviceGetMigDeviceHandleByIndex", nvml.Device(0), index, &instance),
            kNvmlSuccess);
  return instance;
}

TEST(Mig, HandsOutInstancesAndLeavesHoles) {
  Client nvml(kMig);
  ASSERT_EQ(nvml("nvmlInit_v2"), kNvmlSuccess);
  const NvmlDevice gpu = nvml.Device(0);
  EXPECT_EQ(nvml.U32("nvmlDeviceGetMaxMigDeviceCount", gpu), 7U);
  const NvmlReturn expected[] = {kNvmlSuccess,  kNvmlNotFound, kNvmlNotFound, kNvmlSuccess,
                                 kNvmlNotFound, kNvmlNotFound, kNvmlNotFound, kNvmlInvalidArgument};
  for (uint32_t i = 0; i < 8; ++i) {
    NvmlDevice handle = nullptr;
    EXPECT_EQ(nvml("nvmlDeviceGetMigDeviceHandleByIndex", gpu, i, &handle), expected[i]) << i;
  }
  const NvmlDevice second = Instance(nvml, 3);
  EXPECT_EQ(nvml.Text("nvmlDeviceGetUUID", second), "MIG-mine");
  EXPECT_EQ(nvml.Text("nvmlDeviceGetName", second), "NVIDIA H200 MIG 1c.3g.71gb");
  EXPECT_EQ(nvml.U32("nvmlDeviceGetGpuInstanceId", second), 2U);
  EXPECT_EQ(nvml.U32("nvmlDeviceGetComputeInstanceId", second), 1U);
  EXPECT_EQ(nvml.U32("nvmlDeviceIsMigDeviceHandle", second), 1U);
  NvmlDevice parent = nullptr;
  EXPECT_EQ(nvml("nvmlDeviceGetDeviceHandleFromMigDeviceHandle", second, &parent), kNvmlSuccess);
  EXPECT_EQ(parent, gpu);
  NvmlDevice by_uuid = nullptr;
  EXPECT_EQ(nvml("nvmlDeviceGetHandleByUUID", "MIG-mine", &by_uuid), kNvmlSuccess);
  EXPECT_EQ(by_uuid, second);
  NvmlDeviceAttributes about{};
  EXPECT_EQ(nvml("nvmlDeviceGetAttributes_v2", second, &about), kNvmlSuccess);
  EXPECT_EQ(about.gpu_instance_slices, 3U);
  EXPECT_EQ(about.compute_instance_slices, 1U);
  EXPECT_EQ(nvml("nvmlDeviceGetAttributes_v2", Instance(nvml, 0), &about), kNvmlSuccess);
  EXPECT_EQ(about.memory_mib, 72516U);
}

TEST(Mig, OffIsToldApartFromABoardWithoutIt) {
  Client nvml(R"({"devices":[{"values":{"mig_mode":0}},{}]})");
  ASSERT_EQ(nvml("nvmlInit_v2"), kNvmlSuccess);
  uint32_t current = 9;
  uint32_t pending = 9;
  NvmlDevice none = nullptr;
  EXPECT_EQ(nvml("nvmlDeviceGetMigMode", nvml.Device(0), &current, &pending), kNvmlSuccess);
  EXPECT_EQ(current + pending, 0U);
  EXPECT_EQ(nvml.U32("nvmlDeviceGetMaxMigDeviceCount", nvml.Device(0)), 0U);
  EXPECT_EQ(nvml("nvmlDeviceGetMigDeviceHandleByIndex", nvml.Device(0), 0U, &none), kNvmlNotFound);
  EXPECT_EQ(nvml("nvmlDeviceGetMigMode", nvml.Device(1), &current, &pending), kNvmlNotSupported);
  EXPECT_EQ(nvml("nvmlDeviceGetMigDeviceHandleByIndex", nvml.Device(1), 0U, &none),
            kNvmlNotSupported);
}

TEST(Mig, TakesUtilisationFromTheParentAndGivesItToNobody) {
  Client nvml(kMig);
  ASSERT_EQ(nvml("nvmlInit_v2"), kNvmlSuccess);
  const NvmlDevice gpu = nvml.Device(0);
  NvmlUtilization use{};
  EXPECT_EQ(nvml("nvmlDeviceGetUtilizationRates", gpu, &use), kNvmlNotSupported);
  EXPECT_EQ(nvml("nvmlDeviceGetUtilizationRates", Instance(nvml, 0), &use), kNvmlNotSupported);
  uint32_t value = 0;
  EXPECT_EQ(nvml("nvmlDeviceGetPowerUsage", Instance(nvml, 0), &value), kNvmlNotSupported);
  EXPECT_EQ(nvml.U32("nvmlDeviceGetPowerUsage", gpu), 300000U) << "the parent keeps its power";
  uint32_t count = 100;
  NvmlProcessUtilizationSample rows[100] = {};
  EXPECT_EQ(nvml("nvmlDeviceGetProcessUtilization", gpu, &rows[0], &count, uint64_t{0}),
            kNvmlNotSupported);
  uint32_t type = 0;
  NvmlSample* none = nullptr;
  const auto samples = [&](uint32_t which) {
    return nvml("nvmlDeviceGetSamples", gpu, which, uint64_t{0}, &type, &count, none);
  };
  EXPECT_EQ(samples(kNvmlSamplesGpuUtil), kNvmlNotSupported);
  EXPECT_EQ(samples(kNvmlSamplesTotalPower), kNvmlSuccess);
  EXPECT_EQ(nvml.Field(gpu, kNvmlFieldRemappedPending).nvml_return, kNvmlNotSupported);
}

TEST(Mig, GivesMemoryAndProcessesPerInstance) {
  Client nvml(kMig);
  ASSERT_EQ(nvml("nvmlInit_v2"), kNvmlSuccess);
  NvmlMemory memory{};
  EXPECT_EQ(nvml("nvmlDeviceGetMemoryInfo", nvml.Device(0), &memory), kNvmlNoPermission);
  ASSERT_EQ(nvml("nvmlDeviceGetMemoryInfo", Instance(nvml, 0), &memory), kNvmlSuccess);
  EXPECT_EQ(memory.used, 4096U);
  NvmlProcessInfo list[4] = {};
  uint32_t count = 4;
  ASSERT_EQ(nvml("nvmlDeviceGetComputeRunningProcesses_v3", nvml.Device(0), &count, &list[0]),
            kNvmlSuccess);
  ASSERT_EQ(count, 2U) << "the GPU lists the processes of its instances";
  EXPECT_EQ(list[1].pid, 78U);
  EXPECT_EQ(list[1].gpu_instance_id, 2U);
  count = 4;
  ASSERT_EQ(nvml("nvmlDeviceGetComputeRunningProcesses_v3", Instance(nvml, 0), &count, &list[0]),
            kNvmlSuccess);
  ASSERT_EQ(count, 1U);
  EXPECT_EQ(list[0].pid, 77U);
  EXPECT_EQ(list[0].compute_instance_id, 0U);
}

// Two samples of an instance, by the call for MIG or by its handle, and the SM utilisation.
double SmUtil(Client& nvml, bool by_handle, uint32_t gpu_instance, uint32_t index) {
  NvmlGpmSample samples[2] = {};
  for (NvmlGpmSample& sample : samples) {
    EXPECT_EQ(nvml("nvmlGpmSampleAlloc", &sample), kNvmlSuccess);
    const NvmlReturn rc = by_handle
                              ? nvml("nvmlGpmSampleGet", Instance(nvml, index), sample)
                              : nvml("nvmlGpmMigSampleGet", nvml.Device(0), gpu_instance, sample);
    EXPECT_EQ(rc, kNvmlSuccess);
    SleepMs(5);
  }
  const auto request = std::make_unique<NvmlGpmMetricsGet>();
  request->version = kNvmlGpmVersion;
  request->num_metrics = 1;
  request->sample1 = samples[0];
  request->sample2 = samples[1];
  request->metrics[0].metric_id = kNvmlGpmSmUtil;
  EXPECT_EQ(nvml("nvmlGpmMetricsGet", request.get()), kNvmlSuccess);
  for (NvmlGpmSample sample : samples) nvml("nvmlGpmSampleFree", sample);
  EXPECT_EQ(request->metrics[0].nvml_return, kNvmlSuccess);
  return request->metrics[0].value;
}

TEST(Mig, GivesGpmByInstanceAndShowsMoreThanAHundredPercent) {
  Client nvml(kMig);
  ASSERT_EQ(nvml("nvmlInit_v2"), kNvmlSuccess);
  EXPECT_EQ(SmUtil(nvml, false, 1, 0), 44);
  EXPECT_EQ(SmUtil(nvml, true, 1, 0), 44);
  EXPECT_EQ(SmUtil(nvml, false, 2, 3), 130);
  NvmlGpmSample sample = nullptr;
  ASSERT_EQ(nvml("nvmlGpmSampleAlloc", &sample), kNvmlSuccess);
  EXPECT_EQ(nvml("nvmlGpmMigSampleGet", nvml.Device(0), 5U, sample), kNvmlInvalidArgument)
      << "a GPU instance without compute instance";
  nvml("nvmlGpmSampleFree", sample);
}

TEST(Mig, OlderDriverTakesNoInstanceHandleForGpm) {
  Client nvml(kMig, 0, "-550");
  ASSERT_EQ(nvml("nvmlInit_v2"), kNvmlSuccess);
  NvmlGpmSample sample = nullptr;
  ASSERT_EQ(nvml("nvmlGpmSampleAlloc", &sample), kNvmlSuccess);
  EXPECT_EQ(nvml("nvmlGpmSampleGet", Instance(nvml, 0), sample), kNvmlNotSupported);
  EXPECT_EQ(nvml("nvmlGpmMigSampleGet", nvml.Device(0), 1U, sample), kNvmlSuccess);
  nvml("nvmlGpmSampleFree", sample);
}

TEST(Mig, HandleOfADestroyedInstanceIsInvalid) {
  Client nvml(kMig, 4.9);
  ASSERT_EQ(nvml("nvmlInit_v2"), kNvmlSuccess);
  const NvmlDevice instance = Instance(nvml, 3);
  SleepMs(150);
  NvmlMemory memory{};
  EXPECT_EQ(nvml("nvmlDeviceGetMemoryInfo", instance, &memory), kNvmlInvalidArgument);
  NvmlDevice none = nullptr;
  EXPECT_EQ(nvml("nvmlDeviceGetMigDeviceHandleByIndex", nvml.Device(0), 3U, &none), kNvmlNotFound);
}

}  // namespace
}  // namespace nvml_replay
