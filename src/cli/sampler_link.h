// SPDX-License-Identifier: Apache-2.0
// The recorder's side of the sampler process: starts it, takes its records, kills it when it hangs,
// starts it again when it died. While it is gone its series say so.
#pragma once

#include <memory>
#include <string>

#include "cli/run_settings.h"
#include "model/registry.h"

namespace epochmeter::cli {

// To the sampler, as kSampleNow of messages.h: the last reading of the run, whatever it costs.
inline constexpr char kSampleLast = 'L';

class SamplerLink {
 public:
  // Borrows registry and sink. Nothing is started yet.
  static std::unique_ptr<SamplerLink> Make(model::Registry& registry, model::Sink& sink,
                                           const RunSettings& settings);
  virtual ~SamplerLink() = default;

  // Starts it for a training; at once.
  virtual void Start(int32_t training_pid) = 0;
  // -1 while there is none.
  virtual int fd() const = 0;
  // When Maintain must be called at the latest.
  virtual int64_t NextDueNs() const = 0;
  // Takes what came, notices death and silence, restarts when it is time.
  virtual void Maintain(int64_t now_ns) = 0;
  virtual void SampleNow() = 0;
  // A GPU that the training says it uses, by UUID or bus id; kept for the next sampler as well.
  virtual void NameGpu(const std::string& name) = 0;
  // A last sample, waited for at most 300 ms, then the process is ended.
  virtual void Stop() = 0;
};

}  // namespace epochmeter::cli
