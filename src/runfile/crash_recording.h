// SPDX-License-Identifier: Apache-2.0
// For the tests of crashes, failing disks and damage: a run that is written tick by tick into a
// file system in memory, and what a reader must find of it afterwards.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runfile/memory_file_system.h"
#include "runfile/run_writer.h"
#include "runfile/test_run.h"

namespace epochmeter::runfile {

inline constexpr char kPath[] = "a.emr";
inline constexpr char kTail[] = "a.emr.tail";

// How many times as long a test should take as in its short form, from EPOCHMETER_SOAK; 1 without.
int SoakFactor();

RunWriter::Options OptionsFor(MemoryFileSystem& files, uint32_t ticks_per_seal);

// Writes a run and knows what was acknowledged.
class Recording {
 public:
  // A flush after each `ticks_per_flush` ticks, and one at the end.
  Recording(uint64_t seed, int ticks, int ticks_per_flush = 1);

  const std::vector<model::Record>& records() const { return records_; }
  size_t acknowledged() const { return acknowledged_; }
  size_t written() const { return written_; }
  // What a reader should see when the first `count` records survived.
  const std::string& Expected(size_t count);
  // How many of the written ticks a run misses that is exactly what a crash now may leave: all that
  // was acknowledged, and of later flushes, which may have reached the disk all the same, some
  // first ones. Nothing for any other run.
  std::optional<int> TicksLost(const model::Run& run);
  bool IsAcknowledgedOrWritten(const model::Run& run) { return TicksLost(run).has_value(); }

  void WriteAll(RunWriter& writer);
  std::function<void()> after_flush;

 private:
  int TicksBetween(size_t from, size_t to) const;

  std::vector<model::Record> records_;
  std::vector<size_t> flushes_;  // before each of these records, and at the end
  size_t acknowledged_ = 0, written_ = 0;
  std::map<size_t, std::string> expected_;
};

// No damage but writes that did not come to their end.
bool OnlyTorn(const model::Run& run);
size_t CountLosses(const std::vector<model::Loss>& losses, std::string_view kind);

}  // namespace epochmeter::runfile
