// SPDX-License-Identifier: Apache-2.0
// Process lists and utilisation by process, with the habits of real drivers.
#include <string>
#include <vector>

#include "client.h"

namespace nvml_replay {
namespace {

constexpr const char* kProcesses = R"({"devices":{"processes":[
    {"pid":11,"memory":[[0,1000],[5,3000]]},
    {"pid":12,"memory":18446744073709551615,"from_s":2,"to_s":4},
    {"pid":13,"memory":7,"kind":"graphics"},
    {"pid":14,"memory":8,"kind":"mps","protected_memory":6}]}})";

std::vector<NvmlProcessInfo> Compute(Client& nvml) {
  std::vector<NvmlProcessInfo> list(8);
  uint32_t count = 8;
  EXPECT_EQ(nvml("nvmlDeviceGetComputeRunningProcesses_v3", nvml.Device(0), &count, list.data()),
            kNvmlSuccess);
  list.resize(count);
  return list;
}

TEST(Processes, ComeGoGrowAndHideTheirMemory) {
  {
    Client early(kProcesses, 3);
    ASSERT_EQ(early("nvmlInit_v2"), kNvmlSuccess);
    const auto list = Compute(early);
    ASSERT_EQ(list.size(), 2U);
    EXPECT_EQ(list[0].used_gpu_memory, 1000U);
    EXPECT_EQ(list[1].used_gpu_memory, UINT64_MAX);
  }
  Client late(kProcesses, 6);
  ASSERT_EQ(late("nvmlInit_v2"), kNvmlSuccess);
  const auto list = Compute(late);
  ASSERT_EQ(list.size(), 1U);
  EXPECT_EQ(list[0].used_gpu_memory, 3000U);
}

TEST(Processes, ListGraphicsAndMpsApartInEveryLayout) {
  for (const char* variant : {"-470", "-510", "-535.43", "-615"}) {
    Client nvml(kProcesses, 0, variant);
    ASSERT_EQ(nvml("nvmlInit_v2"), kNvmlSuccess);
    struct {
      const char* suffix;
      size_t size;
    } const layouts[] = {{"", 16},
                         {"_v2", 24},
                         {"_v3", variant[1] == '5' && variant[3] == '5' ? size_t{32} : size_t{24}}};
    for (const auto& layout : layouts) {
      const std::string name =
          std::string("nvmlDeviceGetMPSComputeRunningProcesses") + layout.suffix;
      if (!nvml.Exports(name.c_str())) continue;
      std::vector<char> bytes(64, '\x5a');
      uint32_t count = 1;
      ASSERT_EQ(nvml(name.c_str(), nvml.Device(0), &count, bytes.data()), kNvmlSuccess) << name;
      const auto* entry = reinterpret_cast<const NvmlProcessInfoV1*>(bytes.data());
      EXPECT_EQ(entry->pid, 14U);
      EXPECT_EQ(entry->used_gpu_memory, 8U);
      EXPECT_EQ(bytes[layout.size], '\x5a') << name << variant << " writes no further";
      EXPECT_NE(bytes[layout.size - 1], '\x5a') << name << variant;
    }
  }
}

TEST(Processes, DetailListGivesOneKindWithProtectedMemory) {
  Client nvml(kProcesses, 0, "-550");
  ASSERT_EQ(nvml("nvmlInit_v2"), kNvmlSuccess);
  NvmlProcessDetailV1 entries[2] = {};
  NvmlProcessDetailListV1 list{kNvmlProcessDetailListV1Version, 2, 0, nullptr};
  EXPECT_EQ(nvml("nvmlDeviceGetRunningProcessDetailList", nvml.Device(0), &list),
            kNvmlInsufficientSize);
  ASSERT_EQ(list.count, 1U);
  list.entries = &entries[0];
  ASSERT_EQ(nvml("nvmlDeviceGetRunningProcessDetailList", nvml.Device(0), &list), kNvmlSuccess);
  EXPECT_EQ(entries[0].pid, 14U);
  EXPECT_EQ(entries[0].protected_memory, 6U);
}

struct Utilization {
  NvmlReturn rc = 0;
  uint32_t count = 0;
  std::vector<NvmlProcessUtilizationSample> rows;
};

Utilization Use(Client& nvml, uint32_t room, uint64_t last_seen_us) {
  Utilization out;
  out.rows.resize(room);
  out.count = room;
  out.rc = nvml("nvmlDeviceGetProcessUtilization", nvml.Device(0), out.rows.data(), &out.count,
                last_seen_us);
  if (out.rc == kNvmlSuccess) out.rows.resize(out.count);
  return out;
}

TEST(Processes, UtilisationWantsRoomForSeventyTwoAndSaysNotFoundWhenIdle) {
  Client nvml(R"({"devices":{"process_utilization":[{"pid":5,"sm":[[0,40],[5,0]],"mem":7}]}})", 1);
  ASSERT_EQ(nvml("nvmlInit_v2"), kNvmlSuccess);
  const Utilization small = Use(nvml, 64, 0);
  EXPECT_EQ(small.rc, kNvmlInsufficientSize);
  EXPECT_EQ(small.count, 72U);
  const Utilization good = Use(nvml, 72, 0);
  ASSERT_EQ(good.rc, kNvmlSuccess);
  ASSERT_EQ(good.rows.size(), 1U);
  EXPECT_EQ(good.rows[0].sm_util, 40U);
  EXPECT_EQ(good.rows[0].mem_util, 7U);
  EXPECT_EQ(Use(nvml, 72, good.rows[0].timestamp_us + 1000000).rc, kNvmlNotFound);
  SleepMs(200);
  EXPECT_GT(Use(nvml, 72, good.rows[0].timestamp_us).rows[0].timestamp_us,
            good.rows[0].timestamp_us);
}

TEST(Processes, UtilisationOfNobodyIsNotFoundAndOfOlderBoardsNotSupported) {
  for (const bool supported : {true, false}) {
    Client nvml(supported ? R"({"devices":{"process_utilization":[]}})" : R"({"devices":{}})");
    ASSERT_EQ(nvml("nvmlInit_v2"), kNvmlSuccess);
    EXPECT_EQ(Use(nvml, 72, 0).rc, supported ? kNvmlNotFound : kNvmlNotSupported);
  }
}

TEST(Processes, UtilisationHasTheBadHabitsOfRealDrivers) {
  Client nvml(R"({"devices":{"process_utilization":{"zero_rows":100,"ignores_last_seen":true,
      "rows":[{"pid":5,"sm":37100},{"pid":0,"sm":3},{"pid":6,"sm":2147483632,"stamp_s":0.5}]}}})",
              3);
  ASSERT_EQ(nvml("nvmlInit_v2"), kNvmlSuccess);
  EXPECT_EQ(Use(nvml, 72, 0).count, 103U) << "the driver wants room for its garbage too";
  const Utilization first = Use(nvml, 103, UINT64_MAX);
  ASSERT_EQ(first.rc, kNvmlSuccess);
  ASSERT_EQ(first.rows.size(), 103U);
  EXPECT_EQ(first.rows[99].pid, 0U);
  EXPECT_EQ(first.rows[99].timestamp_us, 0U);
  EXPECT_EQ(first.rows[100].sm_util, 37100U);
  EXPECT_EQ(first.rows[102].sm_util, 2147483632U);
  SleepMs(200);
  const Utilization second = Use(nvml, 103, 0);
  EXPECT_NEAR(static_cast<double>(second.rows[102].timestamp_us),
              static_cast<double>(first.rows[102].timestamp_us), 100)
      << "a frozen stamp";
  EXPECT_GT(second.rows[100].timestamp_us, first.rows[100].timestamp_us);
}

TEST(Processes, UtilisationOfR550HasTwoMoreEngines) {
  Client nvml(R"({"sample_clock":"monotonic","devices":{"process_utilization":
      [{"pid":5,"sm":1,"jpg":8,"ofa":9}]}})",
              2, "-550");
  ASSERT_EQ(nvml("nvmlInit_v2"), kNvmlSuccess);
  std::vector<NvmlProcessUtilizationInfoV1> rows(72);
  NvmlProcessesUtilizationInfoV1 info{static_cast<uint32_t>(kNvmlProcessesUtilizationInfoV1Version),
                                      72, 0, rows.data()};
  ASSERT_EQ(nvml("nvmlDeviceGetProcessesUtilizationInfo", nvml.Device(0), &info), kNvmlSuccess);
  ASSERT_EQ(info.count, 1U);
  EXPECT_EQ(rows[0].jpg_util, 8U);
  EXPECT_EQ(rows[0].ofa_util, 9U);
  const int64_t age_us = NowNs() / 1000 - static_cast<int64_t>(rows[0].timestamp_us);
  EXPECT_GE(age_us, 0);
  EXPECT_LT(age_us, 300000) << "stamped with the clock that the script names";
}

}  // namespace
}  // namespace nvml_replay
