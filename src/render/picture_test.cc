// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/strings.h"
#include "render/hostile_run.h"
#include "render/run_picture.h"
#include "render/step_rows.h"
#include "render/svg.h"

namespace epochmeter::render {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

size_t Count(const std::string& text, std::string_view part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// Whether tags nest and no markup or forbidden character is left in texts and attributes.
bool IsWellFormed(const std::string& xml) {
  std::vector<std::string> open;
  if (base::ToValidUtf8(xml) != xml) return false;
  for (size_t at = 0; at < xml.size(); ++at) {
    if (static_cast<unsigned char>(xml[at]) < 0x20 && xml[at] != '\n') return false;
    if (xml[at] == '&' && xml.find(';', at) > at + 6) return false;
    if (xml[at] != '<') continue;
    const size_t end = xml.find('>', at);
    if (end == std::string::npos || xml.find('<', at + 1) < end) return false;
    const std::string tag = xml.substr(at + 1, end - at - 1);
    if (tag.front() == '/') {
      if (open.empty() || open.back() != tag.substr(1)) return false;
      open.pop_back();
    } else if (tag.back() != '/') {
      open.push_back(tag.substr(0, tag.find(' ')));
    }
    at = end;
  }
  return open.empty();
}

MadeRun TwoGpus() {
  MadeRun made(100);
  for (const char* gpu : {"0", "1"}) {
    const model::EntityId id = made.Entity(model::Scope::kGpu, gpu, {{"gpu", gpu}});
    made.run.entities[id].attributes = {{"memory_total_bytes", "150000000000"},
                                        {"power_limit_mw", "700000"}};
    made.Curve(
        id, "memory_used_bytes", "By", [](int i) { return 1e9 * i; }, 100);
    made.Curve(
        id, "power_w", "W", [](int i) { return i == 50 ? kNan : 300.0 + i; }, 100);
  }
  made.Steps(
      0, 50, 2, [](int) { return 2.0; }, [](int i) { return i == 9 ? kNan : 5.0 / (i + 1); });
  made.report.epochs.push_back({.rank = 0,
                                .epoch = 3,
                                .begin_ns = kMadeBeginNs + 2'000'000'000,
                                .end_ns = kMadeBeginNs + 99'000'000'000});
  return made;
}

std::string Svg(const MadeRun& made, const std::string& name, const PictureOptions& options = {}) {
  const base::Result<std::string> svg = RenderSvg(made.run, made.report, name, options);
  EXPECT_TRUE(svg.ok()) << svg.error().Message();
  EXPECT_TRUE(IsWellFormed(svg.value())) << svg.value().substr(0, 2000);
  return svg.value();
}

TEST(Picture, TrendHasFourPanelsALegendAndLimits) {
  const std::string svg = Svg(TwoGpus(), "trend");
  EXPECT_EQ(Count(svg, "role=\"group\""), 4U);
  EXPECT_EQ(Count(svg, ">GPU 0<"), 1U);
  EXPECT_EQ(Count(svg, ">GPU 1<"), 1U);
  EXPECT_NE(svg.find(">total 150 GB<"), std::string::npos);
  EXPECT_NE(svg.find(">limit 700 W<"), std::string::npos);
  EXPECT_EQ(Count(svg, ">no samples<"), 2U);
  EXPECT_NE(svg.find("role=\"img\" aria-labelledby=\"epm-title epm-desc\""), std::string::npos);
  EXPECT_NE(svg.find("GPU memory used: 0 – 99 GB"), std::string::npos);
}

TEST(Picture, LeavesAGapWhereAValueIsMissing) {
  const std::string svg = Svg(TwoGpus(), "power");
  const size_t line = svg.find("d=\"M", svg.find("role=\"group\""));
  const std::string path = svg.substr(line, svg.find('"', line + 3) - line);
  EXPECT_EQ(Count(path, "M"), 2U);
}

TEST(Picture, LaysStepsAndEpochsOut) {
  const MadeRun made = TwoGpus();
  EXPECT_NE(Svg(made, "loss", {.x = PictureX::kStep}).find(">50<"), std::string::npos);
  EXPECT_NE(Svg(made, "memory", {.x = PictureX::kEpoch}).find(">4<"), std::string::npos);
  EXPECT_NE(Svg(made, "loss").find(">not finite<"), std::string::npos);
  EXPECT_NE(Svg(made, "gpu.power_w", {.language = Language::kChinese, .dark = true}).find("功率"),
            std::string::npos);
  MadeRun without(10);
  EXPECT_FALSE(RenderSvg(without.run, without.report, "trend", {.x = PictureX::kStep}).ok());
  EXPECT_FALSE(RenderSvg(without.run, without.report, "trend", {.x = PictureX::kEpoch}).ok());
}

TEST(Picture, NamesWhatThereIsWhenTheNameIsWrong) {
  const MadeRun made = TwoGpus();
  const base::Result<std::string> svg = RenderSvg(made.run, made.report, "memroy", {});
  ASSERT_FALSE(svg.ok());
  EXPECT_NE(svg.error().Message().find("did you mean memory"), std::string::npos);
  EXPECT_NE(svg.error().Message().find("gpu.power_w"), std::string::npos);
}

TEST(Picture, BearsHostileRuns) {
  MadeRun made(100, kHostileName);
  const model::EntityId gpu = made.Entity(model::Scope::kGpu, kHostileName, {{"gpu", "x"}});
  made.Curve(
      gpu, "power_w", kHostileName,
      [](int i) { return i % 3 == 0   ? kNan
                         : i % 3 == 1 ? 1.7e308
                                      : -1.7e308; }, 100);
  made.Curve(
      gpu, "temperature_c", "Cel", [](int) { return 40.0; }, 1);
  made.Curve(
      gpu, "utilization_ratio", "1", [](int i) { return i == 0 ? kInf : -kInf; }, 2);
  made.Curve(
      gpu, "memory_used_bytes", "By", [](int) { return 0.0; }, 0);
  made.Steps(
      0, 3, 1, [](int) { return kInf; }, [](int) { return -kInf; });
  for (const std::string& name : PictureNames(made.run, made.report)) {
    const std::string svg = Svg(made, name);
    EXPECT_EQ(svg.find("onerror=alert(1)>"), std::string::npos);
    EXPECT_EQ(svg.find("hunter22"), std::string::npos);
    EXPECT_EQ(svg.find("nan"), std::string::npos);
  }
  const MadeRun nothing(0);
  Svg(nothing, "trend");
}

TEST(Picture, DrawsOnlySoManyLinesAndSaysSo) {
  MadeRun made(10);
  for (int rank = 0; rank < 1000; ++rank) made.Steps(rank, 3, 1, [](int) { return 1.0; }, {});
  EXPECT_NE(Svg(made, "step_time").find("984 more not shown"), std::string::npos);
}

TEST(XmlText, HoldsAnyBytes) {
  EXPECT_EQ(XmlText("a<b>&\"\n"), "a&lt;b&gt;&amp;&quot; ");
  EXPECT_EQ(XmlText(std::string("\0\x1F\xFF\xEF\xBF\xBE", 6)),
            "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
}

TEST(ShownSteps, KeepsTheSpikeAndTheFirstNan) {
  MadeRun made(100'000);
  made.Steps(
      0, 50'000, 1, [](int i) { return i == 33'333 ? 9.0 : 1.0; },
      [](int i) { return i == 44'444 ? kNan : 1.0; });
  const std::vector<size_t> shown = ShownSteps(made.run.steps[model::ProcessKey(0)], 100);
  EXPECT_LE(shown.size(), 1000U);
  EXPECT_TRUE(std::find(shown.begin(), shown.end(), 33'333) != shown.end());
  EXPECT_TRUE(std::find(shown.begin(), shown.end(), 44'444) != shown.end());
  EXPECT_EQ(shown.front(), 0U);
  EXPECT_EQ(shown.back(), 49'999U);
}

TEST(FindSlowest, NamesWhoTookLongestOrWaitedLeast) {
  MadeRun made(100);
  for (int rank = 0; rank < 3; ++rank) {
    made.Steps(rank, 10, 1, [&](int i) { return rank == 1 && i != 4 ? 1.2 : 1.0; }, {});
  }
  std::vector<const model::StepTable*> tables;
  for (auto& [process, table] : made.run.steps) tables.push_back(&table);
  const SlowestSteps slowest = FindSlowest(tables, 100);
  EXPECT_EQ(slowest.table, std::vector<size_t>(9, 1));  // at step 5 none stood out
  size_t rank = 0;
  for (auto& [process, table] : made.run.steps) {
    table.columns["collective_wait_s"] = std::vector<double>(10, rank++ == 2 ? 0.1 : 0.4);
  }
  EXPECT_EQ(FindSlowest(tables, 4).table, std::vector<size_t>(4, 2));
}

}  // namespace
}  // namespace epochmeter::render
