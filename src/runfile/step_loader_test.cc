// SPDX-License-Identifier: Apache-2.0
#include "runfile/step_loader.h"

#include <gtest/gtest.h>

#include "runfile/test_run.h"

namespace epochmeter::runfile {
namespace {

using model::Event;
using model::EventKind;

Event Step(int64_t t_ns, std::optional<int32_t> rank, std::vector<model::EventField> fields) {
  return {.t_ns = t_ns,
          .kind = EventKind::kStep,
          .rank = rank,
          .epoch = t_ns / 10,
          .step = t_ns % 2 == 0 ? std::optional<int64_t>(t_ns) : std::nullopt,
          .name = "",
          .fields = std::move(fields)};
}

void ExpectSameAsOneByOne(const std::vector<std::vector<Event>>& sections) {
  model::RunBuilder one_by_one, in_columns;
  uint64_t expected = 0;
  for (const std::vector<Event>& events : sections) expected += events.size();
  for (const std::vector<Event>& events : sections) {
    for (const Event& event : events) one_by_one.Write(event);
    EventTable table;
    const std::string bytes = EncodeEvents(events);
    ASSERT_TRUE(DecodeEventTable(bytes, &table));
    WriteEvents(table, expected, in_columns);
  }
  ExpectSameRecords(in_columns.Finish(), one_by_one.Finish());
}

TEST(StepLoader, TellsProcessesApartByRankOrPid) {
  const model::EventField seven{.key = "pid", .value = int64_t{7}};
  const model::EventField eight{.key = "pid", .value = 8.0};
  const model::EventField words{.key = "pid", .value = std::string("9")};
  ExpectSameAsOneByOne(
      {{Step(1, 0, {}), Step(2, 1, {}), Step(3, 0, {}), Step(4, {}, {seven}), Step(5, {}, {eight}),
        Step(6, {}, {seven}), Step(7, {}, {words}), Step(8, {}, {}), Step(9, 1, {seven})}});
}

TEST(StepLoader, KeepsColumnsThatBeginLateEndEarlyOrComeTwice) {
  const model::EventField loss{.key = "scalar.loss", .value = 0.5};
  const model::EventField again{.key = "scalar.loss", .value = int64_t{3}};
  const model::EventField text{.key = "note", .value = std::string("x")};
  ExpectSameAsOneByOne({{Step(1, 0, {}), Step(2, 0, {loss}), Step(3, 0, {text, again})},
                        {Step(4, 0, {again, loss}), Step(5, 0, {})},
                        {Step(6, 0, {text}), Step(7, 3, {loss})}});
}

TEST(StepLoader, LeavesOtherEventsInTheirOrder) {
  const Event mark{.t_ns = 5, .kind = EventKind::kMark, .rank = {}, .name = "m"};
  const Event begin{.t_ns = 4, .kind = EventKind::kEpochBegin, .rank = 1, .epoch = 2};
  ExpectSameAsOneByOne({{mark, Step(1, 0, {}), begin, mark, begin}});
}

}  // namespace
}  // namespace epochmeter::runfile
