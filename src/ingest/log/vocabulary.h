// SPDX-License-Identifier: Apache-2.0
// What the names in training logs mean. Pure; any thread. Runs once for every new kind of line.
#pragma once

#include <string>
#include <string_view>

#include "ingest/log/log_record.h"

namespace epochmeter::ingest::log {

// Of a printed name: "avg_batch_cost" is the average of a step time, "val_loss" of an evaluation.
struct KeyMeaning {
  Role role = Role::kOther;
  bool eval = false;     // speaks of an evaluation
  bool train = false;    // says that it speaks of training
  bool average = false;  // over an epoch or a window
};
KeyMeaning MeaningOf(std::string_view key);
bool IsTime(Role role);  // in seconds

// Lower case, words joined by '_', without quotes and brackets: "Learning Rate" is "learning_rate".
std::string NormalKey(std::string_view key);

// A word that says what kind of line this is. `word` is in lower case.
enum class LineWord : uint8_t { kNone, kTrain, kEval, kInference, kSummary, kEpoch };
LineWord LineWordOf(std::string_view word);

}  // namespace epochmeter::ingest::log
