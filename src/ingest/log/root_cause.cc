// SPDX-License-Identifier: Apache-2.0
#include "ingest/log/root_cause.h"

#include <algorithm>
#include <array>
#include <tuple>

#include "base/strings.h"
#include "ingest/log/event_kinds.h"
#include "ingest/log/events/event_text.h"

namespace epochmeter::ingest::log {
namespace {

using std::string_view;

constexpr size_t kMostFiles = 4096;
constexpr size_t kMostEvents = 64;      // of one file's failure
constexpr uint64_t kGoesOn = 20;        // records after which a failure did not end the training
constexpr uint64_t kLinesApart = 3000;  // between the events of one failure
constexpr int64_t kNsApart = int64_t{30} * 60 * 1'000'000'000;

// What a process says when another one is gone.
constexpr auto kFollowing = std::to_array<string_view>({"Connection closed by peer",
                                                        "Connection reset by peer",
                                                        "Broken pipe",
                                                        "Socket closed",
                                                        "Connection refused",
                                                        "NCCL communicator was aborted",
                                                        "remote process exited",
                                                        "unhandled system error",
                                                        "ncclRemoteError",
                                                        "ncclSystemError",
                                                        "got signal: 15",
                                                        "SIGTERM",
                                                        "Blocking queue is killed",
                                                        "is unavailable",
                                                        "peer closed",
                                                        "heartbeat",
                                                        "TCPStore",
                                                        "Caught collective operation timeout",
                                                        "collective operation timeout",
                                                        "Terminated",
                                                        "Gloo connectFullMesh failed",
                                                        "recvValue failed",
                                                        "Stop_waiting response"});

bool SaysOtherIsGone(string_view text) {
  return std::any_of(kFollowing.begin(), kFollowing.end(),
                     [text](string_view words) { return Contains(text, words); });
}

bool IsPython(const LogEvent& event) {
  return event.kind == "traceback" || event.kind == "exception";
}

}  // namespace

RootCauseFinder::Weight RootCauseFinder::WeightOf(const LogEvent& event) {
  const EventKind* kind = FindEventKind(event.kind);
  if (kind == nullptr || kind->role == EventRole::kNote) return Weight::kNone;
  if (IsPython(event)) {
    const string_view type = FindText(event, "type");
    if (FindInt(event, "logged")) return Weight::kNone;
    for (const string_view launcher :
         {"ChildFailedError", "CalledProcessError", "ProcessExitedException"}) {
      if (base::EndsWith(type, launcher)) return Weight::kConfirms;
    }
    if (type.empty() || base::EndsWith(type, "SignalException")) return Weight::kFollows;
    return SaysOtherIsGone(FindText(event, "message")) ? Weight::kFollows : Weight::kCause;
  }
  if (event.kind == "fatal_signal_paddle") {
    const bool ended = Contains(FindText(event, "signal_name"), "ermination");
    return ended ? Weight::kFollows : Weight::kCause;
  }
  if (event.kind == "ray_worker_died") {
    return FindText(event, "what") == "out of memory" ? Weight::kCause : Weight::kFollows;
  }
  // They may be why, or may have been going on for long.
  for (const string_view weak :
       {"killed", "nan_loss", "data_error", "nccl_timeout", "nccl_error"}) {
    if (event.kind == weak) return Weight::kMaybe;
  }
  if (kind->role == EventRole::kRoot) return Weight::kCause;
  return kind->role == EventRole::kCascade ? Weight::kFollows : Weight::kConfirms;
}

bool RootCauseFinder::Recovered(const File& file) {
  return file.since >= kGoesOn || (file.records == 0 && file.since > 0);
}

bool RootCauseFinder::BeginsAnother(const File& file, const LogEvent& event) {
  if (file.events.empty()) return false;
  if (Recovered(file)) return true;
  const LogEvent& last = file.events.back().event;
  if (last.place.wall_ns && event.place.wall_ns) {
    return *event.place.wall_ns - *last.place.wall_ns > kNsApart;
  }
  return event.place.line > file.last_line + kLinesApart;
}

// Null where there are too many.
RootCauseFinder::File* RootCauseFinder::Find(uint32_t file) {
  if (last_ != nullptr && last_->first == file) return &last_->second;
  if (!files_.contains(file) && files_.size() >= kMostFiles) return nullptr;
  last_ = &*files_.try_emplace(file).first;
  return &last_->second;
}

void RootCauseFinder::Record(const LogRecord& record) {
  if (record.kind != RecordKind::kTrain) return;
  File* found = Find(record.place.file);
  if (found == nullptr) return;
  File& file = *found;
  if (record.start > file.start && !file.events.empty() && record.place.line > file.last_line) {
    file.events.clear();
    file.records = 0;
    file.since = 0;
  }
  file.start = std::max(file.start, record.start);
  if (!file.events.empty() && record.place.line > file.last_line) {
    ++file.since;
  } else {
    ++file.records;
  }
}

void RootCauseFinder::Event(const LogEvent& event) {
  File* found = Find(event.place.file);
  if (found == nullptr) return;
  File& file = *found;
  // A training that starts here has its own failures.
  const bool start = event.kind == "run_start" || event.kind == "total_steps";
  if (start && event.place.line > file.last_line) {
    file = File{};
    return;
  }
  const Weight weight = WeightOf(event);
  if (weight == Weight::kNone) return;
  if (BeginsAnother(file, event)) {
    file.events.clear();
    file.records += file.since;
    file.since = 0;
  }
  file.last_line = std::max({file.last_line, event.place.line, event.last_line});
  if (file.events.size() < kMostEvents) file.events.push_back({event, weight});
}

bool RootCauseFinder::Before(const Candidate& a, const Candidate& b) {
  const LinePlace& x = a.event.place;
  const LinePlace& y = b.event.place;
  if (x.file != y.file && x.wall_ns && y.wall_ns && *x.wall_ns != *y.wall_ns) {
    return *x.wall_ns < *y.wall_ns;
  }
  return std::tie(x.file, x.line) < std::tie(y.file, y.line);
}

// A traceback that ends in an event of its own kind is that event.
const RootCauseFinder::Candidate& RootCauseFinder::MoreSpecific(
    const Candidate& found, const std::vector<const Candidate*>& all) {
  if (!IsPython(found.event)) return found;
  const Candidate* best = &found;
  for (const Candidate* other : all) {
    const LinePlace& place = other->event.place;
    if (place.file != found.event.place.file || place.stream != found.event.place.stream ||
        place.line < found.event.place.line || place.line > found.event.last_line) {
      continue;
    }
    const bool specific = !IsPython(other->event) && other->weight >= Weight::kMaybe;
    if (specific) return *other;
    if (other->event.kind == "exception") best = other;
  }
  return *best;
}

std::optional<model::LogCause> RootCauseFinder::Take() const {
  std::vector<const Candidate*> all;
  for (const auto& [number, file] : files_) {
    if (Recovered(file)) continue;
    for (const Candidate& candidate : file.events) all.push_back(&candidate);
  }
  const Candidate* found = nullptr;
  for (const Candidate* candidate : all) {
    if (found == nullptr || candidate->weight > found->weight ||
        (candidate->weight == found->weight && Before(*candidate, *found))) {
      found = candidate;
    }
  }
  if (found == nullptr || found->weight < Weight::kConfirms) return {};
  const Candidate& cause = MoreSpecific(*found, all);
  const LogEvent& event = cause.event;
  model::LogCause result;
  result.kind = event.kind;
  result.text = event.text;
  const string_view type = FindText(event, "type");
  if (IsPython(event)) {
    result.text = std::string(type) + ": " + std::string(FindText(event, "message"));
  }
  result.file = event.place.file;
  result.line = event.place.line;
  result.rank = event.place.rank;
  result.why = Why(cause, all);
  const bool one_order = files_.size() == 1 || event.place.wall_ns.has_value();
  result.confidence = cause.weight < Weight::kMaybe                 ? "low"
                      : cause.weight == Weight::kCause && one_order ? "high"
                                                                    : "medium";
  return result;
}

model::Message RootCauseFinder::Why(const Candidate& cause,
                                    const std::vector<const Candidate*>& all) {
  const LogEvent& event = cause.event;
  const EventKind* kind = FindEventKind(event.kind);
  model::Message why;
  const auto say = [&why](const std::string& en, const std::string& zh) {
    why.en += (why.en.empty() ? "" : " ") + en;
    why.zh += zh;
  };
  if (event.kind == "killed") {
    say("A process was killed by signal 9. Nothing here says by whom: the kernel's log tells "
        "whether "
        "memory ran out.",
        "进程被信号 9 杀死，日志没有说明原因；是否内存不足要看内核日志。");
  } else if (event.kind == "nan_loss") {
    say("The loss is not finite from here on, and nothing before it failed.",
        "从这里开始损失不是有限值，之前没有其他故障。");
  } else if (const auto culprit = FindInt(event, "culprit_rank"); culprit) {
    say("Rank " + std::to_string(*culprit) + " did not join the collective the others waited for.",
        "进程 " + std::to_string(*culprit) + " 没有加入其他进程等待的集合通信。");
  } else if (cause.weight == Weight::kFollows || cause.weight == Weight::kConfirms) {
    say("This only says that something else had failed, and the log does not show what: look at "
        "the logs of the other ranks.",
        "这只说明别处先出了故障，日志没有显示是什么：请查看其他进程的日志。");
  } else {
    say("It is the first event that explains the end: " + std::string(kind->en) + ".",
        "这是第一个能解释结束原因的事件：" + std::string(kind->zh) + "。");
  }
  std::optional<int64_t> named;
  size_t followed = 0;
  for (const Candidate* other : all) {
    if (other == &cause || !Before(cause, *other)) continue;
    followed += other->weight == Weight::kFollows && other->event.kind != "exception" ? 1U : 0U;
    if (other->event.kind == "child_failed") named = FindInt(other->event, "named_rank");
  }
  if (followed > 0) {
    say("Other processes lost their peer afterwards.", "之后其他进程因失去对端而结束。");
  }
  if (named && event.place.rank && *named != *event.place.rank) {
    say("The launcher names rank " + std::to_string(*named) + ", which failed later.",
        "启动器指出的是进程 " + std::to_string(*named) + "，但它出错更晚。");
  }
  return why;
}

}  // namespace epochmeter::ingest::log
