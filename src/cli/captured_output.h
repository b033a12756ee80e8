// SPDX-License-Identifier: Apache-2.0
// The recorder's side of the training's output: takes the relay's copies, keeps them as text, and
// looks for epochs and steps in them. The recorder's thread; nothing here waits.
#pragma once

#include <memory>
#include <optional>

#include "cli/log_capture.h"
#include "cli/output_progress.h"
#include "model/env.h"
#include "model/registry.h"
#include "model/sink.h"

namespace epochmeter::cli {

class CapturedOutput {
 public:
  struct Options {
    int fd = -1;           // the relay's copies; -1: none
    bool progress = true;  // look for epochs and steps
    bool resumed = false;  // a recorder was there before
  };
  // Borrows all.
  CapturedOutput(model::Registry& registry, model::Sink& sink, const model::Env& env,
                 const Options& options);

  // Where client events go: to the sink, and we learn that a client tells epochs or steps.
  model::Sink& client_sink() { return client_sink_; }
  // Readable while copies wait; -1 when nobody sends any more.
  int fd() const { return fd_; }
  // Takes what waits, up to so much that the recorder's clock is looked at again.
  void Take();
  int64_t NextDueNs() const;
  void Maintain(int64_t now_ns);
  // The run's end, with what is pending.
  void Finish(const model::RunEnd& end, int64_t now_ns);

 private:
  class ClientSink : public model::Sink {
   public:
    ClientSink(model::Sink& sink, CapturedOutput& output) : sink_(sink), output_(output) {}
    void Write(const model::Record& record) override;

   private:
    model::Sink& sink_;
    CapturedOutput& output_;
  };

  ClientSink client_sink_;
  int fd_;
  LogCapture text_;
  std::optional<OutputProgress> progress_;
};

}  // namespace epochmeter::cli
