// SPDX-License-Identifier: Apache-2.0
#include "collect/rank_env.h"

#include <array>
#include <nlohmann/json.hpp>
#include <string>

#include "base/strings.h"
#include "collect/proc_pid.h"

namespace epochmeter::collect {

namespace {

using Names = std::array<std::string_view, 2>;
struct Launcher {
  std::string_view source;
  Names rank, local, world;
};
constexpr std::string_view kTfConfig = "tf_config";
// The first launcher whose rank is a number wins. Slurm is near the end: under torchrun its
// SLURM_PROCID counts nodes.
constexpr std::array<Launcher, 11> kLaunchers = {{
    {"paddle",
     {"PADDLE_TRAINER_ID", "PADDLE_GLOBAL_RANK"},
     {"PADDLE_LOCAL_RANK", "PADDLE_RANK_IN_NODE"},
     {"PADDLE_TRAINERS_NUM", "PADDLE_GLOBAL_SIZE"}},
    {"torchrun", {"RANK"}, {"LOCAL_RANK"}, {"WORLD_SIZE"}},
    {"horovod", {"HOROVOD_RANK"}, {"HOROVOD_LOCAL_RANK"}, {"HOROVOD_SIZE"}},
    {"openmpi", {"OMPI_COMM_WORLD_RANK"}, {"OMPI_COMM_WORLD_LOCAL_RANK"}, {"OMPI_COMM_WORLD_SIZE"}},
    {"mvapich", {"MV2_COMM_WORLD_RANK"}, {"MV2_COMM_WORLD_LOCAL_RANK"}, {"MV2_COMM_WORLD_SIZE"}},
    {"pmi", {"PMI_RANK"}, {"MPI_LOCALRANKID"}, {"PMI_SIZE"}},
    {"pmix", {"PMIX_RANK"}, {}, {}},
    {"lsf", {"JSM_NAMESPACE_RANK"}, {"JSM_NAMESPACE_LOCAL_RANK"}, {"JSM_NAMESPACE_SIZE"}},
    {kTfConfig, {}, {}, {}},
    {"slurm", {"SLURM_PROCID"}, {"SLURM_LOCALID"}, {"SLURM_NTASKS"}},
    {"kubernetes", {"JOB_COMPLETION_INDEX"}, {}, {}},
}};

std::optional<int32_t> Number(std::string_view text, uint64_t least) {
  const auto value = base::ParseUint(base::Trim(text));
  if (!value || *value < least || *value > INT32_MAX) return std::nullopt;
  return static_cast<int32_t>(*value);
}

std::optional<int32_t> NumberOf(std::string_view environ_text, const Names& names, uint64_t least) {
  for (const std::string_view name : names) {
    if (name.empty()) break;
    const auto text = EnvironValue(environ_text, name);
    const auto number = text ? Number(*text, least) : std::nullopt;
    if (number) return number;
  }
  return std::nullopt;
}

int32_t MembersOf(const nlohmann::json& config, const char* job) {
  if (!config.contains("cluster") || !config["cluster"].is_object()) return 0;
  const nlohmann::json& cluster = config["cluster"];
  if (!cluster.contains(job) || !cluster[job].is_structured()) return 0;
  return static_cast<int32_t>(cluster[job].size());
}

// TensorFlow's TF_CONFIG: the chief is rank 0, workers follow; the others have no rank.
std::optional<RankFacts> RankOfTfConfig(std::string_view text) {
  const nlohmann::json config = nlohmann::json::parse(text, nullptr, false);
  if (!config.is_object() || !config.contains("task")) return std::nullopt;
  const nlohmann::json& task = config["task"];
  if (!task.is_object() || !task.contains("type") || !task.contains("index")) return std::nullopt;
  if (!task["type"].is_string()) return std::nullopt;
  const std::string job = task["type"].get<std::string>();
  const nlohmann::json& place = task["index"];
  const auto index = place.is_string()            ? Number(place.get<std::string>(), 0)
                     : place.is_number_unsigned() ? Number(place.dump(), 0)
                                                  : std::nullopt;
  if (!index || (job != "chief" && job != "master" && job != "worker")) return std::nullopt;
  const int32_t chiefs = MembersOf(config, "chief") + MembersOf(config, "master");
  const int32_t world = chiefs + MembersOf(config, "worker");
  const int64_t rank = job == "worker" ? int64_t{chiefs} + *index : *index;
  if (rank > INT32_MAX) return std::nullopt;
  RankFacts facts{
      .rank = static_cast<int32_t>(rank), .local_rank = {}, .world = {}, .source = kTfConfig};
  if (world > 0) facts.world = world;
  return facts;
}

}  // namespace

std::optional<RankFacts> RankOfEnviron(std::string_view environ_text) {
  for (size_t order = 0; order < kLaunchers.size(); ++order) {
    const Launcher& launcher = kLaunchers[order];
    std::optional<RankFacts> facts;
    if (launcher.source == kTfConfig) {
      const auto text = EnvironValue(environ_text, "TF_CONFIG");
      if (text) facts = RankOfTfConfig(*text);
    } else if (const auto rank = NumberOf(environ_text, launcher.rank, 0)) {
      facts = RankFacts{.rank = *rank,
                        .local_rank = NumberOf(environ_text, launcher.local, 0),
                        .world = NumberOf(environ_text, launcher.world, 1),
                        .source = launcher.source};
    }
    if (!facts) continue;
    facts->order = order;
    return facts;
  }
  return std::nullopt;
}

}  // namespace epochmeter::collect
