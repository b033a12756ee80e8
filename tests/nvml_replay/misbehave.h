// SPDX-License-Identifier: Apache-2.0
// What a broken driver's library does to the process that loaded it.
#pragma once

#include <string>
#include <string_view>

namespace nvml_replay {

// "segv", "abort", "exit" (code 3) or "double_free". False when it is none of these.
bool IsDeath(std::string_view how);
// Ends the process so.
void Die(std::string_view how);

// Sends `packets` packets of text and noise over every packet socket of the process: a library that
// writes its log to a descriptor which isn't its own any more.
void SendGarbage(int packets);

}  // namespace nvml_replay
