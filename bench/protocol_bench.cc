// SPDX-License-Identifier: Apache-2.0
// Cost of one event in the recorder, from the datagram's bytes to the records. Must stay below 5
// us.
#include <benchmark/benchmark.h>

#include <string>

#include "ingest/protocol.h"

namespace {

using epochmeter::ingest::ProtocolDecoder;

// Takes records as a writer would, but keeps none.
class CountingSink : public epochmeter::model::Sink {
 public:
  void Write(const epochmeter::model::Record& record) override {
    benchmark::DoNotOptimize(&record);
    ++records_;
  }

 private:
  uint64_t records_ = 0;
};

void Decode(benchmark::State& state, const std::string& tail) {
  CountingSink sink;
  epochmeter::model::Registry registry(sink);
  ProtocolDecoder decoder(registry, sink);
  int64_t seq = 0;
  for (auto _ : state) {
    const std::string number = std::to_string(seq++);
    const std::string datagram = R"({"v":1,"kind":"step","t_ns":85103316491,"pid":4711,"seq":)" +
                                 number + R"(,"dropped":0,"rank":0,"step":)" + number + tail;
    benchmark::DoNotOptimize(decoder.Decode(datagram, 85103316491, 4711));
  }
  if (decoder.refused() > 0) state.SkipWithError("the datagram was refused");
}

void BM_StepEvent(benchmark::State& state) {
  Decode(state, R"(,"epoch":0,"step_in_epoch":1,"duration_s":0.030426,"data_wait_s":0.0001,)"
                R"("batch_size":128,"scalars":{"loss":7.071044921875}})");
}
BENCHMARK(BM_StepEvent);

void BM_StepEventWithMemory(benchmark::State& state) {
  Decode(state, R"(,"epoch":0,"duration_s":0.030426,"batch_size":128,"scalars":{"loss":7.07},)"
                R"("memory":{"device":"gpu:0","framework":"torch","allocated_bytes":420489216,)"
                R"("reserved_bytes":645922816,"max_allocated_bytes":3225435136}})");
}
BENCHMARK(BM_StepEventWithMemory);

}  // namespace
