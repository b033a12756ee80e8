// SPDX-License-Identifier: Apache-2.0
// What the recorder reads from its helper processes.
//
// sampler: whatever a sampler sends, and however often it is started again, the records that go on
// define every id they name, and no id grows beyond the definitions that came.
// capture: text that is kept and bytes that are told as lost are what came; what a helper prints is
// told once and within its limit.
#include <unistd.h>

#include <string>

#include "base/check.h"
#include "cli/helper_output.h"
#include "cli/log_capture.h"
#include "cli/sampler_channel.h"
#include "cli/sampler_records.h"
#include "fuzz/input.h"
#include "fuzz/output.h"
#include "fuzz/target.h"
#include "model/run_builder.h"

namespace epochmeter::fuzz {
namespace {

// Of every record that a run keeps.
class DefinedIdsSink : public model::Sink {
 public:
  void Write(const model::Record& record) override {
    builder_.Write(record);
    if (const auto* entity = std::get_if<model::EntityDef>(&record)) {
      EPM_CHECK(entity->id <= entities_) << "ids have a hole";
      if (entity->id == entities_) ++entities_;
    } else if (const auto* series = std::get_if<model::SeriesDef>(&record)) {
      EPM_CHECK(series->entity < entities_ && series->id <= series_);
      if (series->id == series_) ++series_;
    } else if (const auto* state = std::get_if<model::SeriesState>(&record)) {
      EPM_CHECK(state->series < series_) << "a state of an undefined series";
    } else if (const auto* samples = std::get_if<model::Samples>(&record)) {
      for (const auto& value : samples->values) EPM_CHECK(value.series < series_);
    }
  }
  model::Run Finish() { return builder_.Finish(); }

 private:
  model::RunBuilder builder_;
  uint32_t entities_ = 0, series_ = 0;
};

// Taken back from what a helper writes to its descriptors.
void CheckHelperOutput(std::string_view text) {
  cli::HelperOutput output;
  const int fd = output.Make();
  EPM_CHECK(fd >= 0);
  [[maybe_unused]] const ssize_t n = ::write(fd, text.data(), text.size());
  output.Started(0);
  const std::string told = output.Take(cli::HelperOutput::kGatherNs, false);
  EPM_CHECK(told.size() <= cli::HelperOutput::kMostBytes);
  EPM_CHECK(told.empty() || output.Take(2 * cli::HelperOutput::kGatherNs, false).empty());
}

}  // namespace

void FeedSampler(std::string_view bytes) {
  Input in(bytes);
  DefinedIdsSink sink;
  model::Registry registry(sink);
  cli::SamplerRecords records(registry, sink);
  records.Restart();
  for (int64_t t_ns = 0; !in.done(); ++t_ns) {
    const uint8_t what = in.Byte();
    if (what == 255) {
      records.TellGone(t_ns, "the sampler process ended");
      records.Restart();
    }
    const std::string_view packet = in.Take(in.Number(2));
    (void)cli::OpenPacket(packet);
    (void)records.Take(packet);
  }
  CheckStore(sink.Finish());
}

void FeedCapture(std::string_view bytes) {
  Input in(bytes);
  model::MemorySink sink;
  cli::LogCapture capture(sink);
  uint64_t given = 0;
  while (!in.done()) {
    const std::string_view packet = in.Take(in.Number(2));
    if (packet.size() >= sizeof(cli::CaptureHeader)) {
      given += packet.size() - sizeof(cli::CaptureHeader);
    }
    capture.TakePacket(packet);
  }
  capture.Finish(0);
  uint64_t kept = 0;
  for (const model::Record& record : sink.records) {
    if (const auto* text = std::get_if<model::LogText>(&record)) kept += text->text.size();
    const auto* loss = std::get_if<model::Loss>(&record);
    if (loss != nullptr && loss->kind == "log.thinned") kept += loss->count;
  }
  EPM_CHECK(kept == given) << kept << " of " << given << " bytes";
  CheckHelperOutput(bytes);
}

}  // namespace epochmeter::fuzz
