// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <deque>
#include <map>

#include "base/strings.h"
#include "render/page_parts.h"

namespace epochmeter::render {
namespace {

using base::JsonWriter;
using model::Event;
using model::EventKind;

struct Happening {
  int64_t t_ns = 0;
  std::string_view kind;
  std::optional<int32_t> rank;
  std::string name, text;
  std::string text_zh;  // empty: as the text
  int weight = 0;       // what stays when there are too many
};

std::vector<Happening> Happenings(const model::Run& run, const model::Report& report) {
  std::vector<Happening> all;
  for (const Event& event : run.events) {
    const bool exception = event.kind == EventKind::kException;
    if (!exception && event.kind != EventKind::kMark && event.kind != EventKind::kAlert) continue;
    const std::string_view text = event.Text("message").value_or(event.Text("text").value_or(""));
    all.push_back({.t_ns = event.t_ns,
                   .kind = model::EventKindName(event.kind),
                   .rank = event.rank,
                   .name = event.name,
                   .text = std::string(text),
                   .text_zh = {},
                   .weight = exception ? 2 : 0});
  }
  for (const model::Incident& incident : report.incidents) {
    all.push_back({.t_ns = incident.t_ns,
                   .kind = "incident",
                   .name = incident.kind,
                   .text = incident.text,
                   .text_zh = incident.text_zh,
                   .weight = 3});
  }
  for (const model::Loss& loss : run.losses) {
    if (loss.severity == model::LossSeverity::kInfo) continue;
    all.push_back({.t_ns = loss.t_ns,
                   .kind = "loss",
                   .name = loss.kind,
                   .text = loss.detail,
                   .text_zh = {},
                   .weight = 1});
  }
  return all;
}

std::string Cut(std::string_view text, size_t most) {
  if (text.size() <= most) return std::string(text);
  // Not inside a character; JsonWriter cares for what is no UTF-8 at all.
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xC0) == 0x80) --most;
  return std::string(text.substr(0, most)) + "…";
}

void WriteEvents(std::vector<Happening> all, const PageLimits& limits, const PageClock& clock,
                 JsonWriter* json) {
  const auto earlier = [](const Happening& a, const Happening& b) { return a.t_ns < b.t_ns; };
  std::stable_sort(all.begin(), all.end(), earlier);
  if (all.size() > limits.events) {
    std::stable_sort(all.begin(), all.end(),
                     [](const Happening& a, const Happening& b) { return a.weight > b.weight; });
    all.resize(limits.events);
    std::stable_sort(all.begin(), all.end(), earlier);
  }
  json->Key("events").BeginArray();
  for (const Happening& event : all) {
    json->BeginObject()
        .Field("t", clock.Ms(event.t_ns))
        .Field("kind", event.kind)
        .Field("rank", event.rank)
        .Field("name", Cut(event.name, limits.line_bytes))
        .Field("text", Cut(event.text, limits.line_bytes));
    if (!event.text_zh.empty()) json->Field("text_zh", Cut(event.text_zh, limits.line_bytes));
    json->EndObject();
  }
  json->EndArray();
}

struct Line {
  int64_t t_ns = 0;
  uint8_t stream = 1;
  std::string text;
};

// Keeps the first and the last lines of an output of any length.
class LineKeeper {
 public:
  explicit LineKeeper(const PageLimits& limits) : limits_(limits) {}

  // A piece of output as it came; lines are put together for each stream.
  void Take(const model::LogText& piece) {
    std::string_view rest = piece.text;
    while (!rest.empty()) {
      Line& open = open_[piece.stream];
      if (open.text.empty()) open = {.t_ns = piece.t_ns, .stream = piece.stream, .text = {}};
      const size_t end = rest.find('\n');
      const std::string_view part = rest.substr(0, end);
      // What is far beyond the cut is not needed.
      if (open.text.size() <= limits_.line_bytes) open.text += part;
      if (end == std::string_view::npos) return;
      Keep(std::move(open));
      open_.erase(piece.stream);
      rest.remove_prefix(end + 1);
    }
  }

  void Write(const PageClock& clock, JsonWriter* json) {
    for (auto& [stream, line] : open_) Keep(std::move(line));
    open_.clear();
    json->Key("log").BeginArray();
    for (const Line& line : head_) WriteLine(line, clock, json);
    for (const Line& line : tail_) WriteLine(line, clock, json);
    json->EndArray().Field("log_omitted", omitted_);
  }

 private:
  void Keep(Line line) {
    if (!line.text.empty() && line.text.back() == '\r') line.text.pop_back();
    // Of a progress bar the last state counts.
    const size_t again = line.text.rfind('\r');
    if (again != std::string::npos) line.text.erase(0, again + 1);
    if (head_.size() < limits_.log_head) {
      head_.push_back(std::move(line));
      return;
    }
    tail_.push_back(std::move(line));
    if (tail_.size() <= limits_.log_tail) return;
    tail_.pop_front();
    ++omitted_;
  }

  void WriteLine(const Line& line, const PageClock& clock, JsonWriter* json) const {
    constexpr std::string_view kStreams[] = {"output", "stdout", "stderr", "output"};
    json->BeginObject()
        .Field("t", clock.Ms(line.t_ns))
        .Field("stream", kStreams[line.stream < 4 ? line.stream : 0])
        .Field("text", Cut(line.text, limits_.line_bytes))
        .EndObject();
  }

  const PageLimits& limits_;
  std::map<uint8_t, Line> open_;
  std::vector<Line> head_;
  std::deque<Line> tail_;
  uint64_t omitted_ = 0;
};

}  // namespace

void WriteHappenings(const model::Run& run, const model::Report& report, const PageLimits& limits,
                     JsonWriter* json) {
  const PageClock clock(run);
  WriteEvents(Happenings(run, report), limits, clock, json);
  LineKeeper lines(limits);
  for (const model::LogText& piece : run.log) lines.Take(piece);
  lines.Write(clock, json);
}

}  // namespace epochmeter::render
