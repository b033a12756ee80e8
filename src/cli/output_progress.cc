// SPDX-License-Identifier: Apache-2.0
#include "cli/output_progress.h"

#include <algorithm>
#include <utility>

namespace epochmeter::cli {
namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
constexpr int64_t kTellPeriodNs = 10 * base::kNsPerSecond;
constexpr size_t kMostBegun = 64 * 1024;
constexpr std::array<const char*, 3> kNames = {"stdout", "stderr", "output"};

}  // namespace

void OutputProgress::Gate::Write(const model::Record& record) {
  if (shut_) return;
  if (!holding_) return sink_.Write(record);
  held_.push_back(record);
  if (held_.size() == kMostHeld) Open();
}

void OutputProgress::Gate::Open() {
  holding_ = false;
  for (const model::Record& record : std::exchange(held_, {})) sink_.Write(record);
}

void OutputProgress::Gate::Shut() {
  shut_ = true;
  held_ = {};
}

OutputProgress::OutputProgress(model::Registry& registry, model::Sink& sink, const model::Env& env,
                               bool resumed)
    : sink_(sink),
      env_(env),
      gate_(sink),
      steps_(registry, gate_,
             {.arrival_of =
                  [this](const ingest::log::LinePlace& place) {
                    return by_file_.at(place.file)->arrivals.At(place);
                  },
              .resumed = resumed}),
      engine_(std::make_unique<ingest::log::LogEngine>(steps_)) {}

void OutputProgress::Take(const CaptureHeader& header, std::string_view bytes) {
  if (engine_ == nullptr || header.stream < 1 || header.stream > streams_.size()) return;
  Stream& stream = streams_[header.stream - 1];
  if (header.dropped_bytes > 0) Skip({}, &stream);
  if (!MayRead(header.t_ns)) return Skip(bytes, &stream);
  const int64_t begin_ns = env_.thread_cpu_ns();
  Read(header.t_ns, bytes, &stream);
  cpu_left_ns_ -= env_.thread_cpu_ns() - begin_ns;
  idle_at_ns_ = env_.monotonic_ns() + kIdleNs;
  if (gate_.holds() && open_at_ns_ == kNever) open_at_ns_ = env_.monotonic_ns() + kHoldNs;
}

bool OutputProgress::MayRead(int64_t t_ns) {
  if (last_ns_ > 0 && t_ns > last_ns_) {
    cpu_left_ns_ += static_cast<int64_t>(static_cast<double>(t_ns - last_ns_) * kMostCpuRatio);
    cpu_left_ns_ = std::min(cpu_left_ns_, kBurstCpuNs);
  }
  last_ns_ = std::max(last_ns_, t_ns);
  return cpu_left_ns_ > 0;
}

// Whole lines only, so that one which lost a part never looks like another.
void OutputProgress::Read(int64_t t_ns, std::string_view bytes, Stream* stream) {
  if (stream->skipping) {
    const size_t end = bytes.find('\n');
    const size_t rest = end == std::string_view::npos ? bytes.size() : end + 1;
    skipped_bytes_ += rest;
    bytes.remove_prefix(rest);
    stream->skipping = end == std::string_view::npos;
  }
  const size_t last = bytes.find_last_of("\r\n");
  const bool flood = stream->begun.size() + bytes.size() > kMostBegun;
  const size_t whole = last != std::string_view::npos ? last + 1 : (flood ? bytes.size() : 0);
  if (whole > 0 && !stream->begun.empty()) {
    stream->begun += bytes.substr(0, whole);
    Feed(t_ns, stream->begun, stream);
    stream->begun.clear();
  } else if (whole > 0) {
    Feed(t_ns, bytes.substr(0, whole), stream);
  }
  stream->begun += bytes.substr(whole);
}

// The engine's wall time is our clock: it only hands it back, with what was printed then.
void OutputProgress::Feed(int64_t t_ns, std::string_view bytes, Stream* stream) {
  if (!stream->file) {
    ingest::log::LogFile file;
    file.name = kNames.at(static_cast<size_t>(stream - streams_.data()));
    stream->file = engine_->Open(file);
    by_file_.push_back(stream);
  }
  const int64_t fed_ns = stream->arrivals.Add(t_ns, bytes);
  engine_->Feed(*stream->file, bytes, fed_ns);
}

void OutputProgress::Skip(std::string_view bytes, Stream* stream) {
  skipped_bytes_ += bytes.size() + stream->begun.size();
  stream->begun.clear();
  stream->skipping = true;
}

void OutputProgress::LeaveToClient() {
  if (engine_ == nullptr) return;
  gate_.Shut();
  engine_.reset();
  idle_at_ns_ = open_at_ns_ = kNever;
  skipped_bytes_ = 0;
}

int64_t OutputProgress::NextDueNs() const { return std::min(idle_at_ns_, open_at_ns_); }

void OutputProgress::Maintain(int64_t now_ns) {
  if (engine_ == nullptr) return;
  if (now_ns >= idle_at_ns_) {
    idle_at_ns_ = kNever;
    engine_->Idle();
    if (gate_.holds() && open_at_ns_ == kNever) open_at_ns_ = now_ns + kHoldNs;
  }
  if (now_ns >= open_at_ns_) OpenGate();
  if (now_ns - told_ns_ >= kTellPeriodNs) TellSkipped(now_ns);
}

void OutputProgress::OpenGate() {
  open_at_ns_ = kNever;
  gate_.Open();
  steps_.TakeMemory();
}

void OutputProgress::TellSkipped(int64_t t_ns) {
  told_ns_ = t_ns;
  if (skipped_bytes_ == 0) return;
  sink_.Write(model::Loss{
      .t_ns = t_ns,
      .severity = model::LossSeverity::kInfo,
      .kind = "output.not_read",
      .count = std::exchange(skipped_bytes_, 0),
      .detail = "bytes of output in which no epochs and steps were looked for",
      .help = "The training prints more than a tenth of a core can read. Print less often, or have "
              "the Python client tell its steps."});
}

void OutputProgress::Finish(bool well, int64_t now_ns) {
  if (engine_ == nullptr) return;
  for (Stream& stream : streams_) {
    if (!stream.begun.empty()) Feed(std::max(last_ns_, int64_t{0}), stream.begun, &stream);
    stream.begun.clear();
  }
  engine_->Finish();
  gate_.Open();
  steps_.Finish(well, now_ns);
  TellSkipped(now_ns);
}

}  // namespace epochmeter::cli
