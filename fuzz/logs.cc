// SPDX-License-Identifier: Apache-2.0
// Any bytes as a training log, one target for each stage of the log engine and one for all of it.
// The first two bytes choose how the rest is cut into pieces. What comes out must not depend on
// that, stays inside the bounds that the headers promise, and names only lines that there are.
#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <simdjson.h>

#include "base/check.h"
#include "base/strings.h"
#include "fuzz/input.h"
#include "fuzz/target.h"
#include "ingest/log/engine.h"
#include "ingest/log/field_scanner.h"
#include "ingest/log/line_prefix.h"
#include "ingest/log/log_summary.h"
#include "ingest/log/named_formats.h"
#include "ingest/log/segment_splitter.h"
#include "ingest/log/stamp_clock.h"
#include "ingest/log/text_decoder.h"
#include "ingest/log/wrapper_reader.h"

namespace epochmeter::fuzz {
namespace {

namespace log = ingest::log;

// A way to cut bytes: pieces of `first` bytes and `then` bytes in turn; 0 is all of the rest.
struct Cut {
  size_t first = 0, then = 0;
};
constexpr Cut kWhole;

Cut TakeCut(Input* input) {
  const size_t first = input->Byte();
  return {.first = first, .then = size_t{1} + input->Byte()};
}

template <typename Taker>
void FeedCut(std::string_view bytes, Cut cut, const Taker& take) {
  bool odd = true;
  while (!bytes.empty()) {
    const size_t wanted = cut.first == 0 ? bytes.size() : odd ? cut.first : cut.then;
    take(bytes.substr(0, wanted));
    bytes.remove_prefix(std::min(wanted, bytes.size()));
    odd = !odd;
  }
}

bool IsUtf8(std::string_view text) { return simdjson::validate_utf8(text.data(), text.size()); }

bool Within(std::string_view part, std::string_view whole) {
  return part.empty() ||
         (part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size());
}

class KeepText : public log::TextSink {
 public:
  void OnText(std::string_view text) override {
    EPM_CHECK(!text.empty()) << "an empty piece of text";
    all += text;
  }
  std::string all;
};

struct Piece {
  std::string text, source;
  uint64_t line = 0;
  bool redrawn = false;
  std::optional<int32_t> rank;
  std::optional<int64_t> wall_ns;
  bool operator==(const Piece&) const = default;
};

class KeepSegments : public log::SegmentSink {
 public:
  void OnSegment(const log::Segment& segment) override {
    EPM_CHECK(!segment.text.empty() && segment.text.size() <= log::kMostSegmentBytes);
    EPM_CHECK(segment.text.find('\n') == std::string_view::npos) << "a line end in a segment";
    EPM_CHECK(pieces.empty() || segment.line >= pieces.back().line) << "lines go back";
    pieces.push_back({.text = std::string(segment.text),
                      .source = {},
                      .line = segment.line,
                      .redrawn = segment.redrawn,
                      .rank = {},
                      .wall_ns = {}});
  }
  std::vector<Piece> pieces;
};

class KeepPayloads : public log::PayloadSink {
 public:
  void OnPayload(const log::Payload& payload) override {
    EPM_CHECK(payload.text.find('\n') == std::string_view::npos) << "a line end in a payload";
    pieces.push_back({.text = std::string(payload.text),
                      .source = std::string(payload.source),
                      .line = payload.line,
                      .redrawn = payload.redrawn,
                      .rank = payload.rank,
                      .wall_ns = payload.wall_ns});
  }
  std::vector<Piece> pieces;
};

std::string Decode(std::string_view bytes, Cut cut) {
  KeepText text;
  log::TextDecoder decoder(text);
  FeedCut(bytes, cut, [&decoder](std::string_view piece) { decoder.Feed(piece); });
  decoder.Finish();
  return std::move(text.all);
}

std::vector<Piece> SplitText(std::string_view bytes, Cut cut) {
  KeepSegments kept;
  log::SegmentSplitter splitter(kept);
  FeedCut(bytes, cut, [&splitter](std::string_view piece) { splitter.Feed(piece); });
  splitter.Finish();
  EPM_CHECK(splitter.segments() == kept.pieces.size());
  EPM_CHECK(splitter.lines() == static_cast<uint64_t>(std::count(bytes.begin(), bytes.end(), '\n')))
      << "lines lost";
  return std::move(kept.pieces);
}

std::vector<Piece> Unwrap(std::string_view bytes, Cut cut) {
  KeepPayloads kept;
  log::WrapperReader reader(kept, std::nullopt);
  log::SegmentSplitter splitter(reader);
  FeedCut(bytes, cut, [&splitter](std::string_view piece) { splitter.Feed(piece); });
  splitter.Finish();
  reader.Finish();
  for (const Piece& piece : kept.pieces) {
    EPM_CHECK(piece.line >= 1 && piece.line <= splitter.lines() + 1) << "no such line";
  }
  return std::move(kept.pieces);
}

void CheckPrefix(std::string_view text, log::StampClock* clock) {
  const log::LinePrefix prefix = log::ReadLinePrefix(text);
  EPM_CHECK(prefix.message <= text.size() && Within(prefix.logger, text));
  if (!prefix.stamp) return;
  const log::RawStamp& stamp = *prefix.stamp;
  EPM_CHECK(Within(stamp.text, text)) << "a stamp from elsewhere";
  EPM_CHECK(!stamp.month || (*stamp.month >= 1 && *stamp.month <= 12));
  EPM_CHECK(!stamp.day || (*stamp.day >= 1 && *stamp.day <= 31));
  clock->WallNs(stamp);
}

void CheckFields(std::string_view text) {
  std::vector<std::string> names;
  for (const log::Field& field : log::ScanFields(text, 0).fields) {
    EPM_CHECK(field.begin <= field.end && field.end <= text.size());
    EPM_CHECK(field.total_begin <= field.total_end && field.total_end <= text.size());
    EPM_CHECK(Within(field.unit, text) && Within(field.after, text)) << "a unit from elsewhere";
    names.push_back(log::NameOfField(field));
  }
  const std::vector<std::string_view> keys(names.begin(), names.end());
  log::FindNamedFormat(keys);
}

// A record or an event, as far as it must not depend on how the log was cut.
struct Found {
  std::string what;
  uint64_t line = 0, last_line = 0;
  size_t values = 0;
  bool operator==(const Found&) const = default;
};

class KeepFound : public log::LogSink {
 public:
  void OnRecord(const log::LogRecord& record) override {
    for (const log::LogValue& value : record.values) {
      read_ += value.key.size() + value.text.size() + value.unit.size();
      EPM_CHECK(!log::RoleName(value.role).empty());
    }
    train += record.kind == log::RecordKind::kTrain ? 1 : 0;
    Add({.what = "record " + std::to_string(static_cast<int>(record.kind)),
         .line = record.place.line,
         .last_line = record.last_line,
         .values = record.values.size()});
  }
  void OnEvent(const log::LogEvent& event) override {
    EPM_CHECK(!event.kind.empty() && event.text.size() <= 512) << event.kind;
    Add({.what = event.kind, .line = event.place.line, .last_line = event.last_line, .values = 0});
  }

  std::vector<Found> all;
  uint64_t train = 0;

 private:
  void Add(Found found) {
    EPM_CHECK(found.line >= 1 && found.last_line >= found.line) << found.what;
    all.push_back(std::move(found));
  }
  size_t read_ = 0;
};

std::vector<Found> RunEngine(std::string_view bytes, Cut cut, bool idle) {
  KeepFound kept;
  log::LogEngine engine(kept);
  const uint32_t file = engine.Open({.name = "train.log",
                                     .modified_ns = int64_t{1'700'000'000'000'000'000},
                                     .zone_offset_s = 0,
                                     .rank = std::nullopt});
  FeedCut(bytes, cut, [&](std::string_view piece) {
    engine.Feed(file, piece);
    if (idle) engine.Idle();
  });
  engine.Finish();
  const uint64_t lines = engine.counts().lines + 1;
  EPM_CHECK(engine.counts().bytes == bytes.size());
  EPM_CHECK(engine.counts().records == kept.train) << "records counted wrong";
  for (const Found& found : kept.all) EPM_CHECK(found.last_line <= lines) << "no such line";
  return std::move(kept.all);
}

void Summarise(std::string_view bytes) {
  log::LogSummary summary;
  log::LogEngine engine(summary);
  const log::LogFile file{
      .name = "workerlog.1", .modified_ns = std::nullopt, .zone_offset_s = std::nullopt, .rank = 1};
  engine.Feed(engine.Open(file), bytes);
  engine.Finish();
  summary.Take(engine.counts(), engine.Notes(), {file});
}

}  // namespace

void FeedLogDecoder(std::string_view bytes) {
  Input input(bytes);
  const Cut cut = TakeCut(&input);
  const std::string_view log_bytes = input.Rest();
  const std::string text = Decode(log_bytes, kWhole);
  EPM_CHECK(IsUtf8(text)) << "decoded text is not UTF-8";
  EPM_CHECK(text == Decode(log_bytes, cut)) << "text depends on the pieces";
}

void FeedLogSplitter(std::string_view bytes) {
  Input input(bytes);
  const Cut cut = TakeCut(&input);
  const std::string_view text = input.Rest();
  EPM_CHECK(SplitText(text, kWhole) == SplitText(text, cut)) << "segments depend on the pieces";
}

void FeedLogWrapper(std::string_view bytes) {
  Input input(bytes);
  const Cut cut = TakeCut(&input);
  const std::string_view text = input.Rest();
  EPM_CHECK(Unwrap(text, kWhole) == Unwrap(text, cut)) << "payloads depend on the pieces";
}

void FeedLogPrefix(std::string_view bytes) {
  log::StampClock clock({.modified_ns = std::nullopt, .zone_offset_s = 0, .now_ns = 0});
  clock.SurveySample(bytes, {});
  for (const std::string_view line : base::Split(bytes, '\n')) {
    CheckPrefix(line, &clock);
    CheckFields(line);
  }
  clock.Notes();
}

void FeedLogEngine(std::string_view bytes) {
  Input input(bytes);
  const Cut cut = TakeCut(&input);
  const std::string_view log_bytes = input.Rest();
  EPM_CHECK(RunEngine(log_bytes, kWhole, false) == RunEngine(log_bytes, cut, false))
      << "records depend on the pieces";
  RunEngine(log_bytes, cut, true);
  Summarise(log_bytes);
}

void FeedLogFormat(std::string_view bytes) {
  const auto format = log::ParseNamedFormat("fuzzed.json", bytes);
  if (!format.ok()) return;
  EPM_CHECK(!format->name.empty() && format->keys.size() >= 2 && !format->samples.empty());
}

}  // namespace epochmeter::fuzz
