// SPDX-License-Identifier: Apache-2.0
#include "ingest/log/units.h"

#include <gtest/gtest.h>

namespace epochmeter::ingest::log {
namespace {

void Check(std::string_view unit, Dimension dimension, double factor, Counted counted,
           UnitContext context = UnitContext::kAny) {
  const UnitMeaning meaning = UnitOf(unit, context);
  EXPECT_EQ(meaning.dimension, dimension) << unit;
  EXPECT_DOUBLE_EQ(meaning.factor, factor) << unit;
  EXPECT_EQ(meaning.counted, counted) << unit;
}

TEST(Units, TimesOfOneStepAndTimesAlone) {
  Check("ms", Dimension::kSeconds, 1e-3, Counted::kNothing);
  Check("secs", Dimension::kSeconds, 1, Counted::kNothing);
  Check("min", Dimension::kSeconds, 60, Counted::kNothing);
  Check("ms/step", Dimension::kSecondsPer, 1e-3, Counted::kSteps);
  Check("s/it", Dimension::kSecondsPer, 1, Counted::kSteps);
  Check("us/step", Dimension::kSecondsPer, 1e-6, Counted::kSteps);
}

TEST(Units, RatesSayWhatTheyCount) {
  Check("it/s", Dimension::kPerSecond, 1, Counted::kSteps);
  Check("images/s", Dimension::kPerSecond, 1, Counted::kSamples);
  Check("ins/s", Dimension::kPerSecond, 1, Counted::kSamples);
  Check("instance/sec.", Dimension::kPerSecond, 1, Counted::kSamples);
  Check("tok/s", Dimension::kPerSecond, 1, Counted::kTokens);
  Check("tps", Dimension::kPerSecond, 1, Counted::kTokens);
  Check("samples/min", Dimension::kPerSecond, 1.0 / 60, Counted::kSamples);
  Check("TFLOP/s/device", Dimension::kPerSecond, 1e12, Counted::kFlops);
  Check("MB/s", Dimension::kPerSecond, 1e6, Counted::kBytes);
  Check("widgets/s", Dimension::kPerSecond, 1, Counted::kOther);
  EXPECT_TRUE(UnitOf("Tokens/s/device").per_device);
  EXPECT_FALSE(UnitOf("tokens/s").per_device);
}

TEST(Units, MemoryIsBinaryWhateverTheToolCallsIt) {
  constexpr double kMi = 1048576;
  for (const char* unit : {"M", "MB", "Mb", "MiB"}) {
    Check(unit, Dimension::kBytes, kMi, Counted::kBytes, UnitContext::kMemory);
  }
  Check("G", Dimension::kBytes, 1024 * kMi, Counted::kBytes, UnitContext::kMemory);
  Check("MB", Dimension::kBytes, 1e6, Counted::kBytes);  // of a download, say
  Check("GiB", Dimension::kBytes, 1024 * kMi, Counted::kBytes);
  EXPECT_EQ(UnitOf("M").dimension, Dimension::kCount);
}

TEST(Units, WordsThatAreNoUnitsMeanNothing) {
  for (const char* unit : {"", "min/max", "in", "x", "loss", "a/b/c", "m/s2"}) {
    EXPECT_EQ(UnitOf(unit).dimension, Dimension::kNone) << unit;
  }
  Check("%", Dimension::kRatio, 0.01, Counted::kNothing);
}

}  // namespace
}  // namespace epochmeter::ingest::log
