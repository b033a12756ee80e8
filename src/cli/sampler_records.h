// SPDX-License-Identifier: Apache-2.0
// What a sampler sends, as records of the run. A sampler may die in the middle of anything and a
// driver's library may write into its memory, so no byte of it is trusted. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "model/registry.h"
#include "model/sink.h"

namespace epochmeter::cli {

class SamplerRecords {
 public:
  // Borrows both.
  SamplerRecords(model::Registry& registry, model::Sink& sink) : registry_(registry), seen_(sink) {}

  // A new sampler counts its ids from 0 again.
  void Restart() { remap_ = std::make_unique<model::RemapSink>(registry_, seen_); }
  // The records of one packet. False when there is something else among them: it is passed over,
  // and so is what a sampler has no business to tell; one that is cut off ends its packet.
  bool Take(std::string_view packet);
  // Ends the series that had values, with the reason, so that no mean bridges the time without the
  // sampler.
  void TellGone(int64_t t_ns, const std::string& detail) { seen_.TellGone(t_ns, detail); }
  // The latest time of any sample.
  int64_t last_sample_ns() const { return last_sample_ns_; }

 private:
  // Passes records on and notes which series have values, for when the sampler dies.
  class SeenSeries : public model::Sink {
   public:
    explicit SeenSeries(model::Sink& out) : out_(out) {}
    void Write(const model::Record& record) override;
    void TellGone(int64_t t_ns, const std::string& detail);

   private:
    void MarkLive(model::SeriesId id);
    model::Sink& out_;
    std::vector<bool> live_, gone_;
  };

  model::Registry& registry_;
  SeenSeries seen_;
  std::unique_ptr<model::RemapSink> remap_;
  int64_t last_sample_ns_ = 0;
};

}  // namespace epochmeter::cli
