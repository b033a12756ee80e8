// SPDX-License-Identifier: Apache-2.0
#include "ingest/protocol.h"

#include <algorithm>
#include <array>

namespace epochmeter::ingest {
namespace {

using model::LossSeverity;

constexpr size_t kMaxSenders = 4096;
// The two clocks are the same; this only allows for a read that was interrupted.
constexpr int64_t kMaxFutureNs = 10 * base::kNsPerSecond;

constexpr std::string_view kFormatHelp =
    "Something sends what docs/protocol.md does not allow; look for a program that writes to "
    "EPOCHMETER_SOCKET by itself, or for a client of another version.";

constexpr std::array<LossReason, kRefusalCount> kRefusals = {{
    {"client.refused", LossSeverity::kDataLoss, "datagrams", kFormatHelp},
    {"client.too_long", LossSeverity::kDataLoss, "datagrams",
     "An event was longer than 8192 bytes; log fewer scalars at once or shorter texts."},
    {"client.not_utf8", LossSeverity::kDataLoss, "datagrams", kFormatHelp},
    {"client.not_json", LossSeverity::kDataLoss, "datagrams", kFormatHelp},
    {"client.not_object", LossSeverity::kDataLoss, "datagrams", kFormatHelp},
    {"client.too_deep", LossSeverity::kDataLoss, "datagrams", kFormatHelp},
    {"client.bad_version", LossSeverity::kDataLoss, "datagrams",
     "The client speaks another version of the protocol; use the epochmeter package that came "
     "with this binary."},
    {"client.bad_kind", LossSeverity::kDataLoss, "datagrams", kFormatHelp},
    {"client.missing_field", LossSeverity::kDataLoss, "datagrams", kFormatHelp},
    {"client.unknown_kind", LossSeverity::kDataLoss, "datagrams",
     "The client is newer than this recorder; use the epochmeter package that came with it."},
}};

constexpr LossReason kBadField{"client.bad_field", LossSeverity::kDataLoss, "fields", kFormatHelp};
constexpr LossReason kDropped{
    "client.dropped", LossSeverity::kDataLoss, "events",
    "The training made events faster than they could be taken, or nobody listened for a while; "
    "send fewer, or look for a recorder that was stopped."};
constexpr LossReason kGap{
    "client.sequence_gap", LossSeverity::kDataLoss, "events",
    "Events that the client did send never arrived; look for a recorder that was restarted."};
constexpr LossReason kClock{
    "client.clock", LossSeverity::kInfo, "events",
    "The client's clock is not this host's CLOCK_MONOTONIC; their time of arrival was taken."};

}  // namespace

ProtocolDecoder::ProtocolDecoder(model::Registry& registry, model::Sink& sink, Options options)
    : sink_(sink), options_(options), allocator_(registry), losses_(sink) {}

const model::Event* ProtocolDecoder::Decode(std::string_view datagram, int64_t now_ns,
                                            std::optional<int32_t> sender_pid) {
  last_refusal_ = parser_.Parse(datagram, &message_);
  if (last_refusal_ != Refusal::kNone) {
    ++refused_;
    message_.bad_fields = 0;
    losses_.Add(kRefusals[static_cast<size_t>(last_refusal_)], 1, now_ns, "");
    return nullptr;
  }
  ++accepted_;
  MendTime(now_ns);
  CountMissing({sender_pid.value_or(0), message_.pid}, now_ns);
  const int64_t pid = sender_pid.value_or(0) > 0 ? *sender_pid : message_.pid;
  WriteMemory(pid, now_ns);
  if (message_.bad_fields > 0) losses_.Add(kBadField, message_.bad_fields, now_ns, "");
  auto& event = message_.event;
  if (!event.rank || event.kind == model::EventKind::kHello) {
    event.fields.push_back({.key = "pid", .value = pid});
  }
  record_ = std::move(event);
  sink_.Write(record_);
  return &std::get<model::Event>(record_);
}

void ProtocolDecoder::MendTime(int64_t now_ns) {
  int64_t& t_ns = message_.event.t_ns;
  if (t_ns >= options_.not_before_ns && t_ns - now_ns <= kMaxFutureNs) return;
  losses_.Add(kClock, 1, now_ns, "");
  t_ns = now_ns;
}

void ProtocolDecoder::CountMissing(SenderKey key, int64_t now_ns) {
  if (senders_.size() >= kMaxSenders && !senders_.contains(key)) senders_.clear();
  const auto [known, first] = senders_.try_emplace(key);
  Sender& sender = known->second;
  // A number that does not rise is a new sender under this pid: a fork or an exec.
  const bool fresh = first || message_.seq <= sender.seq;
  const int64_t dropped = message_.dropped.value_or(fresh ? 0 : sender.dropped);
  const int64_t before = fresh ? 0 : sender.dropped;
  const int64_t newly = std::max<int64_t>(dropped - before, 0);
  if (newly > 0) CountDropped(newly, fresh, now_ns);
  if (!fresh) {
    // The numbers of events that the sender lost are in the gap too.
    const int64_t gap = message_.seq - sender.seq - 1;
    if (gap > newly) {
      losses_.Add(kGap, static_cast<uint64_t>(gap - newly), now_ns,
                  "sender " + std::to_string(message_.pid));
    }
  }
  sender = {.seq = message_.seq, .dropped = std::max(dropped, before)};
}

void ProtocolDecoder::CountDropped(int64_t count, bool first, int64_t now_ns) {
  std::string detail = "sender " + std::to_string(message_.pid);
  if (first) detail += ", before it was first heard here";
  losses_.Add(kDropped, static_cast<uint64_t>(count), now_ns, detail);
}

void ProtocolDecoder::WriteMemory(int64_t pid, int64_t now_ns) {
  if (!message_.memory) return;
  model::Samples samples{.t_ns = message_.event.t_ns, .values = {}};
  if (!allocator_.Append(message_.event.rank, pid, *message_.memory, samples)) {
    losses_.Add(kBadField, 1, now_ns, "one device more than a process can have");
  }
  if (!samples.values.empty()) sink_.Write(std::move(samples));
}

}  // namespace epochmeter::ingest
