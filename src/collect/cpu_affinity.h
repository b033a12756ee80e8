// SPDX-License-Identifier: Apache-2.0
// On which CPUs a training may run, and which it leaves free for us. Any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "model/env.h"

namespace epochmeter::collect {

using CpuSet = std::set<int>;

// "0-3,8" as the kernel writes it; nothing when it is no such list. And back.
std::optional<CpuSet> ParseCpuList(std::string_view text);
std::string FormatCpuList(const CpuSet& cpus);

// Where the threads of the process and of its descendants may run, a bounded number of them. A
// shell that waits for its only child does not count: it runs nowhere. Nothing when the process
// can't be read.
std::optional<CpuSet> TrainingCpus(const model::Env& env, int32_t root_pid);

// The CPUs of `allowed` on which the training never runs. Empty when there is none, and when the
// training is not confined at all.
CpuSet CpusLeftFree(const CpuSet& allowed, const CpuSet& training);

}  // namespace epochmeter::collect
