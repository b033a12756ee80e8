// SPDX-License-Identifier: Apache-2.0
#include "ingest/log/log_summary.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "ingest/log/log_run.h"

namespace epochmeter::ingest::log {
namespace {

constexpr size_t kMostFiles = 4096;
constexpr size_t kMostRanks = 65536;
constexpr size_t kMostShapesTold = 8;
constexpr size_t kMostEpochs = 100'000;

// The loss that a record speaks of: the total, else the first part of it.
const LogValue* LossOf(const IndexedRecord& record) {
  const LogValue* loss = record.Find(Role::kLoss);
  return loss != nullptr ? loss : record.Find(Role::kLossPart);
}

}  // namespace

model::LogFileRow& LogSummary::FileRow(uint32_t file) {
  const size_t row = std::min<size_t>(file, kMostFiles - 1);
  if (report_.files.size() <= row) report_.files.resize(row + 1);
  return report_.files[row];
}

model::LogRankRow& LogSummary::RankRow(std::optional<int32_t> rank) {
  const int32_t key = rank.value_or(-1);
  const bool room = ranks_.contains(key) || ranks_.size() < kMostRanks;
  model::LogRankRow& row = ranks_[room ? key : -1];
  if (room) row.rank = rank;
  return row;
}

void LogSummary::Span(const LinePlace& place) {
  if (!place.wall_ns) return;
  report_.begin_wall_ns = std::min(report_.begin_wall_ns.value_or(*place.wall_ns), *place.wall_ns);
  report_.end_wall_ns = std::max(report_.end_wall_ns.value_or(*place.wall_ns), *place.wall_ns);
}

void LogSummary::OnRecord(const LogRecord& record) {
  Span(record.place);
  if (record.kind != RecordKind::kTrain) {
    shapes_.Add(record);
    for (LogRun* run : runs_) run->Other(record);
  }
  switch (record.kind) {
    case RecordKind::kTrain:
      return AddTrain(record);
    case RecordKind::kEval:
      ++report_.eval_records;
      ++FileRow(record.place.file).eval_records;
      data_place_.Break(record.place.stream);
      if (!report_.first_eval) report_.first_eval = CopyOf(record);
      last_eval_.Keep(record);
      return;
    case RecordKind::kSummary:
      ++report_.summary_records;
      return;
    case RecordKind::kInference:
      ++report_.inference_records;
      return;
  }
}

// The same with its time as that of its epoch.
LogRecord LogSummary::OfEpoch(const LogRecord& record) {
  values_.assign(record.values.begin(), record.values.end());
  for (LogValue& value : values_) {
    if (value.role == Role::kStepTime) value.role = Role::kEpochTime;
  }
  LogRecord changed = record;
  changed.values = values_;
  changed.places = nullptr;
  return changed;
}

void LogSummary::AddTrain(const LogRecord& plain) {
  const IndexedRecord record(plain);
  const StepTiming timing = timer_.Next(record);
  if (!timing.epoch_s) return AddTimed(record, timing);
  const LogRecord of_epoch = OfEpoch(plain);
  AddTimed(of_epoch, timing);
}

void LogSummary::AddTimed(const IndexedRecord& record, const StepTiming& timing) {
  const LogRecord& plain = *record;
  shapes_.Add(plain);
  ++report_.records;
  KeepEnds(plain);
  AddShare(record, timing);
  cause_.Record(plain);
  for (LogRun* run : runs_) run->Train(record, timing);
  data_place_.Add(record, timing);
  AddProgress(record, timing);
  AddLoss(record);
  AddSpeed(record, timing);
  AddMemory(record);
}

// The first and the last record: by the order of files, and by time.
void LogSummary::KeepEnds(const LogRecord& record) {
  if (first_.empty()) {
    first_.Keep(record);
    earliest_.Keep(record);
  }
  const uint32_t file = record.place.file;
  if (file != first_.record().place.file && !several_files_) {
    several_files_ = true;
    latest_.Keep(last_.record());
  }
  all_timed_ = all_timed_ && record.place.wall_ns;
  if (several_files_ && all_timed_) {
    if (*record.place.wall_ns < *earliest_.record().place.wall_ns) earliest_.Keep(record);
    if (*record.place.wall_ns >= *latest_.record().place.wall_ns) latest_.Keep(record);
  }
  last_.Keep(record);
}

void LogSummary::AddShare(const IndexedRecord& record, const StepTiming& timing) {
  const LinePlace& place = record->place;
  if (rank_row_ == nullptr || rank_row_->rank != place.rank) rank_row_ = &RankRow(place.rank);
  if (rank_row_->records + rank_row_->events == 0) rank_row_->file = place.file;
  const LogValue* step = record.Find(Role::kStep);
  if (step == nullptr) step = record.Find(Role::kStepInEpoch);
  const auto epoch = EpochOf(record);
  for (model::LogShare* share : {static_cast<model::LogShare*>(&FileRow(place.file)),
                                 static_cast<model::LogShare*>(rank_row_)}) {
    ++share->records;
    if (epoch) share->last_epoch = *epoch;
    if (step != nullptr) share->last_step = step->number;
    share->last_line = place.line;
    if (place.wall_ns) share->last_wall_ns = place.wall_ns;
  }
  if (!timing.step_s || !std::isfinite(*timing.step_s)) return;
  const bool room = timed_files_.size() < kMostFiles && timed_ranks_.size() < kMostRanks;
  if (!room) return;
  if (timed_file_ == nullptr || timed_file_->first != place.file) {
    timed_file_ = &*timed_files_.try_emplace(place.file).first;
  }
  const int32_t rank = place.rank.value_or(-1);
  if (timed_rank_ == nullptr || timed_rank_->first != rank) {
    timed_rank_ = &*timed_ranks_.try_emplace(rank).first;
  }
  for (Timed* timed : {&timed_file_->second, &timed_rank_->second}) {
    timed->seconds += *timing.step_s;
    ++timed->steps;
  }
}

// Figures of several ranks side by side make no curve.
bool LogSummary::IsFirstRank(const LinePlace& place) {
  const std::pair rank(place.stream, place.rank.value_or(-1));
  if (!first_rank_) first_rank_ = rank;
  return *first_rank_ == rank;
}

void LogSummary::AddProgress(const IndexedRecord& record, const StepTiming& timing) {
  if (timing.goes_back) ++report_.step_goes_back;
  if (timing.first && (starts_.size() < kMostFiles || starts_.contains(record->place.stream))) {
    Starts& starts = starts_[record->place.stream];
    starts.key = record->place.rank ? int64_t{*record->place.rank} : -1 - record->place.file;
    starts.highest = std::max(starts.highest, record->start);
  }
  const auto epoch = EpochOf(record);
  if (epoch && std::isfinite(*epoch)) {
    if (!report_.first_epoch) report_.first_epoch = *epoch;
    report_.last_epoch = *epoch;
    const double whole = timing.epoch.value_or(std::floor(*epoch));
    if (whole != last_whole_epoch_ && whole_epochs_.size() < kMostEpochs) {
      whole_epochs_.insert(whole);
      last_whole_epoch_ = whole;
    }
  }
  if (const auto epochs = record.Number(Role::kEpochs)) report_.epochs = *epochs;
  if (const auto whole = record.Number(Role::kStepsPerEpoch)) report_.steps_per_epoch = *whole;
  if (const auto total = record.Number(Role::kTotalSteps)) report_.total_steps = *total;
  const auto step = record.Number(Role::kStep);
  if (step && std::isfinite(*step)) {
    report_.highest_step = std::max(report_.highest_step.value_or(*step), *step);
  }
  if (const LogValue* eta = record.Find(Role::kEta)) {
    report_.eta_text.assign(eta->text);
    report_.eta_s = std::isfinite(eta->value) ? std::optional(eta->value) : std::nullopt;
  }
}

void LogSummary::AddLoss(const IndexedRecord& record) {
  const LogValue* loss = LossOf(record);
  if (loss == nullptr) return;
  // Parts are another figure than the total: whichever comes first is followed.
  const bool part = loss->role == Role::kLossPart;
  if (report_.loss_key.empty()) {
    report_.loss_key = loss->key;
    loss_is_part_ = part;
    report_.loss_first = loss->number;
  } else if (part != loss_is_part_ || (part && loss->key != report_.loss_key)) {
    return;
  }
  report_.loss_last = loss->number;
  loss_.Add(loss->number, record->place);
  if (IsFirstRank(record->place)) loss_trend_.Add(loss->number);
  if (std::isfinite(loss->number)) return;
  if (report_.non_finite_losses++ == 0) report_.first_non_finite_line = record->place.line;
}

void LogSummary::AddSpeed(const IndexedRecord& record, const StepTiming& timing) {
  if (timing.sums && !sums_) {
    sums_ = true;
    step_trend_ = {};
    timed_files_.clear();
    timed_ranks_.clear();
    timed_file_ = nullptr;
    timed_rank_ = nullptr;
  }
  if (timing.data_s) data_time_.Add(*timing.data_s, record->place);
  if (timing.step_s && timing.from == StepTimeFrom::kPrinted) {
    step_time_.Add(*timing.step_s, record->place);
    if (timing.data_s) {
      shared_step_s_ += *timing.step_s;
      shared_data_s_ += *timing.data_s;
    }
  } else if (timing.step_s) {
    estimated_.Add(*timing.step_s, record->place);
    ++estimated_from_[static_cast<size_t>(timing.from)];
  }
  const bool first_rank = IsFirstRank(record->place);
  if (timing.step_s && first_rank) step_trend_.Add(*timing.step_s);
  const LogValue* rate = record.Find(Role::kThroughput);
  if (rate == nullptr) return;
  if (report_.throughput_key.empty()) {
    report_.throughput_key = rate->key;
    report_.throughput_unit = rate->unit;
  }
  if (rate->key != report_.throughput_key) return;
  throughput_.Add(rate->value, record->place);
  if (first_rank) throughput_trend_.Add(rate->value);
}

void LogSummary::AddMemory(const IndexedRecord& record) {
  if (record.Find(Role::kMemory) == nullptr) return;
  const LogValue* highest = nullptr;
  for (const LogValue& value : record->values) {
    if (value.role != Role::kMemory) continue;
    if (highest == nullptr || value.value > highest->value) highest = &value;
  }
  if (highest == nullptr) return;
  if (report_.memory_key.empty()) report_.memory_key = highest->key;
  memory_.Add(highest->value, record->place);
  if (IsFirstRank(record->place)) memory_trend_.Add(highest->value);
}

void LogSummary::OnStepMeaning(uint32_t file, uint32_t shape, bool in_epoch) {
  for (KeptRecord* kept : {&first_, &last_, &earliest_, &latest_}) {
    const LogRecord& record = kept->record();
    if (!kept->empty() && record.place.file == file && record.shape == shape) {
      kept->SetStepMeaning(in_epoch);
    }
  }
}

void LogSummary::OnEvent(const LogEvent& event) {
  Span(event.place);
  for (LogRun* run : runs_) run->Event(event);
  const bool bad = IsBad(event.kind);
  events_.Add(event);
  cause_.Event(event);
  model::LogFileRow& file = FileRow(event.place.file);
  ++file.events;
  file.bad_events += bad ? 1 : 0;
  model::LogRankRow& rank = RankRow(event.place.rank);
  if (rank.records + rank.events == 0) rank.file = event.place.file;
  ++rank.events;
  if (bad && rank.bad_events++ == 0) {
    rank.first_bad = event.kind;
    rank.first_bad_file = event.place.file;
    rank.first_bad_line = event.place.line;
  }
}

void LogSummary::TakeEnds() {
  const bool by_time = several_files_ && all_timed_;
  report_.first = (by_time ? earliest_ : first_).Take();
  report_.last = (by_time ? latest_ : last_).Take();
  report_.last_eval = last_eval_.Take();
}

void LogSummary::TakeShares() {
  std::map<int64_t, uint64_t> starts;
  for (const auto& [stream, of] : starts_) starts[of.key] += of.highest + 1;
  for (const auto& [key, count] : starts) report_.starts = std::max(report_.starts, count);
  report_.epochs_seen = whole_epochs_.size();
  for (const auto& [file, timed] : timed_files_) {
    FileRow(file).mean_step_s = timed.seconds / static_cast<double>(timed.steps);
  }
  double slowest_s = 0;
  for (auto& [key, row] : ranks_) {
    const auto timed = timed_ranks_.find(key);
    if (timed != timed_ranks_.end()) {
      row.mean_step_s = timed->second.seconds / static_cast<double>(timed->second.steps);
    }
    if (timed_ranks_.size() > 1 && row.rank && row.mean_step_s.value_or(0) > slowest_s) {
      slowest_s = *row.mean_step_s;
      report_.slowest_rank = row.rank;
    }
    report_.ranks.push_back(std::move(row));
  }
  if (report_.ranks.size() == 1) report_.ranks.clear();
}

void LogSummary::TakeSpeed() {
  if (!sums_) report_.step_time = step_time_.Take();
  report_.data_time = data_time_.Take();
  report_.estimated_step_time = report_.step_time ? std::nullopt : estimated_.Take();
  report_.throughput = throughput_.Take();
  report_.memory = memory_.Take();
  StepTimeFrom from = report_.step_time ? StepTimeFrom::kPrinted : StepTimeFrom::kUnknown;
  uint64_t most = 0;
  for (size_t source = 0; source < estimated_from_.size(); ++source) {
    const uint64_t count = estimated_from_[source];
    if (report_.step_time || count <= most) continue;
    from = static_cast<StepTimeFrom>(source);
    most = count;
  }
  report_.step_time_from = StepTimeFromName(from);
  if (shared_step_s_ > 0 && !sums_) report_.data_share = shared_data_s_ / shared_step_s_;
  if (report_.data_time) {
    DataPlaceJudge::Verdict verdict = data_place_.Judge();
    report_.data_time_place = DataPlaceName(verdict.place);
    report_.data_time_why = std::move(verdict.why);
  }
  const auto add = [this](std::string name, const FigureTrend& trend) {
    std::vector<double> means = trend.Means();
    if (means.size() > 1) report_.trends.push_back({.name = std::move(name), .means = means});
  };
  add("loss", loss_trend_);
  add("step_time", step_trend_);
  add("throughput", throughput_trend_);
  add("memory", memory_trend_);
}

void LogSummary::SayUnknown() {
  if (report_.records == 0) return;
  const auto say = [this](bool unknown, const char* en, const char* zh) {
    if (unknown) report_.not_known.push_back({.en = en, .zh = zh});
  };
  say(!report_.highest_step && !report_.steps_per_epoch, "steps: no record prints one",
      "步数：没有记录打印步数");
  say(!report_.first_epoch, "epochs: no record prints one", "轮次：没有记录打印轮次");
  say(report_.loss_key.empty(), "loss: no record prints one", "损失：没有记录打印损失");
  say(!report_.step_time && !report_.estimated_step_time,
      "step time: neither durations, nor rates, nor times of lines with known steps are printed",
      "步时间：未打印时长、速率，也没有带已知步数的行时间");
  say(!report_.data_time, "data time: no record prints one, so the share of waiting is not known",
      "数据时间：没有记录打印，因此等待占比未知");
  say(!report_.begin_wall_ns, "wall clock: no line has a time", "时钟时间：日志行没有时间");
  say(!report_.memory, "GPU memory: no record prints it", "显存：没有记录打印显存");
}

model::LogReport LogSummary::Take(const EngineCounts& counts, std::vector<std::string> notes,
                                  const std::vector<LogFile>& files) {
  report_.bytes = counts.bytes;
  report_.lines = counts.lines;
  report_.cut_lines = counts.cut_lines;
  report_.bad_bytes = counts.bad_bytes;
  report_.notes = std::move(notes);
  for (size_t i = 0; i < std::min(files.size(), kMostFiles); ++i) {
    model::LogFileRow& row = FileRow(static_cast<uint32_t>(i));
    row.name = files[i].name;
    row.rank = files[i].rank;
  }
  TakeShares();
  report_.events = events_.Take();
  report_.cause = cause_.Take();
  TakeEnds();
  report_.shapes = shapes_.Take(kMostShapesTold);
  report_.loss = loss_.Take();
  TakeSpeed();
  SayUnknown();
  return std::move(report_);
}

}  // namespace epochmeter::ingest::log
