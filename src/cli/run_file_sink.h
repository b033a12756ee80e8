// SPDX-License-Identifier: Apache-2.0
// Records of a finished run on their way into a run file. One thread.
#pragma once

#include <cstdint>
#include <utility>
#include <variant>

#include "base/result.h"
#include "model/sink.h"
#include "runfile/run_writer.h"

namespace epochmeter::cli {

// Flushes now and then, so that memory stays bounded; holds the end back, because it is what
// finishes the file.
class RunFileSink : public model::Sink {
 public:
  // Borrows the writer.
  explicit RunFileSink(runfile::RunWriter& writer) : writer_(writer) {}

  void Write(const model::Record& record) override {
    if (const auto* end = std::get_if<model::RunEnd>(&record)) {
      end_ = *end;
      return;
    }
    writer_.Write(record);
    if (++count_ % kFlushEvery == 0 && result_.ok()) result_ = writer_.Flush();
  }

  // The first error of any flush, too.
  base::Result<> Finish() {
    EPM_TRY(std::move(result_));
    return writer_.Finish(end_);
  }

 private:
  static constexpr uint64_t kFlushEvery = 20'000;
  runfile::RunWriter& writer_;
  model::RunEnd end_{.t_ns = 0, .reason = "lost", .exit_code = {}, .signal = {}};
  uint64_t count_ = 0;
  base::Result<> result_;
};

}  // namespace epochmeter::cli
