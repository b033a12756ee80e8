// SPDX-License-Identifier: Apache-2.0
// Where records go. Nobody upstream knows whether a sink is a file, a pipe or memory.
#pragma once

#include <vector>

#include "model/record.h"

namespace epochmeter::model {

// Write never fails towards the caller: a sink that loses a record counts it itself.
// One thread at a time unless the sink says otherwise.
class Sink {
 public:
  virtual ~Sink() = default;
  virtual void Write(const Record& record) = 0;
};

// Keeps records, for tests and small imports.
class MemorySink : public Sink {
 public:
  void Write(const Record& record) override { records.push_back(record); }
  std::vector<Record> records;
};

// Gives each record to two sinks, in order. Borrows both.
class TeeSink : public Sink {
 public:
  TeeSink(Sink& first, Sink& second) : first_(first), second_(second) {}
  void Write(const Record& record) override {
    first_.Write(record);
    second_.Write(record);
  }

 private:
  Sink& first_;
  Sink& second_;
};

}  // namespace epochmeter::model
