// SPDX-License-Identifier: Apache-2.0
// The bell beside the event socket: an empty datagram to it says that an event should be looked at
// now, and not when the receiver comes by (see EventPace). Its address is abstract, a zero byte and
// the path of the event socket: it leaves no file, and ends with its process.
#pragma once

#include "base/unique_fd.h"

namespace epochmeter::cli {

// The bell of the bound socket `socket_fd`. Invalid where there can't be one: a socket without a
// path, or a bell of another process under that name. Anybody on the host can ring it; that is
// worth a look at an empty socket, and no more.
base::UniqueFd BindEventBell(int socket_fd);

// Forgets all that rang so far.
void QuietEventBell(int bell_fd);

}  // namespace epochmeter::cli
