// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <time.h>

#include "collect/nvml/kernel_log.h"
#include "collect/nvml/replay_fixture.h"

namespace epochmeter::collect::nvml {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Optional;

class XidTest : public ReplayTest {
 protected:
  std::vector<model::Event> Events(const std::string& name) const {
    std::vector<model::Event> found;
    for (const auto& event : Records<model::Event>()) {
      if (event.name == name) found.push_back(event);
    }
    return found;
  }
  static void Pass(int ms) {
    const timespec time{ms / 1000, ms % 1000 * 1000000L};
    nanosleep(&time, nullptr);
  }
  // As Play, with a folder that stands for /.
  void PlayWithRoot(const std::string& script, const std::string& root) {
    Play(script);
    session_ = std::make_unique<Session>(LibraryOptions{.library = ReplayFolder(), .root = root});
    context_->nvml = session_.get();
  }
};

TEST_F(XidTest, CountsNothingWhileReleasedAndRegistersAgainAfterwards) {
  Play(R"({"devices":{"count":1,"values":{"temp_c":40}},
      "events":[{"at_s":0.1,"type":"xid","data":31},{"at_s":0.4,"type":"xid","data":79}]})");
  const auto source = MakeSource(kGpuXid);
  Sample(*source, 0);
  session_->Release(kBeginNs, 60 * base::kNsPerSecond);
  Pass(150);
  EXPECT_EQ(Value(Sample(*source, 30), "gpu.xids"), std::nullopt) << "the first would be missed";
  EXPECT_EQ(States("gpu.xids").back(), "source_gone: NVML was released on request");
  EXPECT_THAT(Value(Sample(*source, 60), "gpu.xids"), Optional(0));
  Pass(300);
  EXPECT_THAT(Value(Sample(*source, 61), "gpu.xid xid=79"), Optional(1));
}

TEST_F(XidTest, RecordsAnXidAsEventAndCounter) {
  Play(R"({"devices":{"count":2,"values":{"temp_c":40}},
      "events":[{"at_s":0.2,"device":1,"type":"xid","data":79},
                {"at_s":0.25,"device":1,"type":"xid","data":79}]})");
  const auto source = MakeSource(kGpuXid);
  EXPECT_THAT(Value(Sample(*source, 0), "gpu.xids", 1), Optional(0));
  Pass(300);
  const auto samples = Sample(*source, 1);
  EXPECT_THAT(Value(samples, "gpu.xids", 0), Optional(0));
  EXPECT_THAT(Value(samples, "gpu.xids", 1), Optional(2));
  EXPECT_THAT(Value(samples, "gpu.xid xid=79", 1), Optional(2));
  const auto events = Events("gpu.xid");
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0].Number("xid"), 79);
  EXPECT_EQ(events[0].Number("gpu"), 1);
  EXPECT_EQ(events[0].Text("source"), "nvml");
}

TEST_F(XidTest, DoesNotTakeAMissingEventSourceForBadHealth) {
  Play(R"({"devices":{"count":1,"values":{"event_types":0}}})");
  const auto source = MakeSource(kGpuXid);
  for (double t_s = 0; t_s < 5; ++t_s) EXPECT_THAT(Sample(*source, t_s).values, IsEmpty());
  EXPECT_THAT(States("gpu.xids"), ElementsAre(HasSubstr("not_supported: the driver gives no")));
  EXPECT_THAT(Events("gpu.lost"), IsEmpty());
}

TEST_F(XidTest, ReadsTheKernelLogForWhatCameBeforeAndWhereThereAreNoEvents) {
  const std::string root = testing::TempDir() + "/xid-root-" + std::to_string(getpid());
  std::filesystem::create_directories(root + "/dev");
  const std::string script =
      R"({"devices":{"count":1,"bus_id":"00000000:1A:00.0","values":{"event_types":0}}})";
  const int64_t now_us = base::MonotonicNs() / 1000;
  std::ofstream(root + "/dev/kmsg")
      << "4,10," << now_us - 5000000 << ",-;NVRM: Xid (PCI:0000:1a:00): 31, pid=7, name=python\n"
      << "6,11," << now_us << ",-;usb 1-1: something else\n"
      << "4,12," << now_us + 60000000
      << ",-;NVRM: Xid (PCI:0000:1a:00): 79, GPU has fallen off the bus.\n";
  PlayWithRoot(script, root);
  const auto source = MakeSource(kGpuXid);
  const auto samples = Sample(*source, 0);
  EXPECT_THAT(Value(samples, "gpu.xid xid=79"), Optional(1));
  const auto before = Events("gpu.xid_before");
  ASSERT_EQ(before.size(), 1U);
  EXPECT_EQ(before[0].Number("last_xid"), 31);
  EXPECT_NEAR(before[0].Number("last_age_s").value_or(0), 5, 1);
  ASSERT_EQ(Events("gpu.xid").size(), 1U);
  EXPECT_EQ(Events("gpu.xid")[0].Text("source"), "kernel_log");
  EXPECT_EQ(Events("gpu.xid")[0].Text("detail"), "GPU has fallen off the bus.");
}

TEST(ParseKernelXidTest, ReadsOnlyXidLines) {
  const auto found =
      ParseKernelXid("4,1201,5140900000,-;NVRM: Xid (PCI:0000:3B:00): 43, pid=3, Ch 0008");
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->t_ns, 5140900000000);
  EXPECT_EQ(found->bus_id, "0000:3b:00");
  EXPECT_EQ(found->xid, 43U);
  EXPECT_EQ(found->text, "pid=3, Ch 0008");
  for (const char* line :
       {"", "4,1,2", "4,1,2,-;NVRM: Xid (PCI:0000:3b:00", "4,1,2,-;NVRM: Xid (PCI:0000:3b:00): x,",
        ";NVRM: Xid (PCI:0000:3b:00): 4,", "4,1,zz,-;NVRM: Xid (PCI:0000:3b:00): 4,",
        "4,1,9223372036854775807,-;NVRM: Xid (PCI:0000:3b:00): 4,",
        "4,1,-9223372036854775808,-;NVRM: Xid (PCI:0000:3b:00): 4,"}) {
    EXPECT_FALSE(ParseKernelXid(line).has_value()) << line;
  }
}

}  // namespace
}  // namespace epochmeter::collect::nvml
