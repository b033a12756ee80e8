// SPDX-License-Identifier: Apache-2.0
// Empties the client socket on a thread of its own: the kernel keeps few datagrams (often 10), and
// a sender that finds no room drops its event.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/messages.h"

namespace epochmeter::cli {

struct Datagram {
  int32_t pid = 0;  // of the sender as this process sees it; 0 when not known
  std::string bytes;
};

class EventReceiver {
 public:
  // Borrows the socket, and `words` (may be null) to count in. The thread ends with the object.
  static base::Result<std::unique_ptr<EventReceiver>> Start(int socket_fd,
                                                            RecorderWords* words = nullptr);
  virtual ~EventReceiver() = default;
  // Readable while datagrams wait.
  virtual int wake_fd() const = 0;
  // Takes what came, in order; `dropped` grows by what did not fit into 16 MiB.
  virtual std::vector<Datagram> Take(uint64_t* dropped) = 0;
  // As Take, after reading what is still in the socket, until it is empty or `until_ns`. For the
  // end of the run.
  virtual std::vector<Datagram> Drain(int64_t until_ns, uint64_t* dropped) = 0;
};

}  // namespace epochmeter::cli
