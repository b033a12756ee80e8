// SPDX-License-Identifier: Apache-2.0
// Which event began a failure, and which only followed: from what they say and the order of their
// times or lines, not from what the launcher calls the root cause. A bare "Killed" does not prove
// that memory ran out; a lost connection or an aborted communicator has an earlier cause on another
// rank. One thread; memory does not grow with the log.
#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "ingest/log/log_record.h"
#include "model/log_report.h"

namespace epochmeter::ingest::log {

class RootCauseFinder {
 public:
  void Record(const LogRecord& record);
  void Event(const LogEvent& event);
  // The cause of the failure with which the logs end; nothing when they end well, or training went
  // on or was started again since.
  std::optional<model::LogCause> Take() const;

 private:
  // How much an event explains: the more, the rather it is the cause.
  enum class Weight : uint8_t { kNone, kConfirms, kFollows, kMaybe, kCause };
  struct Candidate {
    LogEvent event;
    Weight weight = Weight::kNone;
  };
  // The events of the last failure of one file.
  struct File {
    std::vector<Candidate> events;  // the first ones
    uint64_t last_line = 0;
    uint32_t start = 0;
    uint64_t records = 0;  // of training before the failure
    uint64_t since = 0;    // and after it
  };
  File* Find(uint32_t file);
  static Weight WeightOf(const LogEvent& event);
  static bool BeginsAnother(const File& file, const LogEvent& event);
  static bool Recovered(const File& file);
  static bool Before(const Candidate& a, const Candidate& b);
  static const Candidate& MoreSpecific(const Candidate& found,
                                       const std::vector<const Candidate*>& all);
  static model::Message Why(const Candidate& cause, const std::vector<const Candidate*>& all);

  std::map<uint32_t, File> files_;
  std::pair<const uint32_t, File>* last_ = nullptr;  // most records are of the same file
};

}  // namespace epochmeter::ingest::log
