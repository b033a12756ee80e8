// SPDX-License-Identifier: Apache-2.0
// A script that says something unknown is refused, and the message names it.
#include <string>

#include "client.h"

namespace nvml_replay {
namespace {

std::string Refusal(const std::string& script) {
  testing::internal::CaptureStderr();
  Client nvml(script);
  EXPECT_EQ(nvml("nvmlInit_v2"), kNvmlDriverNotLoaded) << script;
  return testing::internal::GetCapturedStderr();
}

TEST(Script, RefusesWhatItDoesNotKnowAndNamesIt) {
  struct {
    const char* script;
    const char* named;
  } const cases[] = {
      {R"({"device":{}})", "device: unknown key"},
      {R"({"devices":{"vlaues":{}}})", "devices.vlaues: unknown key"},
      {R"({"devices":[{},{"values":{"util_gup":1}}]})", "devices[1].values.util_gup"},
      {R"({"devices":{"values":{"temp_c":"warm"}}})", "'warm' is not a number"},
      {R"({"devices":{"values":{"temp_c":[[2,1],[1,1]]}}})", "earlier than the point before it"},
      {R"({"devices":{"values":{"temp_c":{"start":1,"per_sec":2}}}})", "temp_c.per_sec"},
      {R"({"devices":{},"faults":[{"function":"nvmlDeviceGetPwoerUsage","return":3}]})",
       "nvmlDeviceGetPwoerUsage"},
      {R"({"devices":{},"faults":[{"function":"nvmlDeviceGetName"}]})", "does nothing"},
      {R"({"devices":{},"faults":{"for":3,"return":3}})", "faults.for"},
      {R"({"devices":{"mig":{"instances":[{"ci":0}]}}})", "gi: is needed"},
      {R"({"devices":{"mig":{"instances":[{"gi":0,"power":1}]}}})", "instances[0].power"},
      {R"({"devices":{"processes":[{"pid":1,"mem":2}]}})", "processes[0].mem"},
      {R"({"devices":{"process_utilization":{"row":[]}}})", "process_utilization.row"},
      {R"({"devices":{"absent":["soon"]}})", "absent"},
      {R"({"devices":{"count":-1}})", "devices.count"},
      {R"({"devices":{},"events":[{"type":"xyd"}]})", "events[0].type"},
      {R"({"devices":{},"latency_us":{"field:":3}})", "latency_us"},
      {R"({"devices":{},"stale_handle":"burn"})", "stale_handle"},
      {R"({"devices":{},"sample_clock":"sun"})", "sample_clock"},
      {R"({"devices":{},"extend":{"device":4}})", "extend.device"},
      {R"({"name":"empty"})", "needs \"devices\" or \"recording\""},
      {R"({"devices":)", "not JSON"},
  };
  for (const auto& bad : cases) {
    EXPECT_NE(Refusal(bad.script).find(bad.named), std::string::npos) << bad.script;
  }
}

TEST(Script, ExtendsTheDevicesOfARecording) {
  SKIP_WITHOUT(Recording("ddp_healthy"));
  const std::string folder = std::filesystem::absolute(Recording("ddp_healthy")).string();
  Client nvml(R"({"recording":")" + folder + R"(","extend":[{"values":{"pcie_gen":5}},
      {"device":1,"name":"NVIDIA Mine","values":{"pcie_gen":4}}]})");
  ASSERT_EQ(nvml("nvmlInit_v2"), kNvmlSuccess);
  ASSERT_EQ(nvml.Count(), 2U);
  EXPECT_EQ(nvml.U32("nvmlDeviceGetCurrPcieLinkGeneration", nvml.Device(0)), 5U);
  EXPECT_EQ(nvml.U32("nvmlDeviceGetCurrPcieLinkGeneration", nvml.Device(1)), 4U);
  EXPECT_EQ(nvml.Text("nvmlDeviceGetName", nvml.Device(1)), "NVIDIA Mine");
  EXPECT_GT(nvml.U32("nvmlDeviceGetPowerUsage", nvml.Device(1)), 0U) << "the recording's value";
}

TEST(Script, MayHaveNoDeviceAtAll) {
  Client nvml(R"({"devices":[]})");
  ASSERT_EQ(nvml("nvmlInit_v2"), kNvmlSuccess);
  EXPECT_EQ(nvml.Count(), 0U);
}

}  // namespace
}  // namespace nvml_replay
