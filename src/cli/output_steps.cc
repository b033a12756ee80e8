// SPDX-License-Identifier: Apache-2.0
#include "cli/output_steps.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <variant>

#include "base/clock.h"
#include "base/strings.h"
#include "ingest/log/log_point.h"
#include "ingest/log/record_events.h"
#include "model/output_events.h"
#include "model/run.h"

namespace epochmeter::cli {
namespace {

using ingest::log::IndexedRecord;
using ingest::log::LogRecord;
using ingest::log::RecordKind;
using ingest::log::Role;
using ingest::log::StepTiming;
using model::EventKind;

constexpr size_t kMostTrainings = 4096;
constexpr uint64_t kMostFailuresOfAKind = 12;

int64_t NsOf(double seconds) {
  constexpr double kMostSeconds = 1e8;
  return std::isfinite(seconds) ? std::llround(std::clamp(seconds, 0.0, kMostSeconds) * 1e9) : 0;
}

// A fraction says how far the training is: 2.0 is the end of the second epoch, which is number 1.
std::optional<int64_t> EpochOf(std::optional<double> printed, bool* fractions) {
  if (!printed || !std::isfinite(*printed)) return {};
  *fractions = *fractions || *printed != std::floor(*printed);
  if (!*fractions || *printed <= 0) return ingest::log::WholeOf(printed);
  return ingest::log::WholeOf(std::ceil(*printed) - 1);
}

// Of one step, as printed or from printed figures.
std::optional<double> PrintedSeconds(const StepTiming& timing) {
  return timing.from == ingest::log::StepTimeFrom::kStamps ? std::nullopt : timing.step_s;
}

std::string TextOf(const ingest::log::LogEvent& event, std::string_view key) {
  for (const ingest::log::EventNumber& number : event.numbers) {
    const auto* text = std::get_if<std::string>(&number.value);
    if (number.key == key && text != nullptr) return *text;
  }
  return {};
}

bool IsScalar(const model::EventField& field) { return base::StartsWith(field.key, "scalar."); }

bool HasFiniteLoss(const model::Event& event) {
  return std::isfinite(event.Number("scalar.loss").value_or(0));
}

}  // namespace

OutputSteps::OutputSteps(model::Registry& registry, model::Sink& sink, Options options)
    : sink_(sink), options_(std::move(options)), allocator_(registry) {}

void OutputSteps::Write(model::Event event) {
  if (event.kind != EventKind::kStep) {
    event.fields.push_back(
        {.key = std::string(model::kSourceField), .value = std::string(model::kOutputSource)});
  }
  sink_.Write(std::move(event));
}

void OutputSteps::OnEvent(const ingest::log::LogEvent& event) {
  // That a loss is no number says its step.
  if (!ingest::log::IsBad(event.kind) || event.kind == "nan_loss") return;
  if (++failures_[event.kind] > kMostFailuresOfAKind) return;
  model::Event failure = ingest::log::FailureEvent(event, options_.arrival_of(event.place));
  // A traceback is told by its last line, as a client tells it.
  if (const std::string type = TextOf(event, "type"); event.kind == "traceback" && !type.empty()) {
    failure.name = type;
    failure.fields.front().value = TextOf(event, "message");
  }
  Write(std::move(failure));
}

OutputSteps::Training* OutputSteps::TrainingOf(const LogRecord& record) {
  const int32_t rank = record.place.rank.value_or(model::kNoRank);
  const auto known = trainings_.find(rank);
  if (known != trainings_.end()) return &known->second;
  if (trainings_.size() == kMostTrainings) return nullptr;
  Training& training = trainings_[rank];
  training.rank = record.place.rank;
  training.stream = record.place.stream;
  return &training;
}

PrintedCounters OutputSteps::CountersOf(const IndexedRecord& record, Training* training) {
  using ingest::log::WholeOf;
  PrintedCounters counters{.epoch = EpochOf(ingest::log::EpochOf(record), &training->fractions),
                           .in_epoch = WholeOf(record.Number(Role::kStepInEpoch)),
                           .step = WholeOf(ingest::log::ExactStep(record)),
                           .steps_per_epoch = WholeOf(record.Number(Role::kStepsPerEpoch))};
  // Numbers beyond any training's would overflow sums.
  constexpr int64_t kMost = int64_t{1} << 48;
  for (auto* number :
       {&counters.epoch, &counters.in_epoch, &counters.step, &counters.steps_per_epoch}) {
    if (*number && (**number < 0 || **number > kMost)) number->reset();
  }
  return counters;
}

void OutputSteps::OnRecord(const LogRecord& record) {
  if (record.kind != RecordKind::kTrain && record.kind != RecordKind::kEval) return;
  Training* training = TrainingOf(record);
  if (training == nullptr) return;
  const int64_t t_ns = options_.arrival_of(record.place);
  if (record.kind == RecordKind::kTrain) Train(record, t_ns, training);
  auto evaluation = ingest::log::EvaluationEvent(record, t_ns);
  if (record.kind == RecordKind::kEval) training->evaluated = true;
  training->after_ns = std::max(training->after_ns, t_ns);
  if (!evaluation) return;
  if (!evaluation->epoch || training->fractions) evaluation->epoch = training->open;
  Write(*std::move(evaluation));
}

void OutputSteps::Train(const LogRecord& record, int64_t t_ns, Training* training) {
  LogRecord placed = record;
  const bool in_block = training->last_ns == t_ns;
  ++(in_block ? training->in_blocks : training->alone);
  const bool in_blocks = training->in_blocks * 4 > training->alone;
  placed.place.wall_ns = in_blocks ? std::nullopt : std::optional(t_ns);
  const IndexedRecord indexed(placed);
  const PrintedCounters counters = CountersOf(indexed, training);
  const bool has_loss = indexed.Find(Role::kLoss) != nullptr;
  if (record.place.stream != training->stream && has_loss && !training->has_loss &&
      counters.count()) {
    // What was followed so far was something else: a bar over files, say.
    FlushStep(training);
    CloseEpoch({}, training);
    training->stream = record.place.stream;
    training->counter = StepCounter();
    training->begun = false;
  }
  const bool tells_steps = record.place.stream == training->stream &&
                           (counters.count() || (!training->counts && counters.epoch));
  StepCounter::Move move{.forward = false, .epoch = training->open};
  if (tells_steps) move = training->counter.Next(counters, record.start);
  if (move.forward) {
    training->counts |= counters.count().has_value();
    training->has_loss |= has_loss;
    Follow(indexed, move, t_ns, training);
    training->last_ns = t_ns;
    training->evaluated = false;
  } else if (!move.aside) {
    WriteScalars(indexed, counters.epoch ? counters.epoch : training->open, t_ns, *training);
  }
  if (takes_memory_) WriteMemory(indexed, t_ns);
}

// Of the epoch whose first line this is, or whose only one: by what it prints, not before the end
// of what came before.
int64_t OutputSteps::BeginOf(const IndexedRecord& record, std::optional<double> duration_s,
                             int64_t t_ns, const Training& training) {
  if (!duration_s && training.after_ns > 0) return training.after_ns;
  if (!duration_s) duration_s = record.Value(Role::kEpochTime);
  return std::max(training.after_ns, t_ns - NsOf(duration_s.value_or(0)));
}

// A line that says that the training went on.
void OutputSteps::Follow(const IndexedRecord& record, const StepCounter::Move& move, int64_t t_ns,
                         Training* training) {
  const StepTiming timing = timer_.Next(record);
  const std::optional<double> printed_s = PrintedSeconds(timing);
  Stretch stretch{.steps = move.steps};
  if (!move.new_epoch && !training->evaluated && timing.interval_s) {
    stretch.duration_s = timing.interval_s;
  } else if (printed_s && move.steps > 0) {
    stretch.duration_s = *printed_s * static_cast<double>(move.steps);
  }
  if (stretch.duration_s && timing.data_s) {
    stretch.data_s =
        std::min(*timing.data_s * static_cast<double>(move.steps), *stretch.duration_s);
  }
  if (move.new_epoch) {
    FlushStep(training);
    if (move.ends_first && !training->open) {
      WriteEpoch(EventKind::kEpochBegin, 1, training->begin_ns, *training);
      training->open = 1;
    }
    CloseEpoch(move.ended_steps, training);
    training->begin_ns = BeginOf(record, stretch.duration_s, t_ns, *training);
    if (move.begins && !(options_.resumed && !training->begun)) Begin(record, *training);
    const bool told_before = options_.resumed && !training->begun;
    training->begun = true;
    training->open = move.epoch;
    if (move.epoch && !told_before) {
      WriteEpoch(EventKind::kEpochBegin, *move.epoch, training->begin_ns, *training);
    }
  }
  if (move.steps == 0) return WriteScalars(record, move.epoch, t_ns, *training);
  model::Event event = ingest::log::StepEvent(record, t_ns);
  event.epoch = move.epoch;
  if (!event.step) event.step = move.total;
  training->told.clear();
  for (const model::EventField& field : event.fields) {
    if (IsScalar(field)) training->told.push_back(field.key);
  }
  AddStep(std::move(event), stretch, training);
}

void OutputSteps::Begin(const IndexedRecord& record, const Training& training) {
  model::Event begin{.t_ns = training.begin_ns,
                     .kind = EventKind::kTrainBegin,
                     .rank = training.rank,
                     .epoch = {},
                     .step = {},
                     .name = {},
                     .fields = {}};
  if (const auto epochs = ingest::log::WholeOf(record.Number(Role::kEpochs))) {
    begin.fields.push_back({"epochs", *epochs});
  }
  if (const auto steps = ingest::log::WholeOf(record.Number(Role::kStepsPerEpoch))) {
    begin.fields.push_back({"steps_per_epoch", *steps});
  }
  Write(std::move(begin));
}

void OutputSteps::WriteEpoch(EventKind kind, int64_t epoch, int64_t t_ns, const Training& training,
                             std::optional<int64_t> steps) {
  model::Event event{
      .t_ns = t_ns, .kind = kind, .rank = {}, .epoch = epoch, .step = {}, .name = {}, .fields = {}};
  if (kind == EventKind::kEpochEnd) {
    event.fields.push_back({"duration_s", base::SecondsFromNs(t_ns - training.begin_ns)});
  }
  if (steps) event.fields.push_back({"steps", *steps});
  Write(std::move(event));
}

void OutputSteps::CloseEpoch(std::optional<int64_t> steps, Training* training) {
  if (!training->open) return;
  const int64_t end_ns = std::max(training->last_ns, training->begin_ns);
  WriteEpoch(EventKind::kEpochEnd, *training->open, end_ns, *training, steps);
  training->open.reset();
}

void OutputSteps::AddStep(model::Event event, const Stretch& stretch, Training* training) {
  Stretch& sum = training->stretch;
  const bool first = sum.steps == 0;
  sum.known = (first || sum.known) && stretch.duration_s.has_value();
  sum.data_s = stretch.data_s && (first || sum.data_s)
                   ? std::optional(sum.data_s.value_or(0) + *stretch.data_s)
                   : std::nullopt;
  sum.duration_s = sum.duration_s.value_or(0) + stretch.duration_s.value_or(0);
  sum.steps += stretch.steps;
  const double passed_s = base::SecondsFromNs(event.t_ns - training->last_ns);
  training->tokens =
      std::min(training->tokens + std::max(passed_s, 0.0) * kStepsPerSecond, kStepsAtOnce);
  const bool telling = !HasFiniteLoss(event);
  training->pending = std::move(event);
  if (training->tokens < 1 && !telling) return;
  training->tokens = std::max(training->tokens - 1, 0.0);
  FlushStep(training);
}

void OutputSteps::FlushStep(Training* training) {
  if (!training->pending) return;
  model::Event& event = *training->pending;
  const Stretch& sum = training->stretch;
  if (sum.steps != 1) event.fields.push_back({"steps", sum.steps});
  if (sum.known) event.fields.push_back({"duration_s", sum.duration_s.value_or(0)});
  if (sum.known && sum.data_s) event.fields.push_back({"data_wait_s", *sum.data_s});
  Write(std::move(event));
  training->pending.reset();
  training->stretch = {};
}

// Of a line that tells no step: another one told it, or none is counted. What the step's own line
// said stays: this one may be of an evaluation.
void OutputSteps::WriteScalars(const IndexedRecord& record, std::optional<int64_t> epoch,
                               int64_t t_ns, const Training& training) {
  model::Event event = ingest::log::StepEvent(record, t_ns);
  event.kind = EventKind::kScalar;
  event.epoch = epoch;
  event.step.reset();
  const std::vector<std::string>& told = training.told;
  std::erase_if(event.fields, [&told](const auto& field) {
    return !IsScalar(field) || std::find(told.begin(), told.end(), field.key) != told.end();
  });
  if (!event.fields.empty()) Write(std::move(event));
}

void OutputSteps::WriteMemory(const IndexedRecord& record, int64_t t_ns) {
  const auto reading = ingest::log::MemoryOf(record);
  if (!reading) return;
  model::Samples samples{.t_ns = t_ns, .values = {}};
  const bool known = allocator_.Append(record->place.rank, 0, *reading, samples);
  if (known && !samples.values.empty()) sink_.Write(std::move(samples));
}

void OutputSteps::Finish(bool well, int64_t now_ns) {
  uint64_t in_blocks = 0, folded = 0;
  for (auto& [rank, training] : trainings_) {
    FlushStep(&training);
    if (training.in_blocks * 4 > training.alone) in_blocks += training.in_blocks;
    if (!well || !training.begun) continue;
    const bool whole = training.counter.MayBeOver();
    if (whole) CloseEpoch(training.counter.StepsOfEpoch(), &training);
    model::Event end{.t_ns = training.last_ns,
                     .kind = EventKind::kTrainEnd,
                     .rank = training.rank,
                     .epoch = {},
                     .step = {},
                     .name = {},
                     .fields = {{"status", std::string("exited")}}};
    Write(std::move(end));
  }
  for (const auto& [kind, count] : failures_) {
    folded += count - std::min(count, kMostFailuresOfAKind);
  }
  const auto tell = [&](const char* kind, uint64_t count, const char* detail, const char* help) {
    if (count == 0) return;
    sink_.Write(model::Loss{.t_ns = now_ns,
                            .severity = model::LossSeverity::kInfo,
                            .kind = kind,
                            .count = count,
                            .detail = detail,
                            .help = help});
  };
  tell("output.in_blocks", in_blocks, "lines with steps that came in blocks, not one by one",
       "The training's stdout is buffered, so when these steps ran is known roughly. python -u, "
       "PYTHONUNBUFFERED=1 or print(..., flush=True) gives each its time.");
  tell("output.failures_folded", folded, "failures that the output told again and again",
       "The first 12 of each kind are kept as events; the output itself says the rest.");
}

}  // namespace epochmeter::cli
