// SPDX-License-Identifier: Apache-2.0
#include "ingest/log/events.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ingest/log/event_kinds.h"
#include "ingest/log/events/anchor_set.h"
#include "ingest/log/events/event_text.h"
#include "ingest/log/oom_post_mortem.h"

namespace epochmeter::ingest::log {
namespace {

constexpr size_t kMostBlocks = 4;    // open in one stream
constexpr size_t kMostWaiting = 64;  // exceptions of one file that wait for a record before them

// The last family: remarks, which also reads lines without any of its words.
const uint64_t kNotes = uint64_t{1} << (EventFamilies().size() - 1);

const AnchorSet& Anchors() {
  static const AnchorSet set(EventFamilies());
  return set;
}

std::string LossText(double loss) {
  if (std::isnan(loss)) return "NaN";
  return loss > 0 ? "Infinity" : "-Infinity";
}

struct Stream {
  std::vector<std::unique_ptr<EventBlock>> blocks;
  EventMemory memory;
};

struct FileState {
  uint64_t first_record_line = 0;  // of training; 0: none yet
  std::vector<LogEvent> waiting;
};

}  // namespace

class EventReader::Impl : public EventContext {
 public:
  explicit Impl(LogSink& sink) : sink_(sink) {}

  void Line(const LinePlace& place, std::string_view text) {
    const EventLine line{place, text};
    if (last_stream_ == nullptr || last_stream_->first != place.stream) {
      last_stream_ = &*streams_.try_emplace(place.stream).first;
    }
    stream_ = &last_stream_->second;
    if (stream_->blocks.empty()) {
      Dispatch(line);
      if (!opened_.empty()) EndBlocks({});
      return MarkOpen(place.stream);
    }
    // Blocks stay where they are while families open new ones behind them.
    const size_t open = stream_->blocks.size();
    std::vector<bool> over(open, false), looked(open, false);
    bool taken = false;
    for (size_t i = 0; i < open && !taken; ++i) {
      const EventBlock::Take take = stream_->blocks[i]->Next(line);
      over[i] = take == EventBlock::Take::kOver;
      looked[i] = take == EventBlock::Take::kLooked;
      taken = take == EventBlock::Take::kTaken;
    }
    const bool claimed = !taken && Dispatch(line);
    for (size_t i = 0; i < open; ++i) {
      if (claimed && looked[i]) stream_->blocks[i]->Claimed();
      over[i] = over[i] || stream_->blocks[i]->Done();
    }
    EndBlocks(over);
    MarkOpen(place.stream);
  }

  bool WantsNext(uint32_t stream) const { return stream < open_.size() && open_[stream]; }

  void Record(const LogRecord& record) {
    if (record.kind != RecordKind::kTrain) return;
    post_mortem_.Record(record);
    if (last_file_ == nullptr || last_file_->first != record.place.file) {
      last_file_ = &*files_.try_emplace(record.place.file).first;
    }
    FileState& file = last_file_->second;
    if (file.first_record_line == 0 || record.place.line < file.first_record_line) {
      file.first_record_line = record.place.line;
      EmitWaiting(&file);
    }
    const LogValue* loss = record.Find(Role::kLoss);
    if (loss == nullptr || std::isfinite(loss->number)) return;
    LogEvent event;
    event.kind = "nan_loss";
    event.place = record.place;
    event.last_line = record.last_line;
    event.text = CutText(MessageOf(record.text), kMostEventText);
    AddText(&event, "loss", LossText(loss->number));
    AddNumber(&event, "step", record.Number(Role::kStep));
    AddNumber(&event, "epoch", record.Number(Role::kEpoch));
    sink_.OnEvent(event);
  }

  void Finish() {
    for (auto& [id, stream] : streams_) {
      stream_ = &stream;
      EndBlocks(std::vector<bool>(stream.blocks.size(), true));
      MarkOpen(id);
    }
  }

  void Emit(LogEvent event) override {
    if (event.kind == "oom_gpu") post_mortem_.Explain(&event);
    sink_.OnEvent(event);
  }

  void EmitIfTrained(LogEvent event) override {
    FileState& file = files_[event.place.file];
    if (file.first_record_line != 0 && file.first_record_line < event.place.line) {
      Emit(std::move(event));
    } else if (file.waiting.size() < kMostWaiting) {
      file.waiting.push_back(std::move(event));
    }
  }

  void Open(std::unique_ptr<EventBlock> block) override { opened_.push_back(std::move(block)); }

  EventMemory& memory() override { return stream_->memory; }

 private:
  bool Dispatch(const EventLine& line) {
    uint64_t families = Anchors().Find(line.text);
    if (IsGlogWarning(line.text)) families |= kNotes;
    if ((families & kNotes) != 0) post_mortem_.Line(line);
    if (IsProse(line.text)) return false;
    bool claimed = false;
    while (families != 0 && !claimed) {
      const auto family = static_cast<size_t>(std::countr_zero(families));
      families &= families - 1;
      claimed = EventFamilies()[family]->read(line, *this);
    }
    return claimed;
  }

  // Ends the blocks that are over, and takes in those that were opened meanwhile.
  void EndBlocks(const std::vector<bool>& over) {
    std::vector<std::unique_ptr<EventBlock>> left;
    std::vector<std::unique_ptr<EventBlock>> ended;
    for (size_t i = 0; i < stream_->blocks.size(); ++i) {
      (over[i] ? ended : left).push_back(std::move(stream_->blocks[i]));
    }
    for (auto& block : opened_) left.push_back(std::move(block));
    opened_.clear();
    while (left.size() > kMostBlocks) {
      ended.push_back(std::move(left.front()));
      left.erase(left.begin());
    }
    for (const auto& block : ended) block->End(*this);
    stream_->blocks = std::move(left);
  }

  void MarkOpen(uint32_t stream) {
    if (stream >= open_.size()) open_.resize(stream + 1);
    open_[stream] = static_cast<char>(!stream_->blocks.empty());
  }

  void EmitWaiting(FileState* file) {
    for (LogEvent& event : std::exchange(file->waiting, {})) {
      if (file->first_record_line < event.place.line) {
        Emit(std::move(event));
      } else {
        file->waiting.push_back(std::move(event));
      }
    }
  }

  LogSink& sink_;
  OomPostMortem post_mortem_;
  std::unordered_map<uint32_t, Stream> streams_;
  std::unordered_map<uint32_t, FileState> files_;
  std::pair<const uint32_t, FileState>* last_file_ = nullptr;  // of the record before
  std::vector<char> open_;                                     // by stream
  Stream* stream_ = nullptr;
  std::pair<const uint32_t, Stream>* last_stream_ = nullptr;  // of the line before
  std::vector<std::unique_ptr<EventBlock>> opened_;
};

EventReader::EventReader(LogSink& sink) : impl_(std::make_unique<Impl>(sink)) {}
EventReader::~EventReader() = default;

bool EventReader::MayMatter(std::string_view text) {
  return IsGlogWarning(text) || Anchors().Find(text) != 0;
}
void EventReader::Line(const LinePlace& place, std::string_view text) { impl_->Line(place, text); }
bool EventReader::WantsNext(uint32_t stream) const { return impl_->WantsNext(stream); }
void EventReader::Record(const LogRecord& record) { impl_->Record(record); }
void EventReader::Finish() { impl_->Finish(); }

}  // namespace epochmeter::ingest::log
