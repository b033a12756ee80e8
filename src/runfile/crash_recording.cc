// SPDX-License-Identifier: Apache-2.0
#include "runfile/crash_recording.h"

#include <algorithm>
#include <cstdlib>

namespace epochmeter::runfile {
namespace {

bool IsTick(const model::Record& record) { return std::holds_alternative<model::Samples>(record); }

}  // namespace

int SoakFactor() {
  const char* factor = std::getenv("EPOCHMETER_SOAK");
  return factor == nullptr ? 1 : std::max(1, std::atoi(factor));
}

RunWriter::Options OptionsFor(MemoryFileSystem& files, uint32_t ticks_per_seal) {
  RunWriter::Options options;
  options.file_system = &files;
  options.ticks_per_seal = ticks_per_seal;
  return options;
}

Recording::Recording(uint64_t seed, int ticks, int ticks_per_flush)
    : records_(MakeRun(seed, ticks, 3)) {
  int tick = 0;
  for (size_t i = 0; i < records_.size(); ++i) {
    if (IsTick(records_[i]) && tick++ % ticks_per_flush == 0) flushes_.push_back(i);
  }
  flushes_.push_back(records_.size());
}

const std::string& Recording::Expected(size_t count) {
  std::string& text = expected_[count];
  if (text.empty() && count > 0) {
    text = Fingerprint(BuildRun({records_.begin(), records_.begin() + static_cast<long>(count)}));
  }
  return text;
}

int Recording::TicksBetween(size_t from, size_t to) const {
  return static_cast<int>(std::count_if(records_.begin() + static_cast<long>(from),
                                        records_.begin() + static_cast<long>(to), IsTick));
}

std::optional<int> Recording::TicksLost(const model::Run& run) {
  const std::string text = Fingerprint(run);
  if (text == Expected(written_)) return 0;
  if (text == Expected(acknowledged_)) return TicksBetween(acknowledged_, written_);
  for (const size_t flush : flushes_) {
    if (flush <= acknowledged_ || flush >= written_ || text != Expected(flush)) continue;
    return TicksBetween(flush, written_);
  }
  return {};
}

void Recording::WriteAll(RunWriter& writer) {
  for (const size_t flush : flushes_) {
    for (; written_ < flush; ++written_) writer.Write(records_[written_]);
    if (writer.Flush().ok()) acknowledged_ = written_;
    if (after_flush) after_flush();
  }
}

bool OnlyTorn(const model::Run& run) {
  return std::all_of(run.losses.begin(), run.losses.end(), [](const model::Loss& loss) {
    return !loss.kind.starts_with("file.") || loss.severity == model::LossSeverity::kInfo;
  });
}

size_t CountLosses(const std::vector<model::Loss>& losses, std::string_view kind) {
  return static_cast<size_t>(std::count_if(losses.begin(), losses.end(),
                                           [&](const auto& loss) { return loss.kind == kind; }));
}

}  // namespace epochmeter::runfile
