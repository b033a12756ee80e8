// SPDX-License-Identifier: Apache-2.0
// Epochs and steps from the captured output, for a training that tells none itself: the log engine
// reads what is printed, whole and as it comes.
//
// A client goes first. What the output says is held back until the client has had its time, and
// once it tells epochs or steps the output is read no more; what was written by then the reader of
// the run leaves out (model/output_events.h). Reading takes a tenth of a core at most; beyond,
// output is skipped and counted. The recorder's thread; nothing here waits.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "cli/line_arrivals.h"
#include "cli/messages.h"
#include "cli/output_steps.h"
#include "ingest/log/engine.h"
#include "model/env.h"
#include "model/registry.h"
#include "model/sink.h"

namespace epochmeter::cli {

class OutputProgress {
 public:
  static constexpr double kMostCpuRatio = 0.1;
  static constexpr int64_t kBurstCpuNs = base::kNsPerSecond / 2;
  // After the first thing read: so long a client may still tell it, too.
  static constexpr int64_t kHoldNs = 2 * base::kNsPerSecond;
  // Without output: what is likely counts as decided.
  static constexpr int64_t kIdleNs = base::kNsPerSecond / 5;

  // Borrows all. `resumed`: a recorder before this one may have told the training's begin.
  OutputProgress(model::Registry& registry, model::Sink& sink, const model::Env& env, bool resumed);

  void Take(const CaptureHeader& header, std::string_view bytes);
  // A client told epochs or steps.
  void LeaveToClient();
  int64_t NextDueNs() const;
  void Maintain(int64_t now_ns);
  // The end of the output; `well` as OutputSteps::Finish.
  void Finish(bool well, int64_t now_ns);

 private:
  // Holds records back, then passes them on, or throws them away.
  class Gate : public model::Sink {
   public:
    explicit Gate(model::Sink& sink) : sink_(sink) {}
    void Write(const model::Record& record) override;
    void Open();
    void Shut();
    bool holds() const { return holding_ && !held_.empty(); }

   private:
    static constexpr size_t kMostHeld = 16'384;
    model::Sink& sink_;
    bool holding_ = true, shut_ = false;
    std::vector<model::Record> held_;
  };
  struct Stream {
    std::optional<uint32_t> file;  // of the engine, once there is output
    std::string begun;             // of a line whose end has not come
    bool skipping = false;         // up to the next line end: something before it is missing
    LineArrivals arrivals;
  };

  bool MayRead(int64_t t_ns);
  void Read(int64_t t_ns, std::string_view bytes, Stream* stream);
  void Feed(int64_t t_ns, std::string_view bytes, Stream* stream);
  void Skip(std::string_view bytes, Stream* stream);
  void OpenGate();
  void TellSkipped(int64_t t_ns);

  model::Sink& sink_;
  const model::Env& env_;
  Gate gate_;
  OutputSteps steps_;
  std::unique_ptr<ingest::log::LogEngine> engine_;  // null once a client tells
  std::array<Stream, 3> streams_;                   // stdout, stderr, both in one
  std::vector<const Stream*> by_file_;
  int64_t idle_at_ns_ = std::numeric_limits<int64_t>::max();
  int64_t open_at_ns_ = std::numeric_limits<int64_t>::max();
  int64_t cpu_left_ns_ = kBurstCpuNs, last_ns_ = 0;
  uint64_t skipped_bytes_ = 0;
  int64_t told_ns_ = 0;
};

}  // namespace epochmeter::cli
