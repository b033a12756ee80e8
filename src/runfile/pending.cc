// SPDX-License-Identifier: Apache-2.0
#include "runfile/pending.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"

namespace epochmeter::runfile {
namespace {

constexpr size_t kBlockBytes = size_t{1} << 20;

std::string After(int64_t start_ns, int64_t t_ns) {
  return base::FormatDuration(base::SecondsFromNs(std::max<int64_t>(0, t_ns - start_ns)));
}

}  // namespace

int64_t TimeOf(const model::Record& record) {
  return std::visit(
      [](const auto& value) -> int64_t {
        if constexpr (requires { value.t_ns; }) return value.t_ns;
        return 0;
      },
      record);
}

void TimeSpan::Add(const TimeSpan& other) {
  first_ns = std::min(first_ns, other.first_ns);
  last_ns = std::max(last_ns, other.last_ns);
}

std::string TimeSpan::Text(int64_t start_ns) const {
  if (empty()) return {};
  return ", of " + After(start_ns, first_ns) + " to " + After(start_ns, last_ns) +
         " after the start";
}

void Blocks::Add(std::string_view encoded, int64_t t_ns, uint64_t text_bytes) {
  if (blocks_.empty() || blocks_.back().bytes.size() + encoded.size() > kBlockBytes) {
    blocks_.emplace_back();
  }
  Block& block = blocks_.back();
  block.bytes += encoded;
  ++block.count;
  block.text_bytes += text_bytes;
  if (t_ns != 0) block.span.Add({.first_ns = t_ns, .last_ns = t_ns});
  bytes_ += encoded.size();
  ++count_;
}

std::string_view Blocks::front() const {
  return blocks_.empty() ? std::string_view() : blocks_.front().bytes;
}

void Blocks::PopFront() {
  if (blocks_.empty()) return;
  bytes_ -= blocks_.front().bytes.size();
  count_ -= blocks_.front().count;
  blocks_.pop_front();
}

std::deque<Blocks::Block> Blocks::Take() {
  bytes_ = 0;
  count_ = 0;
  return std::exchange(blocks_, {});
}

void Pending::Add(const model::Record& record, std::string_view encoded) {
  const auto* text = std::get_if<model::LogText>(&record);
  if (text != nullptr) return log_.Add(encoded, text->t_ns, text->text.size());
  records_.Add(encoded, TimeOf(record), 0);
}

size_t Pending::DropLog() {
  const size_t bytes = log_.bytes();
  for (const Blocks::Block& block : log_.Take()) {
    drops_.text_bytes += block.text_bytes;
    drops_.of_text.Add(block.span);
  }
  return bytes;
}

void Pending::CountRecord(int64_t t_ns) {
  ++drops_.records;
  if (t_ns != 0) drops_.of_records.Add({.first_ns = t_ns, .last_ns = t_ns});
}

void Pending::CountText(uint64_t bytes, int64_t t_ns) {
  drops_.text_bytes += bytes;
  drops_.of_text.Add({.first_ns = t_ns, .last_ns = t_ns});
}

std::vector<model::Loss> Pending::TakeDrops(int64_t t_ns, int64_t start_ns) {
  std::vector<model::Loss> losses;
  const auto add = [&](const char* kind, uint64_t count, std::string detail, const char* help) {
    if (count == 0) return;
    losses.push_back({.t_ns = t_ns,
                      .severity = model::LossSeverity::kDataLoss,
                      .kind = kind,
                      .count = count,
                      .detail = std::move(detail),
                      .help = help});
  };
  const Drops drops = std::exchange(drops_, {});
  add("recorder.dropped_records", drops.records,
      "records that found no room in memory because they came faster than the disk took them, or "
      "the disk failed; or larger than 4 MiB" +
          drops.of_records.Text(start_ns),
      "Free space on the run file's disk, or record to another one.");
  add("log.no_room", drops.text_bytes,
      "bytes of output given up to make room for samples and events, because it came faster than "
      "the disk took it, or the disk was full" +
          drops.of_text.Text(start_ns),
      "Free space on the run file's disk, or record to another one.");
  add("value.out_of_range", drops.values,
      "values that are no number, too large for their resolution, or of an undefined series",
      "The source reports nonsense; see its state records.");
  return losses;
}

}  // namespace epochmeter::runfile
