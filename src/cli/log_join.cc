// SPDX-License-Identifier: Apache-2.0
#include "cli/log_join.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/clock.h"
#include "model/output_events.h"

namespace epochmeter::cli {
namespace {

constexpr int64_t kSliceNs = 3600 * base::kNsPerSecond;

void CopySteps(const model::ProcessKey& process, const model::StepTable& steps, model::Sink* out) {
  for (size_t i = 0; i < steps.size(); ++i) {
    model::Event event{.t_ns = steps.t_ns[i],
                       .kind = model::EventKind::kStep,
                       .rank = {},
                       .epoch = {},
                       .step = {},
                       .name = {},
                       .fields = {}};
    if (process.rank != model::kNoRank) event.rank = process.rank;
    if (steps.epoch[i] != model::kNotKnown) event.epoch = steps.epoch[i];
    if (steps.step[i] != model::kNotKnown) event.step = steps.step[i];
    for (const auto& [name, column] : steps.columns) {
      if (!model::IsAbsent(column[i])) event.fields.push_back({.key = name, .value = column[i]});
    }
    out->Write(std::move(event));
  }
}

base::Result<> CopySlice(const model::Run& run, model::Interval interval, model::Sink* out) {
  std::map<int64_t, model::Samples> rows;
  for (const model::SeriesDef& def : run.series) {
    EPM_ASSIGN(const model::SeriesColumn column, run.store->Read(def.id, interval));
    for (size_t i = 0; i < column.t_ns.size(); ++i) {
      model::Samples& row = rows[column.t_ns[i]];
      row.t_ns = column.t_ns[i];
      row.values.push_back({.series = def.id, .value = column.value[i]});
    }
  }
  for (auto& [t_ns, row] : rows) out->Write(std::move(row));
  return {};
}

}  // namespace

base::Result<> CopyRun(const model::Run& run, model::Sink* out) {
  if (run.info) out->Write(*run.info);
  for (const model::Anchor& anchor : run.anchors) out->Write(anchor);
  for (const model::EntityDef& entity : run.entities) out->Write(entity);
  for (const model::SeriesDef& series : run.series) out->Write(series);
  for (const model::SeriesState& state : run.states) out->Write(state);
  if (run.store != nullptr) {
    for (int64_t begin_ns = run.span.begin_ns; begin_ns <= run.span.end_ns; begin_ns += kSliceNs) {
      EPM_TRY(CopySlice(run, {.begin_ns = begin_ns, .end_ns = begin_ns + kSliceNs - 1}, out));
    }
  }
  for (const model::Event& event : run.events) out->Write(event);
  for (const auto& [process, steps] : run.steps) CopySteps(process, steps, out);
  for (const model::LogText& text : run.log) out->Write(text);
  for (const model::Loss& loss : run.losses) out->Write(loss);
  return {};
}

LogJoiner::LogJoiner(const model::Run& recording, model::Registry* registry, model::Sink* out)
    : recording_(recording), out_(*registry, *out) {}

// By the anchor whose wall clock was read last before.
int64_t LogJoiner::MonoNs(int64_t wall_ns) const {
  base::ClockAnchor best =
      recording_.info ? recording_.info->anchor : recording_.anchors.front().clocks;
  for (const model::Anchor& anchor : recording_.anchors) {
    if (anchor.clocks.wall_ns <= wall_ns) best = anchor.clocks;
  }
  return best.mono_ns + (wall_ns - best.wall_ns);
}

int64_t LogJoiner::Shift(int64_t t_ns) {
  const int64_t shifted = MonoNs(*origin_wall_ns_ + t_ns);
  first_ns_ = std::min(first_ns_, shifted);
  last_ns_ = std::max(last_ns_, shifted);
  return shifted;
}

// A log that names no rank is that of the process which the recording followed.
bool LogJoiner::HasSteps(const model::Event& event) const {
  if (recording_.steps.empty()) return false;
  if (!event.rank) return true;
  return std::any_of(recording_.steps.begin(), recording_.steps.end(), [&](const auto& process) {
    return process.first.rank == *event.rank || process.first.rank == model::kNoRank;
  });
}

void LogJoiner::Write(const model::Record& record) {
  if (const auto* info = std::get_if<model::RunInfo>(&record)) {
    origin_wall_ns_ = info->anchor.wall_ns - info->anchor.mono_ns;
    for (const auto& [key, value] : info->attributes) {
      if (key == "times" && value == "assumed") timed_ = false;
    }
    return;
  }
  const bool end = std::holds_alternative<model::RunEnd>(record);
  if (end || !origin_wall_ns_ || !timed_ || (!recording_.info && recording_.anchors.empty())) {
    return;
  }
  if (const auto* event = std::get_if<model::Event>(&record)) {
    const bool step = event->kind == model::EventKind::kStep;
    if (step && HasSteps(*event)) {
      ++left_out_;
      return;
    }
    steps_ += step ? 1 : 0;
    model::Event shifted = *event;
    shifted.t_ns = Shift(event->t_ns);
    // A log is printed, too: what clients told comes first. Steps say it by their line.
    std::erase_if(shifted.fields,
                  [](const model::EventField& field) { return field.key == model::kSourceField; });
    if (!step) {
      shifted.fields.push_back(
          {.key = std::string(model::kSourceField), .value = std::string(model::kOutputSource)});
    }
    return out_.Write(shifted);
  }
  if (const auto* samples = std::get_if<model::Samples>(&record)) {
    model::Samples shifted = *samples;
    shifted.t_ns = Shift(samples->t_ns);
    return out_.Write(shifted);
  }
  if (const auto* loss = std::get_if<model::Loss>(&record)) {
    model::Loss shifted = *loss;
    shifted.t_ns = Shift(loss->t_ns);
    return out_.Write(shifted);
  }
  // The recording has the output itself; definitions have no time.
  if (!std::holds_alternative<model::LogText>(record)) out_.Write(record);
}

base::Result<> LogJoiner::Check(const std::string& log) const {
  base::Error error{.what = "cannot join the log with the recording", .where = log};
  if (!recording_.info && recording_.anchors.empty()) {
    error.why = "the recording does not say what time its clock shows";
    return error;
  }
  if (!timed_ || !origin_wall_ns_) {
    error.why = "the lines of the log have no times";
    error.what_to_do =
        "print the time with each line; or record the training with 'epochmeter run', which reads "
        "its output meanwhile";
    return error;
  }
  if (first_ns_ > last_ns_) return {};  // nothing but what was left out
  if (last_ns_ < recording_.span.begin_ns || first_ns_ > recording_.span.end_ns) {
    const auto time = [](std::optional<int64_t> wall_ns) {
      return wall_ns ? base::FormatUtc(*wall_ns).substr(0, 19) : std::string("?");
    };
    error.why = fmt::format("the log is of {} to {} UTC, the recording of {} to {}",
                            time(recording_.WallNs(first_ns_)), time(recording_.WallNs(last_ns_)),
                            time(recording_.WallNs(recording_.span.begin_ns)),
                            time(recording_.WallNs(recording_.span.end_ns)));
    error.what_to_do = "are they of the same job? TZ=... says in which zone the log's times are";
    return error;
  }
  return {};
}

std::vector<std::string> LogJoiner::Notes() const {
  std::vector<std::string> notes;
  if (left_out_ > 0) {
    notes.push_back(
        fmt::format("{} steps of the log were left out: the recording has those of their processes "
                    "itself",
                    left_out_));
  }
  return notes;
}

}  // namespace epochmeter::cli
