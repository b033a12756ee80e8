// SPDX-License-Identifier: Apache-2.0
#include "render/page_payload.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "render/hostile_run.h"
#include "render/html.h"
#include "render/page_numbers.h"

namespace epochmeter::render {
namespace {

using nlohmann::json;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

json Payload(const MadeRun& made, const PageOptions& options = {}, const PageLimits& limits = {}) {
  return json::parse(PagePayload(made.run, made.report, options, limits));
}

// Running sums times the scale, NaN where it is null.
std::vector<double> Values(const json& deltas, double scale) {
  std::vector<double> values;
  double sum = 0;
  for (const json& delta : deltas) {
    if (delta.is_number()) sum += delta.get<double>();
    values.push_back(delta.is_number() ? sum * scale : kNan);
  }
  return values;
}

TEST(PagePayload, CurvesReadBackWithinTheirStep) {
  MadeRun made(100);
  const model::EntityId gpu = made.Entity(model::Scope::kGpu, "GPU-1", {{"gpu", "3"}});
  made.Curve(
      gpu, "power_w", "W", [](int i) { return i == 50 ? 700.5 : 100 + 0.01 * i; }, 100);
  const json curve = Payload(made)["curves"][0];
  EXPECT_EQ(curve["entity"], "gpu3");
  EXPECT_EQ(curve["label"], "GPU 3");
  EXPECT_EQ(curve["gpu"], 3);
  EXPECT_TRUE(curve["rank"].is_null());
  const double scale = curve["scale"];
  EXPECT_LE(scale, 0.1);
  const std::vector<double> t = Values(curve["t"], 1), v = Values(curve["v"], scale);
  ASSERT_EQ(t.size(), v.size());
  for (size_t i = 0; i < t.size(); ++i) {
    const auto second = static_cast<int>(t[i] / 1000);
    EXPECT_NEAR(v[i], second == 50 ? 700.5 : 100 + 0.01 * second, scale);
  }
}

TEST(PagePayload, MemoryOfTheOnlyProcessIsNamedAsItsSteps) {
  MadeRun made(10);
  model::Event step{
      .t_ns = made.run.span.begin_ns + 1, .kind = model::EventKind::kStep, .epoch = 0, .step = 1};
  step.fields.push_back({.key = "duration_s", .value = 0.5});
  made.run.steps[model::ProcessKey()].Add(step);
  const model::EntityId process = made.Entity(model::Scope::kRank, "pid:4711", {{"pid", "4711"}});
  made.Curve(
      process, "allocated_bytes", "By", [](int) { return 1e9; }, 10);
  const json payload = Payload(made);
  EXPECT_EQ(payload["curves"][0]["entity"], payload["ranks"][0]["name"]);
  EXPECT_EQ(payload["curves"][0]["alias"], "pid:4711");
}

TEST(PagePayload, LeavesOutWhatALineDoesNotNeedAndKeepsHoles) {
  MadeRun made(10);
  const model::EntityId host = made.Entity(model::Scope::kHost, "host", {});
  const double values[] = {5, 5, 5, 5, kNan, kInf, 5, 5, 7, 7};
  made.Curve(
      host, "x", "1", [&](int i) { return values[i]; }, 10);
  const json curve = Payload(made)["curves"][0];
  EXPECT_EQ(curve["t"], json({0, 3000, 1000, 1000, 1000, 1000, 1000, 1000}));
  const std::vector<double> v = Values(curve["v"], curve["scale"]);
  EXPECT_EQ(v.size(), 8U);
  EXPECT_TRUE(std::isnan(v[2]) && std::isnan(v[3]));
  EXPECT_DOUBLE_EQ(v[1], 5);
  EXPECT_DOUBLE_EQ(v[7], 7);
}

TEST(PagePayload, StepsTellNanFromAbsent) {
  MadeRun made(10);
  made.Steps(
      0, 4, 1, [](int) { return 1.0; }, [](int i) { return i == 1   ? kNan
                                                           : i == 2 ? -kInf
                                                                    : 2.5; });
  made.run.steps[model::ProcessKey(0)].columns["scalar.late"] = {
      model::kAbsentNumber, model::kAbsentNumber, model::kAbsentNumber, 1.5};
  const json steps = Payload(made)["ranks"][0]["steps"];
  EXPECT_EQ(steps["count"], 4);
  EXPECT_EQ(steps["thinned"], false);
  EXPECT_EQ(steps["step"], json({1, 1, 1, 1}));
  EXPECT_TRUE(steps["data_wait"].is_null());
  EXPECT_EQ(steps["scalars"]["loss"]["v"], json({1, "nan", "-inf", 0}));
  EXPECT_EQ(steps["scalars"]["late"]["v"], json({nullptr, nullptr, nullptr, 1}));
}

TEST(PagePayload, SecondsAreOfOneStepWhereARowTellsSeveral) {
  MadeRun made(10);
  for (int i = 1; i <= 2; ++i) {
    model::Event step{.t_ns = made.run.span.begin_ns + i,
                      .kind = model::EventKind::kStep,
                      .epoch = 0,
                      .step = 10 * i};
    step.fields.push_back({.key = "duration_s", .value = 5.0});
    step.fields.push_back({.key = "steps", .value = int64_t{10}});
    made.run.steps[model::ProcessKey()].Add(step);
  }
  const json steps = Payload(made)["ranks"][0]["steps"];
  EXPECT_EQ(steps["count"], 20);
  EXPECT_NEAR(Values(steps["duration"]["v"], steps["duration"]["scale"]).back(), 0.5, 1e-3);
}

TEST(PagePayload, BearsAHostileRunAndRedactsIt) {
  MadeRun made(100, kHostileName);
  const model::EntityId gpu = made.Entity(model::Scope::kGpu, kHostileName, {{"gpu", "x"}});
  made.Entity(model::Scope::kGpu, kHostileName, {{"gpu", "x"}});
  made.Curve(
      gpu, kHostileName, kHostileName,
      [](int i) { return i % 3 == 0   ? kNan
                         : i % 3 == 1 ? 1e308
                                      : -1e308; }, 100);
  made.Curve(
      1, "all", "1", [](int) { return -kInf; }, 5);
  made.Curve(
      99, "nowhere", "1", [](int) { return 1.0; }, 5);
  made.Steps(
      -5, 3, 1e-9, [](int) { return 1e300; }, [](int) { return kNan; });
  made.run.log.push_back({.t_ns = 5, .stream = 77, .text = kHostileName + "\r\n" + "\xC3"});
  made.run.events.push_back({.t_ns = std::numeric_limits<int64_t>::min() / 4,
                             .kind = model::EventKind::kException,
                             .name = kHostileName,
                             .fields = {{.key = "message", .value = kHostileName}}});
  const std::string text = PagePayload(made.run, made.report, {}, {});
  const json payload = json::parse(text);
  EXPECT_EQ(payload["curves"].size(), 2U);
  EXPECT_NE(payload["curves"][0]["entity"], payload["curves"][1]["entity"]);
  EXPECT_EQ(text.find("/home/ann"), std::string::npos);
  EXPECT_EQ(text.find("hunter22"), std::string::npos);
  EXPECT_EQ(payload["redacted"], json({"home folder", "secret"}));
  EXPECT_EQ(payload["log"].size(), 2U);
  const json open = Payload(made, {.redact = false});
  EXPECT_NE(open.dump().find("hunter22"), std::string::npos);
  EXPECT_TRUE(open["redacted"].empty());
}

TEST(PagePayload, IsWholeForARunOfNothing) {
  const MadeRun made(0);
  const json payload = Payload(made);
  EXPECT_EQ(payload["payload_version"], 1);
  EXPECT_EQ(payload["duration_ms"], 0);
  EXPECT_TRUE(payload["curves"].empty() && payload["ranks"].empty() && payload["log"].empty());
  EXPECT_TRUE(payload["slowest"].is_null());
  const MadeRun bare = [] {
    MadeRun without(1);
    without.run.info.reset();
    return without;
  }();
  EXPECT_TRUE(Payload(bare)["t0_ms"].is_null());
}

TEST(PagePayload, KeepsTheFirstAndLastLines) {
  MadeRun made(10);
  for (int i = 0; i < 10; ++i) {
    made.run.log.push_back({.t_ns = kMadeBeginNs, .stream = 1, .text = std::to_string(i)});
    made.run.log.push_back({.t_ns = kMadeBeginNs, .stream = 2, .text = "e\n"});
    made.run.log.push_back({.t_ns = kMadeBeginNs, .stream = 1, .text = "bar 1%\rline\n"});
  }
  const json payload = Payload(made, {}, {.log_head = 3, .log_tail = 4});
  EXPECT_EQ(payload["log_omitted"], 13);
  ASSERT_EQ(payload["log"].size(), 7U);
  EXPECT_EQ(payload["log"][0]["text"], "e");
  EXPECT_EQ(payload["log"][0]["stream"], "stderr");
  EXPECT_EQ(payload["log"][1]["text"], "line");
}

TEST(Html, HoldsThePayloadWhereNoNameCanBreakOut) {
  MadeRun made(100, kHostileName);
  made.Steps(0, 10, 1, [](int) { return 1.0; }, {});
  const std::string page = RenderHtml(made.run, made.report, {}).value();
  const size_t begin = page.find("<script id=\"epm-payload\" type=\"application/octet-stream\">");
  ASSERT_NE(begin, std::string::npos);
  const size_t text = page.find('>', begin) + 1;
  EXPECT_EQ(page.find_first_not_of(
                "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=", text),
            page.find("</script>", text));
  EXPECT_EQ(page.find("onerror=alert"), std::string::npos);
}

TEST(Html, ThinsUntilThePageFitsAndKeepsTheSpike) {
  MadeRun made(4000);
  for (int i = 0; i < 20; ++i) {
    const model::EntityId gpu =
        made.Entity(model::Scope::kGpu, "g" + std::to_string(i), {{"gpu", std::to_string(i)}});
    uint32_t state = 1;
    made.Curve(
        gpu, "power_w", "W",
        [&](int at) {
          state = state * 1664525 + 1013904223;
          return at == 1234 ? 9e3 : 300 + (state >> 16) % 1000 * 0.1;
        },
        4000);
  }
  const uint64_t most = PageTemplate().size() + 60'000;
  const auto page = RenderHtml(made.run, made.report, {}, most);
  ASSERT_TRUE(page.ok()) << page.error().Message();
  EXPECT_LE(page->size(), most);
  const json payload = Payload(made, {}, {.curve_buckets = 50});
  EXPECT_EQ(payload["curves"][0]["exact"], false);
  const std::vector<double> v = Values(payload["curves"][0]["v"], payload["curves"][0]["scale"]);
  EXPECT_LE(v.size(), 200U);
  EXPECT_NEAR(*std::max_element(v.begin(), v.end()), 9e3, 1);
  EXPECT_NE(payload["thinning"]["en"].get<std::string>().find("M4"), std::string::npos);
  EXPECT_FALSE(RenderHtml(made.run, made.report, {}, PageTemplate().size() + 100).ok());
}

TEST(PagePayload, TakesTenThousandRanks) {
  MadeRun made(10);
  for (int rank = 0; rank < 10'000; ++rank) {
    made.Steps(rank, 3, 1, [&](int) { return rank == 77 ? 2.0 : 1.0; }, {});
  }
  const json payload = Payload(made);
  EXPECT_EQ(payload["ranks"].size(), 10'000U);
  EXPECT_EQ(payload["slowest"]["rank"], json({77, 77, 77}));
}

TEST(StepFor, IsFineEnoughAndNeverFinerThanTheResolution) {
  const std::vector<double> values = {0.1, 0.2, 700};
  EXPECT_LE(StepFor(values, 0, 1e3).value(), 0.1);
  EXPECT_EQ(StepFor(values, 5, 1e3).value(), 5);
  EXPECT_EQ(StepFor(std::vector<double>{71.5, 71.5}, 0.001, 1e3).value(), 71.5);
  EXPECT_EQ(StepFor(std::vector<double>{kNan, 0}, 0, 1e3).value(), 1);
  EXPECT_FALSE(StepFor(std::vector<double>{1e300, 1, 1, 1}, 0, 1e3).has_value());
}

}  // namespace
}  // namespace epochmeter::render
