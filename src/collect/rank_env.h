// SPDX-License-Identifier: Apache-2.0
// Which rank a process is, from what its launcher put into its environment. The same table as the
// Python client's: tests/vectors/ranks.json holds both to it. Any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace epochmeter::collect {

struct RankFacts {
  int32_t rank = 0;
  std::optional<int32_t> local_rank;
  std::optional<int32_t> world;
  std::string_view source;  // the launcher: "torchrun"
  // The place of `source` in the table: a lower one goes before a higher one.
  size_t order = 0;
};

// `environ_text` is the text of /proc/PID/environ. Nothing when no launcher set a rank; values that
// are no numbers are as good as unset.
std::optional<RankFacts> RankOfEnviron(std::string_view environ_text);

}  // namespace epochmeter::collect
