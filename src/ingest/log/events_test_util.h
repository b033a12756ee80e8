// SPDX-License-Identifier: Apache-2.0
// Reads small texts for tests of events.
#pragma once

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "ingest/log/events.h"
#include "ingest/log/events/event_text.h"

namespace epochmeter::ingest::log {

class EventsOf : public LogSink {
 public:
  explicit EventsOf(const std::string& text) {
    std::istringstream in(text);
    uint64_t number = 0;
    for (std::string line; std::getline(in, line);) Line(++number, line);
    reader_.Finish();
  }
  EventsOf() = default;

  void Line(uint64_t number, const std::string& text) {
    if (text.empty()) return;
    const LinePlace place{.file = 0, .stream = 0, .line = number, .rank = {}, .wall_ns = {}};
    if (reader_.WantsNext(0) || EventReader::MayMatter(text)) reader_.Line(place, text);
  }
  void OnRecord(const LogRecord&) override {}
  void OnEvent(const LogEvent& event) override { all.push_back(event); }
  EventReader& reader() { return reader_; }

  // "oom_gpu@3 killed@9", in the order of their lines.
  std::string Kinds() const {
    std::vector<const LogEvent*> sorted;
    for (const LogEvent& event : all) sorted.push_back(&event);
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](auto* a, auto* b) { return a->place.line < b->place.line; });
    std::string kinds;
    for (const LogEvent* event : sorted) {
      kinds += (kinds.empty() ? "" : " ") + event->kind + "@" + std::to_string(event->place.line);
    }
    return kinds;
  }
  // The first event of a kind; one without numbers when there is none.
  const LogEvent& First(std::string_view kind) const {
    static const LogEvent kNone;
    for (const LogEvent& event : all) {
      if (event.kind == kind) return event;
    }
    return kNone;
  }

  std::vector<LogEvent> all;

 private:
  EventReader reader_{*this};
};

}  // namespace epochmeter::ingest::log
