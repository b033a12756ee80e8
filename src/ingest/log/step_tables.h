// SPDX-License-Identifier: Apache-2.0
// The table of the steps of a very long log: filled fast, and made shorter. One thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/run.h"

namespace epochmeter::ingest::log {

// Joins each two neighbours into one row that stands for the steps of both: durations, waits and
// counts are added up, all else is of the later one; a loss that is not finite stays.
void JoinNeighbours(model::StepTable* table);

// Columns whose names are the same in every log.
enum class StepColumn : uint8_t {
  kLine,
  kFile,
  kStepInEpoch,
  kBatchSize,
  kLoss,
  kLearningRate,
  kThroughput,
  kPid,
  kSteps,
  kDuration,
  kDataWait,
  kEpochTime,
  kEndsEpoch
};
inline constexpr size_t kStepColumnCount = 13;
std::string_view StepColumnName(StepColumn column);  // "scalar.loss"

// Appends steps to one table and remembers where its columns are. What model::StepTable::Add does
// with the same numbers, but that a column is as long as the table only behind Level.
class StepAppender {
 public:
  // The next step; the table stays where it is.
  void Begin(model::StepTable* table, int64_t t_ns, std::optional<int64_t> epoch,
             std::optional<int64_t> step);
  // Of two numbers of a step with one name the first counts.
  void Add(StepColumn column, double number);
  void AddScalar(std::string_view key, double number);  // "scalar." + key
  static void Level(model::StepTable* table);

 private:
  using Columns = std::map<std::string, std::vector<double>, std::less<>>;
  static constexpr size_t kSlots = 64;

  void Append(std::vector<double>* column, double number) const;

  model::StepTable* table_ = nullptr;
  std::array<std::vector<double>*, kStepColumnCount> known_{};
  std::vector<Columns::value_type*> scalars_;  // by a hash of where the key is; may be any other
};

}  // namespace epochmeter::ingest::log
