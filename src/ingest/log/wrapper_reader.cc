// SPDX-License-Identifier: Apache-2.0
#include "ingest/log/wrapper_reader.h"

#include <algorithm>
#include <utility>

namespace epochmeter::ingest::log {

// What a program in a Docker container wrote to one output, cut anywhere by the runtime.
class WrapperReader::Channel : public SegmentSink {
 public:
  Channel(WrapperReader& reader, uint8_t number) : reader_(reader), number_(number) {}

  void Feed(const DockerLine& line, uint64_t place) {
    if (!splitter_.pending()) begin_ = place;
    place_ = place;
    stamp_.assign(line.time);
    wall_ns_ = MarkWallNs(line.time);
    splitter_.Feed(line.log);
  }
  void Finish() { splitter_.Finish(); }

  void OnSegment(const Segment& segment) override {
    const uint64_t place = std::exchange(begin_, place_);
    reader_.Take({segment, place, number_, wall_ns_, stamp_}, true);
  }

 private:
  WrapperReader& reader_;
  const uint8_t number_;
  SegmentSplitter splitter_{*this};
  uint64_t begin_ = 0;  // line of the file in which the open segment began
  uint64_t place_ = 0;  // that is being read
  std::optional<int64_t> wall_ns_;
  std::string stamp_;
};

// Keeps the room of its texts.
void WrapperReader::Line::Clear() {
  marked = cri = cri_error = partial = ray = false;
  source.clear();
  stamp.clear();
  rank.reset();
  wall_ns.reset();
}

WrapperReader::WrapperReader(PayloadSink& sink, std::optional<int32_t> file_rank)
    : sink_(sink), file_rank_(file_rank) {}

WrapperReader::~WrapperReader() = default;

void WrapperReader::OnSegment(const Segment& segment) {
  if (GivePlain(segment)) return;
  if (LooksLikeDockerLine(segment.text) && ReadDockerLine(segment.text, docker_line_)) {
    const uint8_t number = docker_line_.error_stream ? 2 : 1;
    std::unique_ptr<Channel>& channel = docker_[number - 1];
    if (!channel) channel = std::make_unique<Channel>(*this, number);
    channel->Feed(docker_line_, segment.line);
    return;
  }
  Take({segment, segment.line, 0, capture_wall_ns_, {}}, true);
}

// The short way for a line without any mark while nothing is open. False when it is not that.
bool WrapperReader::GivePlain(const Segment& segment) {
  const std::string_view text = segment.text;
  Line& line = lines_[0];
  const bool fresh = line.number != segment.line;
  if (text[0] == '{' || learner_.lines() > 0 || MayHaveSureMark(text)) return false;
  if (line.marked && !fresh) return false;
  if (fresh && pause_ == 0) {
    // Of those learned only a time is none of these.
    if (ReadLikelyMark(text).kind != WrapperKind::kNone) return false;
    const bool times = learned_.Knows(WrapperKind::kTime);
    if (times && ReadTimeMark(text).kind != WrapperKind::kNone) return false;
  } else if (learned_.any() && learned_.Read(text).kind != WrapperKind::kNone) {
    return false;
  }
  if (fresh) {
    if (pause_ > 0) --pause_;
    if (line.marked) line.Clear();
    line.number = segment.line;
  }
  sink_.OnPayload({.text = text,
                   .line = segment.line,
                   .redrawn = segment.redrawn,
                   .source = {},
                   .rank = file_rank_,
                   .wall_ns = capture_wall_ns_,
                   .stamp = {}});
  return true;
}

void WrapperReader::Flush() { Release(false); }

void WrapperReader::Finish() {
  for (const std::unique_ptr<Channel>& channel : docker_) {
    if (channel) channel->Finish();
  }
  // A wrapper that is proven may show another one behind it.
  while (learner_.lines() > 0) {
    const bool proven = learner_.Judge(true, learned_) == WrapperLearner::Verdict::kProven;
    learner_.Clear();
    Release(proven);
  }
  for (Part& part : parts_) {
    Input input;
    input.place = part.place;
    Give(part.line, input, part.text);
    part.text.clear();
  }
}

void WrapperReader::Take(const Input& input, bool learn) {
  Line& line = lines_[input.channel];
  const bool fresh = line.number != input.segment.line;
  if (fresh) {
    if (line.marked) line.Clear();
    line.number = input.segment.line;
  }
  const std::string_view text = Strip(line, input.segment.text, fresh);
  if (learn && Learn(input, fresh, text)) return;
  if (line.cri) return GiveCri(line, input, text, fresh);
  Give(line, input, text);
}

// Whether the segment waits until it is known what its line begins with.
bool WrapperReader::Learn(const Input& input, bool fresh, std::string_view text) {
  const bool open = learner_.lines() > 0;
  if (!fresh) {
    if (open && !held_.empty()) Hold(input);
    return open && !held_.empty();
  }
  if (pause_ > 0) {
    --pause_;
    return false;
  }
  const WrapperMark mark = ReadLikelyMark(text);
  const bool fits = mark.kind != WrapperKind::kNone && !learned_.Knows(mark.kind);
  if (!open && !fits) return false;
  learner_.See(fits ? mark : WrapperMark{}, text);
  if (held_.empty()) {
    lines_before_ = lines_;
    lines_before_[input.channel] = Line{};
  }
  Hold(input);
  const bool full = held_text_.size() > kMostHeldBytes;
  const WrapperLearner::Verdict verdict = learner_.Judge(full, learned_);
  if (verdict == WrapperLearner::Verdict::kOpen) return true;
  const bool proven = verdict == WrapperLearner::Verdict::kProven;
  constexpr unsigned kMostRefused = 7;
  if (!proven) pause_ = uint64_t{64} << std::min(refused_++, kMostRefused);
  learner_.Clear();
  Release(proven);
  return true;
}

void WrapperReader::Hold(const Input& input) {
  Held held{.input = input, .text = held_text_.size(), .stamp = 0};
  held_text_ += input.segment.text;
  held.stamp = held_text_.size();
  held_text_ += input.stamp;
  held_.push_back(held);
}

// Reads the held segments again; `learn`: also for wrappers behind the one that was proven.
void WrapperReader::Release(bool learn) {
  if (held_.empty()) return;
  const std::vector<Held> held = std::exchange(held_, {});
  const std::string text = std::exchange(held_text_, {});
  const std::string_view all = text;
  lines_ = lines_before_;
  for (const Held& one : held) {
    Input input = one.input;
    input.segment.text = all.substr(one.text, input.segment.text.size());
    input.stamp = all.substr(one.stamp, input.stamp.size());
    Take(input, learn);
  }
}

std::string_view WrapperReader::Strip(Line& line, std::string_view text, bool fresh) {
  bool first = !fresh;
  for (int i = 0; i < kMostNested; ++i) {
    WrapperMark mark = ReadSureMark(text);
    if (mark.kind == WrapperKind::kNone) mark = learned_.Read(text);
    if (mark.kind == WrapperKind::kNone) break;
    // A line of another writer behind a carriage return.
    if (std::exchange(first, false)) {
      line.source.clear();
      line.rank.reset();
    }
    Note(line, mark);
    text.remove_prefix(mark.length);
    const bool goes_on = mark.kind == WrapperKind::kCri && !parts_[mark.error_stream].text.empty();
    if (goes_on) break;
  }
  return line.ray ? WithoutRayRepeats(text) : text;
}

void WrapperReader::Note(Line& line, const WrapperMark& mark) {
  line.marked = true;
  if (!mark.source.empty() && line.source != mark.source) {
    if (!line.source.empty()) line.source += ' ';
    line.source += mark.source;
  }
  if (mark.rank) {
    // "[default3]:" counts inside a node: behind a task's number it is no rank of the job.
    const bool unsure = mark.local_rank && line.rank.has_value();
    line.rank = unsure ? std::nullopt : mark.rank;
  }
  const std::optional<int64_t> wall_ns = MarkWallNs(mark.stamp);
  if (line.stamp.empty() || wall_ns) line.stamp.assign(mark.stamp);
  if (wall_ns) line.wall_ns = wall_ns;
  if (mark.kind == WrapperKind::kRay) line.ray = true;
  if (mark.kind == WrapperKind::kCri) {
    line.cri = true;
    line.cri_error = mark.error_stream;
    line.partial = mark.partial;
  }
}

// Joins a line that the runtime cut with its begin.
void WrapperReader::GiveCri(Line& line, const Input& input, std::string_view text, bool fresh) {
  Part& part = parts_[line.cri_error];
  const bool cut = line.partial && !input.segment.redrawn;
  if (!cut && (!fresh || part.text.empty())) return Give(line, input, text);
  Input joined = input;
  if (fresh && !part.text.empty()) {
    joined.place = part.place;
    line.source = part.line.source;
    line.rank = part.line.rank;
  }
  std::string whole;
  if (fresh) whole = std::exchange(part.text, {});
  whole += text.substr(0, kMostSegmentBytes - std::min(whole.size(), kMostSegmentBytes));
  if (!cut) return Give(line, joined, whole);
  part.text = std::move(whole);
  part.line = line;
  part.place = joined.place;
}

void WrapperReader::Give(const Line& line, const Input& input, std::string_view text) {
  if (text.empty()) return;
  sink_.OnPayload({.text = text,
                   .line = input.place,
                   .redrawn = input.segment.redrawn,
                   .source = line.source,
                   .rank = line.rank ? line.rank : file_rank_,
                   .wall_ns = line.wall_ns ? line.wall_ns : input.wall_ns,
                   .stamp = line.stamp.empty() ? input.stamp : line.stamp});
}

}  // namespace epochmeter::ingest::log
