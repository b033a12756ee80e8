// SPDX-License-Identifier: Apache-2.0
// The same stream as lines of JSON, as CSV and as rows of SQLite, as a training script would write
// them: one line or row for each GPU and tick, in the file before the next tick.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "model/record.h"

namespace epochmeter::bench {

class Peer {
 public:
  virtual ~Peer() = default;
  virtual std::string name() const = 0;
  virtual void Append(const model::Samples& samples) = 0;
  virtual void Finish() = 0;
  virtual uint64_t bytes() const = 0;
  // Values of one metric of one GPU; their number.
  virtual size_t ReadOne(size_t gpu, size_t metric) = 0;
  // Sum over the means of all metrics of all GPUs in epochs of `epoch_ns` from `begin_ns` on.
  virtual double EpochMeans(int64_t begin_ns, int64_t epoch_ns) = 0;
};

// `fields` are the names of a GPU's metrics. Files are made in `folder` and removed at the end.
// SQLite only where it was there to build with; in WAL mode without syncs, 8 wide rows in one
// transaction a tick.
std::vector<std::unique_ptr<Peer>> MakePeers(const std::string& folder,
                                             const std::vector<std::string>& fields);

}  // namespace epochmeter::bench
