// SPDX-License-Identifier: Apache-2.0
#include "collect/rank_env.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

namespace epochmeter::collect {
namespace {

std::optional<int32_t> AsNumber(const nlohmann::json& value) {
  return value.is_null() ? std::nullopt : std::optional(value.get<int32_t>());
}

TEST(RankOfEnviron, GivesWhatTheSharedVectorsSay) {
  const char* root = std::getenv("EPOCHMETER_SOURCE_DIR");
  std::ifstream file(std::string(root != nullptr ? root : ".") + "/tests/vectors/ranks.json");
  const nlohmann::json vectors = nlohmann::json::parse(file);
  ASSERT_GT(vectors.size(), 30U);
  for (const nlohmann::json& vector : vectors) {
    std::string text = "PATH=/bin";
    text += '\0';
    for (const auto& [name, value] : vector["environment"].items()) {
      text += name + "=" + value.get<std::string>();
      text += '\0';
    }
    const auto facts = RankOfEnviron(text);
    const std::string name = vector["name"].get<std::string>();
    ASSERT_EQ(facts.has_value(), !vector["rank"].is_null()) << name;
    if (!facts) continue;
    EXPECT_EQ(facts->rank, vector["rank"].get<int32_t>()) << name;
    EXPECT_EQ(facts->local_rank, AsNumber(vector["local_rank"])) << name;
    EXPECT_EQ(facts->world, AsNumber(vector["world"])) << name;
    EXPECT_EQ(facts->source, vector["source"].get<std::string>()) << name;
  }
}

TEST(RankOfEnviron, SurvivesEveryCutOfATaskDescription) {
  const std::string text =
      R"(TF_CONFIG={"cluster":{"worker":["a","b"]},"task":{"type":"worker","index":1}})";
  EXPECT_TRUE(RankOfEnviron(text));
  for (size_t size = 0; size < text.size(); ++size) {
    EXPECT_FALSE(RankOfEnviron(text.substr(0, size))) << size;
  }
}

TEST(RankOfEnviron, TakesNoIndexWhoseRankIsNoNumberOfItsSize) {
  EXPECT_FALSE(RankOfEnviron(
      R"(TF_CONFIG={"cluster":{"chief":["a"]},"task":{"type":"worker","index":2147483647}})"));
}

}  // namespace
}  // namespace epochmeter::collect
