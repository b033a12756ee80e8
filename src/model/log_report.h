// SPDX-License-Identifier: Apache-2.0
// What training logs come to: plain values for pages and documents. Lines count from 1, files from
// 0. Absent is not known.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/finding.h"
#include "model/log_events.h"
#include "model/log_messages.h"
#include "model/log_point.h"
#include "model/message.h"

namespace epochmeter::model {

// Figures over many records. `median` is the upper one.
struct LogSpread {
  uint64_t count = 0;
  double mean = 0, median = 0, min = 0, max = 0;
  uint32_t max_file = 0;
  uint64_t max_line = 0;
  bool sampled = false;  // too many for an exact median
};

// A figure over the course of a log, in the order of its records, thinned to means of equally many
// records. A part whose every number was not finite is NaN.
struct LogTrend {
  std::string name;  // the key as printed, "loss"
  std::vector<double> means;
};

// A kind of line with its keys as printed.
struct LogShape {
  uint64_t records = 0;
  LogPoint first;
  std::string sample;  // the main line of the first, cut
};

// How far one file, or one rank, got.
struct LogShare {
  uint64_t records = 0, events = 0, bad_events = 0;
  std::optional<double> last_epoch, last_step;  // as printed; the step of its epoch where no other
  uint64_t last_line = 0;                       // of its last training record
  std::optional<int64_t> last_wall_ns;
  std::optional<double> mean_step_s;  // printed, else worked out
};

struct LogFileRow : LogShare {
  std::string name;
  std::optional<int32_t> rank;
  uint64_t eval_records = 0;
};

struct LogRankRow : LogShare {
  std::optional<int32_t> rank;
  uint32_t file = 0;      // of its first record or event
  std::string first_bad;  // kind
  uint32_t first_bad_file = 0;
  uint64_t first_bad_line = 0;
};

struct LogPlace {
  uint32_t file = 0;
  uint64_t line = 0;
};
// What a rule found in the log, and the lines that show it.
struct LogFinding {
  Finding finding;
  std::vector<LogPlace> lines;
};

struct LogReport {
  std::vector<LogFileRow> files;
  std::vector<LogRankRow> ranks;  // more than one, or none
  // Whose steps took longest on average, where at least two ranks have a time.
  std::optional<int32_t> slowest_rank;
  uint64_t bytes = 0, lines = 0, cut_lines = 0, bad_bytes = 0;
  uint64_t records = 0, eval_records = 0, summary_records = 0, inference_records = 0;
  uint64_t starts = 0;  // of the training, by the rank that has the most
  uint64_t step_goes_back = 0;
  std::optional<LogPoint> first, last, first_eval, last_eval;
  std::vector<LogShape> shapes;  // the most frequent first
  std::optional<int64_t> begin_wall_ns, end_wall_ns;
  std::optional<double> first_epoch, last_epoch, epochs, steps_per_epoch, total_steps;
  uint64_t epochs_seen = 0;
  std::optional<double> highest_step;

  std::optional<LogSpread> step_time, data_time;  // of one step, s, as printed
  // Where none is printed: worked out from intervals, elapsed times, rates or times of lines.
  std::optional<LogSpread> estimated_step_time;
  std::string step_time_from;        // "printed", "interval", ..., "unknown"
  std::optional<double> data_share;  // of the step time, as printed
  std::string data_time_place;       // "inside", "beside", "unknown"
  Message data_time_why;
  std::optional<LogSpread> throughput;
  std::string throughput_key, throughput_unit;
  std::optional<LogSpread> loss;
  std::string loss_key;
  std::optional<double> loss_first, loss_last;
  uint64_t non_finite_losses = 0;
  uint64_t first_non_finite_line = 0;
  std::optional<LogSpread> memory;
  std::string memory_key;
  std::string eta_text;
  std::optional<double> eta_s;
  std::vector<LogTrend> trends;  // loss, step time, throughput, memory; of the first rank

  std::vector<LogEventRow> events;
  std::optional<LogCause> cause;
  LogMessages messages;
  std::vector<LogAnomaly> anomalies;  // the worst first
  std::vector<LogFinding> findings;
  std::vector<std::string> notes;  // what was assumed
  std::vector<Message> not_known;  // and why
  std::string run_path;            // of the run file that was written; empty: none
};

}  // namespace epochmeter::model
