// SPDX-License-Identifier: Apache-2.0
#include "diagnose/incidents.h"

#include <gtest/gtest.h>

#include "model/run_builder.h"

namespace epochmeter::diagnose {
namespace {

using model::Event;
using model::EventKind;

constexpr int64_t kSecond = base::kNsPerSecond;

Event At(int64_t t_s, EventKind kind, const std::string& name,
         std::vector<model::EventField> fields) {
  Event event;
  event.t_ns = t_s * kSecond;
  event.kind = kind;
  event.name = name;
  event.fields = std::move(fields);
  return event;
}

Event OfGpu(int64_t t_s, const std::string& name, std::vector<model::EventField> fields) {
  fields.push_back({"uuid", std::string("GPU-1")});
  fields.push_back({"gpu", int64_t{1}});
  return At(t_s, EventKind::kSource, name, std::move(fields));
}

Event OomKill(int64_t t_s, const std::string& where) {
  return At(t_s, EventKind::kProcess, "oom_kill",
            {{"cgroup", std::string("/job")}, {"where", where}, {"count", int64_t{1}}});
}

model::Run RunOf(const std::vector<Event>& events, std::optional<int> exit_code = 0,
                 std::optional<int> signal = {}) {
  model::RunBuilder builder;
  for (const Event& event : events) builder.Write(event);
  builder.Write(model::RunEnd{
      .t_ns = 20 * kSecond, .reason = "ended", .exit_code = exit_code, .signal = signal});
  return builder.Finish();
}

TEST(Incidents, TellWhatWhenWhereAndInWhichEpoch) {
  const model::Run run =
      RunOf({OfGpu(7, "gpu.xid", {{"xid", int64_t{79}}}),
             OfGpu(3, "gpu.lost", {{"detail", std::string("GPU is lost")}}),
             At(8, EventKind::kSource, "sampler",
                {{"state", std::string("gone")}, {"detail", std::string("hung")}}),
             OomKill(9, "above")});
  model::EpochRow row;
  row.epoch = 4;
  row.begin_ns = 2 * kSecond;
  row.end_ns = 5 * kSecond;
  const std::vector<model::Incident> list = FindIncidents(run, {row});
  ASSERT_EQ(list.size(), 4U);
  EXPECT_EQ(list[0].kind, "gpu.lost");
  EXPECT_EQ(list[0].epoch, 4);
  EXPECT_EQ(list[0].gpu, 1);
  EXPECT_EQ(list[0].text, "GPU is lost");
  EXPECT_EQ(list[1].text, "the driver reported XID 79");
  EXPECT_FALSE(list[1].epoch);
  EXPECT_EQ(list[2].text, "GPUs were not read from then on: hung");
  EXPECT_EQ(list[3].text,
            "the kernel's out-of-memory killer ended a process in cgroup /job, above the job: "
            "perhaps another's");
  EXPECT_EQ(list[0].text_zh, "GPU 失联：GPU is lost") << "the driver's words stay";
  EXPECT_EQ(list[1].text_zh, "驱动报告 XID 79");
  EXPECT_EQ(list[2].text_zh, "GPU 未被读取，此后再未恢复：hung");
  EXPECT_NE(list[3].text_zh.find("/job 中的 1 个进程"), std::string::npos) << list[3].text_zh;
}

TEST(Incidents, SayNothingInChineseOfADriverWhoseEventIsNotKnown) {
  const auto list =
      FindIncidents(RunOf({OfGpu(1, "gpu.new_kind", {{"detail", std::string("words")}})}), {});
  ASSERT_EQ(list.size(), 1U);
  EXPECT_EQ(list[0].text, "words");
  EXPECT_EQ(list[0].text_zh, "");
}

Event OfHelper(int64_t t_s, const std::string& name, const std::string& state,
               model::EventField field) {
  return At(t_s, EventKind::kSource, name, {{"state", state}, std::move(field)});
}

TEST(Incidents, TellHowLongAHelperWasAwayAndHowOftenItEnded) {
  const auto gone = [](int64_t t_s, const std::string& name, const std::string& why) {
    return OfHelper(t_s, name, "gone", {"detail", why});
  };
  const model::Run run = RunOf({gone(1, "sampler", "signal 11"), gone(2, "relay", "signal 9"),
                                gone(3, "sampler", "signal 6"), gone(4, "sampler", "signal 11"),
                                OfHelper(5, "relay", "back", {"away_s", 3.0}),
                                OfHelper(6, "sampler", "back", {"away_s", 5.5}),
                                At(19, EventKind::kSource, "sampler",
                                   {{"state", std::string("gone")},
                                    {"detail", std::string("no answer")},
                                    {"silent_s", 4.0}})});
  const std::vector<model::Incident> list = FindIncidents(run, {});
  ASSERT_EQ(list.size(), 3U);
  EXPECT_EQ(list[0].text, "GPUs were not read for 5.50 s, after 3 ends of it: signal 11; signal 6");
  EXPECT_EQ(list[1].kind, "relay");
  EXPECT_EQ(list[1].text, "the relay of the output was away for 3.00 s: signal 9");
  EXPECT_EQ(list[2].text, "GPUs were not read from then on: no answer");
  EXPECT_EQ(list[2].t_ns, 15 * kSecond) << "when it fell silent, not when that was noticed";
}

TEST(Incidents, TellOfARecorderAndARelayThatWereReplaced) {
  const auto replaced = [](int64_t t_s, const std::string& name) {
    return At(t_s, EventKind::kSource, name,
              {{"state", std::string("replaced")},
               {"detail", std::string("it was ended by signal 9 and replaced")},
               {"away_s", 2.0}});
  };
  const auto list = FindIncidents(RunOf({replaced(5, "recorder"), replaced(7, "relay")}), {});
  ASSERT_EQ(list.size(), 2U);
  EXPECT_EQ(list[0].kind, "recorder");
  EXPECT_EQ(list[0].t_ns, 3 * kSecond);
  EXPECT_EQ(list[0].text, "nothing was recorded for 2.00 s: it was ended by signal 9 and replaced");
  EXPECT_EQ(list[0].text_zh, "没有任何记录，持续 2.00 s：它被信号 9 终止，已被替换");
  EXPECT_EQ(list[1].text,
            "the relay of the output was away for 2.00 s: it was ended by signal 9 and replaced");
}

TEST(Incidents, TellThatTheWallClockWasSetAndTheMachineSuspended) {
  const model::Run run = RunOf({At(2, EventKind::kSource, "clock.jumped", {{"by_s", -3600.25}}),
                                At(3, EventKind::kSource, "clock.jumped", {{"by_s", 90000.0}}),
                                At(4, EventKind::kSource, "clock.suspended", {{"for_s", 7200.0}})});
  const std::vector<model::Incident> list = FindIncidents(run, {});
  ASSERT_EQ(list.size(), 3U);
  EXPECT_EQ(list[0].text,
            "the wall clock was set by -1 h 00 min; times of day follow it, durations do not");
  EXPECT_EQ(list[1].text,
            "the wall clock was set by +25 h 00 min; times of day follow it, durations do not");
  EXPECT_EQ(list[2].text,
            "the machine was suspended for 2 h 00 min: nothing ran and nothing was recorded, and "
            "durations leave that time out");
}

TEST(Incidents, TellThatTheJobWasStopped) {
  const model::Run run = RunOf({At(9, EventKind::kSource, "recorder.paused", {{"for_s", 6.0}})});
  const std::vector<model::Incident> list = FindIncidents(run, {});
  ASSERT_EQ(list.size(), 1U);
  EXPECT_EQ(
      list[0].text,
      "the recorder did not run for at least 6.00 s: the job was stopped, or the machine had no "
      "time for it; nothing was read then");
}

TEST(Incidents, AreNotWhatSourcesAndTheChoiceOfGpusSay) {
  const model::Run run =
      RunOf({At(1, EventKind::kSource, "gpu.choice", {{"note", std::string("")}}),
             OfGpu(2, "gpu.found", {}), OfGpu(2, "gpu.xid_before", {{"xid", int64_t{79}}}),
             At(3, EventKind::kSource, "gpu.power", {{"state", std::string("failing")}}),
             At(4, EventKind::kProcess, "training_started", {})});
  EXPECT_TRUE(FindIncidents(run, {}).empty());
}

TEST(OomCgroup, IsThatOfTheKillThatEndedTheTraining) {
  EXPECT_EQ(OomCgroup(RunOf({OomKill(19, "job")}, {}, 9)), "/job");
  EXPECT_EQ(OomCgroup(RunOf({OomKill(20, "job")}, 137)), "/job");
  EXPECT_EQ(OomCgroup(RunOf({OomKill(19, "job")}, 1)), "") << "another process was killed";
  EXPECT_EQ(OomCgroup(RunOf({OomKill(2, "job")}, {}, 9)), "") << "long before the end";
  EXPECT_EQ(OomCgroup(RunOf({OomKill(19, "above")}, {}, 9)), "") << "perhaps another job's";
  EXPECT_EQ(OomCgroup(RunOf({}, {}, 9)), "");
}

}  // namespace
}  // namespace epochmeter::diagnose
