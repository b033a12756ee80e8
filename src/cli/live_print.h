// SPDX-License-Identifier: Apache-2.0
// `run --print 5s`: watches the records of the run and writes a line per GPU each period and a line
// per finished epoch, on stderr and into a file. Unknown parts are left out.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "model/sink.h"

namespace epochmeter::cli {

class LivePrinter : public model::Sink {
 public:
  // `path` empty: stderr only. With `path`, stderr gets the lines as well.
  static base::Result<std::unique_ptr<LivePrinter>> Make(int64_t period_ns,
                                                         const std::string& path);
  // When Tick wants to be called.
  virtual int64_t NextDueNs() const = 0;
  virtual void Tick(int64_t now_ns) = 0;
};

}  // namespace epochmeter::cli
