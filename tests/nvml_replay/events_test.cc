// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "client.h"

namespace nvml_replay {
namespace {

constexpr const char* kEvents = R"({"devices":[{},{"absent":[[3.1,3.2]]}],"events":[
    {"at_s":0.5,"data":31},
    {"at_s":1.05,"device":1,"data":79,"gi":2,"ci":0},
    {"at_s":1.1,"device":0,"type":"ecc_double","data":1},
    {"at_s":1.0,"device":0,"data":48}]})";

struct Waiter {
  Client& nvml;
  NvmlEventSet set = nullptr;
  NvmlEventData data{};
  NvmlReturn Wait(uint32_t ms) { return nvml("nvmlEventSetWait_v2", set, &data, ms); }
};

TEST(Events, ComeInTheirTimeToWhoeverRegisteredBefore) {
  Client nvml(kEvents, 0.9);
  ASSERT_EQ(nvml("nvmlInit_v2"), kNvmlSuccess);
  Waiter waiter{nvml};
  ASSERT_EQ(nvml("nvmlEventSetCreate", &waiter.set), kNvmlSuccess);
  uint64_t types = 0;
  ASSERT_EQ(nvml("nvmlDeviceGetSupportedEventTypes", nvml.Device(0), &types), kNvmlSuccess);
  EXPECT_NE(types & kNvmlEventXid, 0U);
  for (uint32_t i = 0; i < 2; ++i) {
    EXPECT_EQ(nvml("nvmlDeviceRegisterEvents", nvml.Device(i), uint64_t{kNvmlEventXid}, waiter.set),
              kNvmlSuccess);
  }
  EXPECT_EQ(waiter.Wait(0), kNvmlTimeout) << "XID 31 was before the registration";
  ASSERT_EQ(waiter.Wait(1000), kNvmlSuccess);
  EXPECT_EQ(waiter.data.data, 48U);
  EXPECT_EQ(waiter.data.device, nvml.Device(0));
  EXPECT_EQ(waiter.data.gpu_instance_id, kNvmlNoInstance);
  ASSERT_EQ(waiter.Wait(1000), kNvmlSuccess);
  EXPECT_EQ(waiter.data.data, 79U);
  EXPECT_EQ(waiter.data.device, nvml.Device(1));
  EXPECT_EQ(waiter.data.gpu_instance_id, 2U);
  EXPECT_EQ(waiter.Wait(200), kNvmlTimeout) << "nobody asked for ECC events, none comes twice";
  EXPECT_EQ(nvml("nvmlEventSetFree", waiter.set), kNvmlSuccess);
  EXPECT_EQ(waiter.Wait(0), kNvmlInvalidArgument);
}

TEST(Events, RegistrationIsNotSupportedWhereTheScriptSaysSo) {
  Client nvml(R"({"devices":{"values":{"event_types":0}}})");
  ASSERT_EQ(nvml("nvmlInit_v2"), kNvmlSuccess);
  NvmlEventSet set = nullptr;
  ASSERT_EQ(nvml("nvmlEventSetCreate", &set), kNvmlSuccess);
  EXPECT_EQ(nvml("nvmlDeviceRegisterEvents", nvml.Device(0), uint64_t{kNvmlEventXid}, set),
            kNvmlNotSupported);
}

TEST(Events, WaitTellsThatARegisteredGpuIsLostAfterItsLastEvent) {
  Client nvml(R"({"devices":{"lost":{"at_s":1}},"events":[{"at_s":1,"data":79}]})", 0.95);
  ASSERT_EQ(nvml("nvmlInit_v2"), kNvmlSuccess);
  Waiter waiter{nvml};
  ASSERT_EQ(nvml("nvmlEventSetCreate", &waiter.set), kNvmlSuccess);
  ASSERT_EQ(nvml("nvmlDeviceRegisterEvents", nvml.Device(0), uint64_t{kNvmlEventXid}, waiter.set),
            kNvmlSuccess);
  ASSERT_EQ(waiter.Wait(1000), kNvmlSuccess);
  EXPECT_EQ(waiter.data.data, 79U);
  EXPECT_EQ(waiter.Wait(0), kNvmlGpuIsLost);
}

TEST(Events, SystemTellsThatADeviceWasUnboundAndBoundAgain) {
  Client nvml(kEvents, 3.05);
  ASSERT_EQ(nvml("nvmlInit_v2"), kNvmlSuccess);
  NvmlSystemEventSetRequestV1 set{kNvmlSystemEventSetRequestV1Version, nullptr};
  ASSERT_EQ(nvml("nvmlSystemEventSetCreate", &set), kNvmlSuccess);
  NvmlSystemRegisterEventsV1 registration{kNvmlSystemRegisterEventsV1Version, 3, set.set};
  ASSERT_EQ(nvml("nvmlSystemRegisterEvents", &registration), kNvmlSuccess);
  NvmlSystemEventDataV1 entries[4] = {};
  NvmlSystemEventWaitV1 wait{kNvmlSystemEventWaitV1Version, 0, set.set, &entries[0], 4, 0};
  EXPECT_EQ(nvml("nvmlSystemEventSetWait", &wait), kNvmlTimeout);
  SleepMs(200);
  ASSERT_EQ(nvml("nvmlSystemEventSetWait", &wait), kNvmlSuccess);
  ASSERT_EQ(wait.count, 2U);
  EXPECT_EQ(entries[0].type, uint64_t{kNvmlSystemEventUnbind});
  EXPECT_EQ(entries[1].type, uint64_t{kNvmlSystemEventBind});
  NvmlPciInfo pci{};
  ASSERT_EQ(nvml("nvmlDeviceGetPciInfo_v3", nvml.Device(1), &pci), kNvmlSuccess);
  EXPECT_EQ(entries[0].gpu_id, pci.bus << 8U);
  EXPECT_EQ(nvml("nvmlSystemEventSetFree", &set), kNvmlSuccess);
}

}  // namespace
}  // namespace nvml_replay
