// SPDX-License-Identifier: Apache-2.0
// Whether the printed time for data is part of the printed step time, or comes on top: decided by
// the times of the lines, else not at all. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "ingest/log/step_timer.h"
#include "model/message.h"

namespace epochmeter::ingest::log {

enum class DataPlace : uint8_t { kUnknown, kInside, kBeside };
std::string_view DataPlaceName(DataPlace place);  // "inside"

class DataPlaceJudge {
 public:
  void Add(const IndexedRecord& record, const StepTiming& timing);
  // Something else took time here: an evaluation.
  void Break(uint32_t stream) {
    if (!open_.empty()) open_.erase(stream);
  }
  struct Verdict {
    DataPlace place = DataPlace::kUnknown;
    model::Message why;
  };
  Verdict Judge() const;

 private:
  // Records in a row, until their data time stands out of times that are whole seconds.
  struct Stretch {
    double wall_s = 0, step_s = 0, data_s = 0;
  };
  static constexpr double kTellingDataSeconds = 3;
  static constexpr size_t kMostStretches = 4096;
  std::map<uint32_t, Stretch> open_;  // by stream
  std::vector<double> beside_ratio_;  // (wall - step) / data of each stretch
  double step_sum_s_ = 0, data_sum_s_ = 0;
  bool steps_known_ = false, times_known_ = false;
};

}  // namespace epochmeter::ingest::log
