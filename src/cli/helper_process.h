// SPDX-License-Identifier: Apache-2.0
// What the launcher's helper processes have in common: what they keep of what it has.
#pragma once

#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace epochmeter::cli {

// A connected pair of type SOCK_SEQPACKET.
struct SocketPair {
  base::UniqueFd ours, theirs;
};
base::Result<SocketPair> MakeSocketPair();

// Opens /dev/null on each of 0, 1, 2 that is closed, so that no descriptor of ours takes its place.
// They close again when the training is started (O_CLOEXEC), which also tells them apart.
void FillStandardDescriptors();
// In a helper: closes every descriptor above 2 but those in `keep`, so that a helper that hangs in
// a driver or disk call holds no pipe or lock of the caller.
void CloseAllBut(const std::vector<int>& keep);
// Puts /dev/null on `fd`.
void PointToNull(int fd);
// What a helper becomes after its fork: named so, deaf to the signals of the job, without a core
// file of its own, and set going again by the launcher's death should it stand still then.
void BecomeHelper(const char* name, const std::vector<int>& keep);
// Ends this process by SIGALRM in so many seconds, whatever it then waits for.
void DieWithin(unsigned seconds);
// Shows `name` in place of the command line, which names the training.
void HideCommandLine(const char* name);

}  // namespace epochmeter::cli
