// SPDX-License-Identifier: Apache-2.0
// The sentences of incidents.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/event.h"
#include "model/message.h"

namespace epochmeter::diagnose {

inline constexpr std::string_view kOomKill = "oom_kill";  // the event of a process

// What an event of the kernel, the driver or the recorder says. Words of the driver stay as they
// are; `zh` is empty where nothing of ours can be said around them.
model::Message IncidentWords(const model::Event& event);

// One of our processes that was away: "sampler", "relay" or "recorder", for how long (nothing: it
// never came back), how often it ended, and why, each reason once.
model::Message AbsenceWords(std::string_view helper, std::optional<double> away_s, int64_t ends,
                            const std::vector<std::string>& reasons);

// Whether the name is one of those that AbsenceWords knows.
bool IsHelper(std::string_view name);

}  // namespace epochmeter::diagnose
