// SPDX-License-Identifier: Apache-2.0
#include "runfile/pending.h"

#include <utility>

namespace epochmeter::runfile {

void Pending::Add(const model::Record& record, std::string_view encoded) {
  if (const auto* text = std::get_if<model::LogText>(&record)) {
    log_ += encoded;
    log_text_bytes_ += text->text.size();
    ++log_count_;
    return;
  }
  records_ += encoded;
  ++count_;
}

void Pending::ForgetRecords() {
  records_ = {};
  count_ = 0;
}

void Pending::ForgetLog() {
  log_ = {};
  log_count_ = log_text_bytes_ = 0;
}

size_t Pending::DropLog() {
  const size_t bytes = log_.size();
  drops_.text_bytes += log_text_bytes_;
  ForgetLog();
  return bytes;
}

std::vector<model::Loss> Pending::TakeDrops(int64_t t_ns) {
  std::vector<model::Loss> losses;
  const auto add = [&](const char* kind, uint64_t count, const char* detail, const char* help) {
    if (count == 0) return;
    losses.push_back({.t_ns = t_ns,
                      .severity = model::LossSeverity::kDataLoss,
                      .kind = kind,
                      .count = count,
                      .detail = detail,
                      .help = help});
  };
  const Drops drops = std::exchange(drops_, {});
  add("recorder.dropped_records", drops.records,
      "records that found no room in memory because they came faster than the disk took them, or "
      "the disk failed; or larger than 4 MiB",
      "Free space on the run file's disk, or record to another one.");
  add("log.no_room", drops.text_bytes,
      "bytes of output given up to make room for samples and events, because it came faster than "
      "the disk took it, or the disk was full",
      "Free space on the run file's disk, or record to another one.");
  add("value.out_of_range", drops.values,
      "values that are no number, too large for their resolution, or of an undefined series",
      "The source reports nonsense; see its state records.");
  return losses;
}

}  // namespace epochmeter::runfile
