// SPDX-License-Identifier: Apache-2.0
// Imports a recording: a folder with samples.jsonl.gz (header, device, gpu and host lines),
// events.rank<r>.jsonl.gz of each rank and the training's own train.log. Files are read side by
// side and merged by time; memory does not grow with their length, except for the log.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/crc32c.h"
#include "base/file.h"
#include "base/strings.h"
#include "ingest/importers.h"
#include "ingest/lines.h"
#include "ingest/recording_events.h"
#include "ingest/recording_lines.h"
#include "ingest/recording_log.h"

namespace epochmeter::ingest {
namespace {

namespace fs = std::filesystem;

constexpr LossReason kBadLine{
    "recording.bad_line", model::LossSeverity::kDataLoss, "lines",
    "These lines are damaged or not of the recording format; the rest was imported."};
constexpr LossReason kTruncated{
    "recording.truncated", model::LossSeverity::kDataLoss, "files",
    "The compressed file ends early or is damaged; what came before was imported. Copy it again."};
constexpr LossReason kLogTime{
    "recording.log_time", model::LossSeverity::kInfo, "lines",
    "The log has no time stamps that fall into the recording; its text stands at the end."};
constexpr LossReason kLogCut{
    "recording.log_unreadable", model::LossSeverity::kDataLoss, "files",
    "The training's log could not be read whole; the run has no text from it."};

constexpr size_t kMaxLogBytes = size_t{256} << 20;
// Wall and monotonic clock of one line may differ from the header's by this much: NTP, not damage.
constexpr int64_t kMostDriftNs = 3600 * base::kNsPerSecond;

// The objects of one file, one after the other.
struct Feed {
  LineReader lines;
  std::optional<int32_t> rank;  // of an events file; nothing for the samples
  bool events = false;
  JsonParser json{JsonDialect::kPythonNumbers};
  JsonObject object;
  int64_t t_ns = std::numeric_limits<int64_t>::min();  // a line without a time has the one before
  bool done = false;
};

class Recording {
 public:
  Recording(std::string folder, model::Sink& sink)
      : folder_(std::move(folder)), sink_(sink), registry_(sink), losses_(sink) {}

  base::Result<ImportSummary> Import();

 private:
  base::Result<> OpenFeeds();
  base::Result<> ReadAnchor();
  void WriteRunInfo();
  void ReadLog();
  void Advance(Feed& feed);
  void Take(Feed& feed);
  void TakeSample(Feed& feed);
  bool TimeOf(Feed& feed);
  void BadLine(const Feed& feed, const char* why);
  void WriteLogUntil(int64_t t_ns);
  void WriteRestOfLog();
  int64_t LastSampleNs() const;
  void Finish();

  std::string folder_;
  model::Sink& sink_;
  model::Registry registry_;
  LossCounter losses_;
  std::optional<SeriesCache> cache_;
  std::optional<GpuLines> gpus_;
  std::optional<HostLines> host_;
  std::optional<EventLines> events_;
  std::vector<std::unique_ptr<Feed>> feeds_;
  std::string samples_path_;
  RecordingHeader header_;
  int64_t anchor_mono_ns_ = 0, anchor_wall_ns_ = 0;
  int64_t now_ns_ = 0;  // the latest time taken
  std::vector<LogLine> log_;
  size_t log_at_ = 0;
  ImportSummary summary_;
};

std::string FindFile(const std::string& folder, const std::string& name) {
  std::error_code error;
  for (const char* ending : {".gz", ""}) {
    std::string path = folder;
    path.append("/").append(name).append(ending);
    if (fs::exists(path, error)) return path;
  }
  return {};
}

// "events.rank3.jsonl.gz" is 3.
std::optional<int32_t> RankOfName(std::string_view name) {
  constexpr std::string_view kPrefix = "events.rank";
  if (!base::StartsWith(name, kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  const size_t dot = name.find('.');
  const std::string_view rest = dot == name.npos ? "" : name.substr(dot);
  if (rest != ".jsonl" && rest != ".jsonl.gz") return std::nullopt;
  const auto rank = base::ParseInt(name.substr(0, dot));
  if (!rank || *rank < 0 || *rank > std::numeric_limits<int32_t>::max()) return std::nullopt;
  return static_cast<int32_t>(*rank);
}

base::Result<> Recording::OpenFeeds() {
  samples_path_ = FindFile(folder_, "samples.jsonl");
  if (!samples_path_.empty()) {
    EPM_ASSIGN(LineReader lines, LineReader::Open(samples_path_));
    feeds_.push_back(std::make_unique<Feed>(Feed{.lines = std::move(lines)}));
  }
  std::error_code error;
  std::vector<std::pair<int32_t, std::string>> event_files;
  for (const auto& entry : fs::directory_iterator(folder_, error)) {
    const auto rank = RankOfName(entry.path().filename().string());
    if (rank) event_files.emplace_back(*rank, entry.path().string());
  }
  if (error) {
    return base::Error{.what = "cannot read the recording",
                       .where = folder_,
                       .why = error.message(),
                       .what_to_do = "give the folder that holds samples.jsonl.gz",
                       .code = error.value()};
  }
  std::sort(event_files.begin(), event_files.end());
  for (const auto& [rank, path] : event_files) {
    EPM_ASSIGN(LineReader lines, LineReader::Open(path));
    feeds_.push_back(std::make_unique<Feed>(Feed{.lines = std::move(lines), .rank = rank}));
    feeds_.back()->events = true;
  }
  if (!feeds_.empty()) return {};
  return base::Error{.what = "this is no recording",
                     .where = folder_,
                     .why = "neither samples.jsonl.gz nor events.rank0.jsonl.gz is in it",
                     .what_to_do = "give the folder of one recording"};
}

void Recording::BadLine(const Feed& feed, const char* why) {
  ++summary_.bad_lines;
  losses_.Add(kBadLine, 1, now_ns_,
              feed.lines.name() + ":" + std::to_string(feed.lines.line_number()) + ": " + why);
}

// Sets the feed's time from its object. False when the object's time can't be.
bool Recording::TimeOf(Feed& feed) {
  const auto mono = IntField(feed.object, "mono_ns");
  if (!mono) return !feed.events && TextField(feed.object, "kind") == "device";
  if (*mono < 0 || *mono > std::numeric_limits<int64_t>::max() / 4) return false;
  const auto wall = IntField(feed.object, "wall_ns");
  if (anchor_wall_ns_ > 0 && wall) {
    int64_t drift = 0;
    if (__builtin_sub_overflow(*wall - *mono, anchor_wall_ns_ - anchor_mono_ns_, &drift) ||
        drift > kMostDriftNs || drift < -kMostDriftNs) {
      return false;
    }
  }
  feed.t_ns = *mono;
  return true;
}

// Goes to the next good object.
void Recording::Advance(Feed& feed) {
  std::string_view line;
  while (!feed.done) {
    switch (feed.lines.Read(&line)) {
      case LineReader::Next::kEnd:
        feed.done = true;
        break;
      case LineReader::Next::kBroken:
        losses_.Add(kTruncated, 1, now_ns_, feed.lines.name());
        break;
      case LineReader::Next::kTooLong:
        BadLine(feed, "longer than 1 MiB");
        break;
      case LineReader::Next::kLine:
        if (base::Trim(line).empty()) break;
        if (feed.json.Parse(line, &feed.object) != JsonFault::kNone) {
          BadLine(feed, "no JSON object");
        } else if (!TimeOf(feed)) {
          BadLine(feed, "no time that can be");
        } else {
          return;
        }
        break;
    }
  }
}

// The anchor is the header's, else that of the first line with both clocks.
base::Result<> Recording::ReadAnchor() {
  for (const auto& feed : feeds_) Advance(*feed);
  for (const auto& feed : feeds_) {
    if (feed->done) continue;
    const auto mono = IntField(feed->object, "mono_ns");
    const auto wall = IntField(feed->object, "wall_ns");
    if (!mono || !wall || *wall <= 0) continue;
    anchor_mono_ns_ = now_ns_ = *mono;
    anchor_wall_ns_ = *wall;
    if (!feed->events) header_ = ReadRecordingHeader(feed->object);
    return {};
  }
  return base::Error{.what = "this is no recording",
                     .where = folder_,
                     .why = "no line at the head of its files has mono_ns and wall_ns",
                     .what_to_do = "give a folder whose samples.jsonl.gz begins with the header"};
}

void Recording::WriteRunInfo() {
  std::error_code error;
  const fs::path folder = fs::weakly_canonical(folder_, error);
  const std::string name = (error ? fs::path(folder_) : folder).filename().string();
  const std::string unique =
      name + std::to_string(anchor_mono_ns_) + "/" + std::to_string(anchor_wall_ns_);
  char tail[8];
  snprintf(tail, sizeof tail, "%06x", base::Crc32c(0, unique) & 0xFFFFFFU);
  model::RunInfo info;
  info.run_id = base::FormatUtcCompact(anchor_wall_ns_) + "-" + name + "-" + tail;
  // A recording does not read CLOCK_BOOTTIME; without suspend it is the same.
  info.anchor = {
      .mono_ns = anchor_mono_ns_, .boot_ns = anchor_mono_ns_, .wall_ns = anchor_wall_ns_};
  info.attributes = {{"source", "recording"}, {"name", name}};
  const auto add = [&info](const char* key, std::optional<int64_t> number) {
    if (number) info.attributes.emplace_back(key, std::to_string(*number));
  };
  if (!header_.driver.empty()) info.attributes.emplace_back("driver_version", header_.driver);
  if (header_.cuda) {
    // 13000 is 13.0.
    info.attributes.emplace_back("cuda_version", std::to_string(*header_.cuda / 1000) + "." +
                                                     std::to_string(*header_.cuda % 1000 / 10));
  }
  add("gpus", header_.gpus);
  add("cpus", header_.cpus);
  add("sample_hz", header_.hz);
  sink_.Write(std::move(info));
}

// The time of the last whole line of the samples; the anchor when there is none.
int64_t Recording::LastSampleNs() const {
  if (samples_path_.empty()) return anchor_mono_ns_;
  auto reader = LineReader::Open(samples_path_);
  if (!reader.ok()) return anchor_mono_ns_;
  constexpr std::string_view kKey = "\"mono_ns\":";
  int64_t last = anchor_mono_ns_;
  std::string_view line;
  for (auto next = reader->Read(&line); next != LineReader::Next::kEnd;
       next = reader->Read(&line)) {
    const size_t at = next == LineReader::Next::kLine ? line.find(kKey) : line.npos;
    if (at == line.npos) continue;
    const std::string_view rest = base::Trim(line.substr(at + kKey.size()));
    const auto t_ns = base::ParseInt(rest.substr(0, rest.find_first_not_of("0123456789")));
    if (t_ns) last = *t_ns;
  }
  return last;
}

void Recording::ReadLog() {
  const std::string path = folder_ + "/train.log";
  std::error_code error;
  if (!fs::exists(path, error)) return;
  auto text = base::ReadFile(path, kMaxLogBytes);
  if (!text.ok()) {
    losses_.Add(kLogCut, 1, now_ns_, text.error().Message());
    return;
  }
  std::vector<std::string> lines;
  for (size_t at = 0; at < text->size();) {
    const size_t end = std::min(text->find('\n', at), text->size() - 1);
    lines.push_back(text->substr(at, end + 1 - at));
    at = end + 1;
  }
  log_ = PlaceLog(lines, anchor_wall_ns_ - anchor_mono_ns_, anchor_mono_ns_, LastSampleNs());
  summary_.log_lines = log_.size();
}

void Recording::WriteLogUntil(int64_t t_ns) {
  for (; log_at_ < log_.size() && log_[log_at_].t_ns && *log_[log_at_].t_ns <= t_ns; ++log_at_) {
    LogLine& line = log_[log_at_];
    sink_.Write(model::LogText{.t_ns = *line.t_ns, .stream = 3, .text = std::move(line.text)});
  }
}

void Recording::WriteRestOfLog() {
  WriteLogUntil(std::numeric_limits<int64_t>::max());
  if (log_at_ < log_.size()) losses_.Add(kLogTime, log_.size() - log_at_, now_ns_, "train.log");
  for (; log_at_ < log_.size(); ++log_at_) {
    sink_.Write(
        model::LogText{.t_ns = now_ns_, .stream = 3, .text = std::move(log_[log_at_].text)});
  }
}

void Recording::TakeSample(Feed& feed) {
  const auto kind = TextField(feed.object, "kind").value_or("");
  model::Samples samples{.t_ns = feed.t_ns, .values = {}};
  bool good = true;
  if (kind == "gpu") {
    good = gpus_->Gpu(feed.object, samples);
  } else if (kind == "host") {
    host_->Host(feed.object, samples);
  } else if (kind == "device") {
    good = gpus_->Device(feed.object);
  } else {
    good = kind == "header";
  }
  if (!good) BadLine(feed, "unknown kind or GPU");
  if (samples.values.empty()) return;
  ++summary_.samples;
  sink_.Write(std::move(samples));
}

void Recording::Take(Feed& feed) {
  now_ns_ = std::max(now_ns_, feed.t_ns);
  WriteLogUntil(now_ns_);
  if (!feed.events) {
    TakeSample(feed);
  } else if (const char* why = events_->Event(feed.object, feed.t_ns, feed.rank)) {
    BadLine(feed, why);
  }
  losses_.Flush(now_ns_, false);
  Advance(feed);
}

// A recording does not tell how the training exited: the end has neither code nor signal.
void Recording::Finish() {
  WriteRestOfLog();
  losses_.Flush(now_ns_, true);
  summary_.events = events_->written();
  sink_.Write(model::RunEnd{.t_ns = now_ns_,
                            .reason = events_->all_ended() ? "detached" : "lost",
                            .exit_code = {},
                            .signal = {}});
}

base::Result<ImportSummary> Recording::Import() {
  losses_.Hold();
  EPM_TRY(OpenFeeds());
  EPM_TRY(ReadAnchor());
  WriteRunInfo();
  losses_.Release();
  cache_.emplace(registry_, losses_);
  gpus_.emplace(header_, *cache_, sink_);
  host_.emplace(header_, *cache_);
  events_.emplace(registry_, sink_, [this](int64_t gpu) { return gpus_->Knows(gpu); });
  ReadLog();
  while (true) {
    Feed* next = nullptr;
    for (const auto& feed : feeds_) {
      if (!feed->done && (next == nullptr || feed->t_ns < next->t_ns)) next = feed.get();
    }
    if (next == nullptr) break;
    Take(*next);
  }
  Finish();
  return summary_;
}

int Recognise(const SourceHead& head) {
  if (!head.folder) return 0;
  const bool samples = !FindFile(head.path, "samples.jsonl").empty();
  return samples || !FindFile(head.path, "events.rank0.jsonl").empty() ? 100 : 0;
}

base::Result<ImportSummary> ImportRecording(const std::string& path,
                                            const ImportOptions& /*options*/, model::Sink& sink) {
  return Recording(path, sink).Import();
}

}  // namespace

const ImporterDef kRecordingImporter{
    .name = "recording",
    .summary = "a folder with samples.jsonl.gz, events.rank<r>.jsonl.gz and train.log",
    .Recognise = &Recognise,
    .Import = &ImportRecording};

}  // namespace epochmeter::ingest
