// SPDX-License-Identifier: Apache-2.0
// Kinds and counts of events over real logs that lie beside the checkout.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "ingest/log/events.h"
#include "ingest/log/segment_splitter.h"

namespace epochmeter::ingest::log {
namespace {

namespace fs = std::filesystem;
using Counts = std::map<std::string, uint64_t>;

// Kinds that a log may have beyond those that are listed for it.
const std::set<std::string> kExtra = {"warning",     "glog_warning",    "run_start",
                                      "total_steps", "unix_abort_time", "exitcode"};
// One failure of torchrun is one event; the list counts the line that raises it as well.
const std::set<std::string> kCountedTwice = {"openvla_slurm_cancelled.out child_failed"};

fs::path Folder() {
  const char* shared = std::getenv("EPOCHMETER_SHARED");
  return fs::path(shared != nullptr ? shared : "../shared") / "logs";
}

class Reader : public SegmentSink, public LogSink {
 public:
  // `first_record`: where the training's first record stands; 0: it has none.
  explicit Reader(uint64_t first_record) : events_(*this), first_record_(first_record) {}
  void OnSegment(const Segment& segment) override {
    if (first_record_ != 0 && segment.line >= first_record_) {
      LogRecord record;
      record.place.line = first_record_;
      events_.Record(record);
      first_record_ = 0;
    }
    const LinePlace place{.file = 0, .stream = 0, .line = segment.line, .rank = {}, .wall_ns = {}};
    if (events_.WantsNext(0) || EventReader::MayMatter(segment.text)) {
      events_.Line(place, segment.text);
    }
  }
  void OnRecord(const LogRecord&) override {}
  void OnEvent(const LogEvent& event) override { ++counts[event.kind]; }
  void Finish() { events_.Finish(); }
  Counts counts;

 private:
  EventReader events_;
  uint64_t first_record_;
};

Counts CountsOf(const fs::path& path, uint64_t first_record) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << in.rdbuf();
  Reader reader(first_record);
  SegmentSplitter splitter(reader);
  splitter.Feed(bytes.str());
  splitter.Finish();
  reader.Finish();
  return reader.counts;
}

std::string Difference(const fs::path& log, const nlohmann::json& wanted) {
  const uint64_t first = wanted.contains("first") && wanted["first"].is_object()
                             ? wanted["first"].value("line", uint64_t{0})
                             : 0;
  const Counts got = CountsOf(log, first);
  Counts want;
  for (const auto& event : wanted["events"]) want[event["kind"]] += event["count"].get<uint64_t>();
  std::set<std::string> kinds;
  for (const auto& [kind, count] : got) kinds.insert(kind);
  for (const auto& [kind, count] : want) kinds.insert(kind);
  kinds.erase("nan_loss");  // of records, which are not read here
  std::string difference;
  for (const std::string& kind : kinds) {
    if (kExtra.contains(kind) && !want.contains(kind)) continue;
    if (kCountedTwice.contains(log.filename().string() + " " + kind)) continue;
    const uint64_t a = got.contains(kind) ? got.at(kind) : 0;
    if (a == want[kind]) continue;
    difference += " " + kind + " " + std::to_string(a) + " not " + std::to_string(want[kind]);
  }
  return difference;
}

TEST(EventsCorpus, KindsAndCountsAreThoseOfEachLog) {
  const fs::path folder = Folder();
  if (!fs::is_directory(folder)) {
    GTEST_SKIP() << "no folder of real logs at " << folder << "; EPOCHMETER_SHARED names it";
  }
  int files = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    constexpr std::string_view kEnd = ".expected.json";
    if (!name.ends_with(kEnd)) continue;
    const fs::path log = folder / name.substr(0, name.size() - kEnd.size());
    ++files;
    std::ifstream in(entry.path());
    EXPECT_EQ(Difference(log, nlohmann::json::parse(in)), "") << log.filename();
  }
  EXPECT_GT(files, 0);
}

}  // namespace
}  // namespace epochmeter::ingest::log
