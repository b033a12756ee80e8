// SPDX-License-Identifier: Apache-2.0
// Everything that is recorded goes through here: to the file, and to the live lines when wanted.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/sink.h"

namespace epochmeter::cli {

// The end of an epoch, told once where several ranks tell it.
bool IsEpochOfFirstRank(const model::Event& event);

class RecorderSink : public model::Sink {
 public:
  // Borrows both; `printer` may be null.
  RecorderSink(model::Sink& writer, model::Sink* printer) : writer_(writer), printer_(printer) {}
  void Write(const model::Record& record) override;
  // Events since the last call that make the next sample or flush due at once.
  bool TakeBoundary();
  uint64_t epochs() const { return epochs_; }
  // Lists of GPUs that the training named since the last call.
  std::vector<std::string> TakeNamedGpus();

 private:
  void Note(const model::Event& event);

  model::Sink& writer_;
  model::Sink* printer_;
  bool boundary_ = false;
  uint64_t epochs_ = 0;
  std::vector<std::string> named_gpus_;
};

}  // namespace epochmeter::cli
