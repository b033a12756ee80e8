// SPDX-License-Identifier: Apache-2.0
// What a run file costs: size, CPU of an append, and reading, on a week of 8 GPUs with 30 metrics
// at 1 Hz and a million steps; beside JSONL, CSV and SQLite rows of the same stream.
//
//   week_bench [--days 7] [--gpus 8] [--peer-ticks 86400] [--ratio-step 1e-4] [--folder /tmp]
//   week_bench --growth            bytes and CPU from 2 to 16 GPUs and from 1 to 30 days
//   week_bench --soak [--days 90]  memory of the writer, size, opening, one week of one metric
//
// CPU is that of the thread. The file system's sync does nothing here, while all writes are real.
// Every reading is done by a process of its own, five times: the least and the middle are shown.
#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "base/check.h"
#include "measure.h"
#include "week_file.h"
#include "week_peers.h"
#include "week_stream.h"

namespace epochmeter::bench {
namespace {

constexpr double kTicksPerDay = 86'400;
constexpr int kRepeats = 5;

struct Options {
  double days = 0;  // 0: what the mode has
  StreamShape shape;
  uint64_t peer_ticks = 86'400;
  std::string folder = "/tmp";
  bool growth = false, soak = false;
  std::string child, child_path;  // what a process started by this one does

  std::string RunPath() const { return folder + "/week_bench.emr"; }
  uint64_t Ticks(double default_days) const {
    return static_cast<uint64_t>((days > 0 ? days : default_days) * kTicksPerDay);
  }
};

void Line(const std::string& text) {
  std::puts(text.c_str());
  std::fflush(stdout);
}

// "key value" pairs that a process like this one printed.
std::map<std::string, double> AskChild(const std::string& what, const std::string& path) {
  const std::string command = fmt::format("/proc/{}/exe --child {} '{}'", getpid(), what, path);
  FILE* const pipe = popen(command.c_str(), "re");
  EPM_CHECK(pipe != nullptr) << command;
  std::string text(4096, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), pipe));
  const int status = pclose(pipe);
  EPM_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0) << command;
  std::map<std::string, double> figures;
  std::istringstream words(text);
  for (std::string key; words >> key;) words >> figures[key];
  return figures;
}

// The figures of several such processes, each key with its least and its middle value.
class Figures {
 public:
  Figures(const std::string& what, const std::string& path) {
    for (int i = 0; i < kRepeats; ++i) {
      for (const auto& [key, value] : AskChild(what, path)) values_[key].push_back(value);
    }
    for (auto& [key, values] : values_) std::sort(values.begin(), values.end());
  }
  double Least(const std::string& key) const { return values_.at(key).front(); }
  double Middle(const std::string& key) const { return values_.at(key)[kRepeats / 2]; }
  std::string Text(const std::string& key) const {
    return fmt::format("{:.1f} ({:.1f})", Least(key), Middle(key));
  }

 private:
  std::map<std::string, std::vector<double>> values_;
};

void PrintReading(const std::string& path) {
  Line("reading, by a process each; least (middle) of five:");
  const Figures open("open", path), bare("open-bare", path), means("means", path),
      read("read", path);
  Line(fmt::format("  open with events: {} ms wall, {} ms CPU, {:.0f} MB at most, {:.0f} steps",
                   open.Text("open_ms"), open.Text("cpu_ms"), open.Middle("peak_mb"),
                   open.Middle("steps")));
  Line(fmt::format("  open without:     {} ms wall, {} ms CPU, {:.0f} MB at most",
                   bare.Text("open_ms"), bare.Text("cpu_ms"), bare.Middle("peak_mb")));
  Line(
      fmt::format("  means of all series in {:.0f} epochs, opening with events included: {} ms "
                  "wall, {} ms CPU, {:.0f} MB at most",
                  means.Middle("epochs"), means.Text("means_ms"), means.Text("cpu_ms"),
                  means.Middle("peak_mb")));
  Line(
      fmt::format("  one metric, first in the process: {} ms wall, {} ms CPU; the next one: {} ms "
                  "wall, {} ms CPU",
                  read.Text("first_ms"), read.Text("first_cpu_ms"), read.Text("second_ms"),
                  read.Text("second_cpu_ms")));
}

std::string WriteText(const WriteCost& cost) {
  return fmt::format("{} bytes, {:.3f} B/value, {:.1f} us CPU a tick (middle {:.1f}, best {:.1f})",
                     cost.bytes, cost.BytesPerValue(), cost.MeanUs(), cost.MedianUs(),
                     cost.BestUs());
}

void PrintPeers(const Options& options) {
  WeekStream names(options.shape);
  std::vector<std::string> fields;
  for (const model::Record& record : names.Definitions()) {
    const auto* def = std::get_if<model::SeriesDef>(&record);
    if (def != nullptr && def->entity == 0) fields.push_back(def->metric.field);
  }
  const double values =
      static_cast<double>(options.peer_ticks) * options.shape.gpus * kMetricsPerGpu;
  Line(fmt::format("\n{} ticks of the same stream, without events:", options.peer_ticks));
  Line(fmt::format("{:<14}{:>12}{:>18}{:>18}{:>20}", "", "B/value", "us CPU a tick",
                   "one metric, ms", "epoch means, ms"));
  const WriteCost ours = WriteRun(options.RunPath(), options.shape, options.peer_ticks, false);
  const Figures read("read", options.RunPath()), means("means", options.RunPath());
  Line(fmt::format("{:<14}{:>12.3f}{:>18.1f}{:>18.1f}{:>20.1f}", "run file", ours.BytesPerValue(),
                   ours.MeanUs(), read.Least("first_cpu_ms"), means.Least("cpu_ms")));
  for (const std::unique_ptr<Peer>& peer : MakePeers(options.folder, fields)) {
    WeekStream stream(options.shape);
    model::Samples samples;
    std::vector<model::Event> events;
    double append_s = 0;
    for (uint64_t tick = 0; tick < options.peer_ticks; ++tick) {
      stream.Tick(&samples, &events);
      events.clear();
      const Stopwatch append;
      peer->Append(samples);
      append_s += append.cpu_s();
    }
    peer->Finish();
    const Stopwatch one;
    EPM_CHECK(peer->ReadOne(0, 18) == options.peer_ticks);
    const double one_s = one.cpu_s();
    const Stopwatch all;
    EPM_CHECK(peer->EpochMeans(WeekStream::BeginNs(), kEpochTicks * 1'000'000'000) > 0);
    Line(fmt::format("{:<14}{:>12.3f}{:>18.1f}{:>18.1f}{:>20.1f}", peer->name(),
                     static_cast<double>(peer->bytes()) / values,
                     append_s * 1e6 / static_cast<double>(options.peer_ticks), one_s * 1e3,
                     all.cpu_s() * 1e3));
  }
}

void RunTable(const Options& options) {
  const uint64_t ticks = options.Ticks(7);
  Line(fmt::format("{} GPUs x {} metrics x {} ticks of 1 s", options.shape.gpus, kMetricsPerGpu,
                   ticks));
  const WriteCost bare = WriteRun(options.RunPath(), options.shape, ticks, false);
  Line("write, without events: " + WriteText(bare));
  const WriteCost full = WriteRun(options.RunPath(), options.shape, ticks, true);
  Line("write, with events:    " + WriteText(full));
  Line(fmt::format("{} events of 6 fields: {:.2f} bytes each", full.events,
                   static_cast<double>(full.bytes - bare.bytes) /
                       static_cast<double>(std::max<uint64_t>(full.events, 1))));
  PrintReading(options.RunPath());
  if (options.peer_ticks > 0) PrintPeers(options);
}

void PrintGrowth(const Options& options, const std::vector<int>& gpus,
                 const std::vector<double>& days) {
  std::vector<double> bytes, cpu;
  for (const int its_gpus : gpus) {
    for (const double its_days : days) {
      StreamShape shape = options.shape;
      shape.gpus = its_gpus;
      const auto ticks = static_cast<uint64_t>(its_days * kTicksPerDay);
      const WriteCost cost = WriteRun(options.RunPath(), shape, ticks, false);
      bytes.push_back(cost.BytesPerValue());
      cpu.push_back(cost.MedianUs() / its_gpus);
      Line(fmt::format("{:>4} GPUs {:>6.2f} days: {:.3f} B/value, {:.2f} us CPU a tick and GPU",
                       its_gpus, its_days, bytes.back(), cpu.back()));
    }
  }
  const auto [least, most] = std::minmax_element(bytes.begin(), bytes.end());
  const auto [fast, slow] = std::minmax_element(cpu.begin(), cpu.end());
  Line(fmt::format("most/least: {:.3f} of bytes, {:.2f} of CPU", *most / *least, *slow / *fast));
}

void RunGrowth(const Options& options) {
  const double scale = options.days > 0 ? options.days : 1;
  PrintGrowth(options, {2, 4, 8, 16}, {scale});
  PrintGrowth(options, {options.shape.gpus}, {scale, 3 * scale, 7 * scale, 30 * scale});
}

// Memory at each tenth, then size against the model, which is the first tenth, and reading.
void RunSoak(const Options& options) {
  const uint64_t ticks = options.Ticks(90);
  Line(fmt::format("{} GPUs x {} metrics x {} ticks, {:.2f} steps a tick", options.shape.gpus,
                   kMetricsPerGpu, ticks, options.shape.steps_per_tick));
  const Stopwatch watch;
  uint64_t next = ticks / 10;
  std::vector<double> rss_mb, file_mb;
  const WriteCost cost =
      WriteRun(options.RunPath(), options.shape, ticks, true, [&](uint64_t written) {
        if (written < next) return;
        next += ticks / 10;
        rss_mb.push_back(RssMb());
        file_mb.push_back(static_cast<double>(FileBytes(options.RunPath())) / 1e6);
        Line(fmt::format("  {:>8} ticks: RSS {:.1f} MB, file {:.1f} MB", written, rss_mb.back(),
                         file_mb.back()));
      });
  Line(fmt::format("written in {:.0f} s: {}", watch.wall_s(), WriteText(cost)));
  const double model_mb = 10 * file_mb.front();
  Line(fmt::format("RSS last/first tenth: {:.3f}; file/model: {:.3f}",
                   rss_mb.back() / rss_mb.front(),
                   static_cast<double>(cost.bytes) / 1e6 / model_mb));
  const Figures open("open", options.RunPath()), bare("open-bare", options.RunPath()),
      week("week", options.RunPath());
  Line(fmt::format("open without events: {} ms wall, {} ms CPU; with: {} ms wall, {:.0f} MB",
                   bare.Text("open_ms"), bare.Text("cpu_ms"), open.Text("open_ms"),
                   open.Middle("peak_mb")));
  Line(fmt::format("a week of one metric: {} ms wall, {} ms CPU", week.Text("read_ms"),
                   week.Text("cpu_ms")));
}

int RunChild(const Options& options) {
  if (options.child == "open") PrintOpen(options.child_path, true);
  if (options.child == "open-bare") PrintOpen(options.child_path, false);
  if (options.child == "means") PrintMeans(options.child_path);
  if (options.child == "read") PrintRead(options.child_path);
  if (options.child == "week") PrintReadWeek(options.child_path);
  return 0;
}

bool Parse(int argc, char** argv, Options* options) {
  for (int i = 1; i < argc; ++i) {
    const std::string key = argv[i];
    if (key == "--growth") options->growth = true;
    if (key == "--soak") options->soak = true;
    if (key == "--growth" || key == "--soak") continue;
    if (i + 1 >= argc) return false;
    const char* const value = argv[++i];
    if (key == "--days") {
      options->days = std::atof(value);
    } else if (key == "--gpus") {
      options->shape.gpus = std::atoi(value);
    } else if (key == "--ratio-step") {
      options->shape.ratio_step = std::atof(value);
    } else if (key == "--peer-ticks") {
      options->peer_ticks = std::strtoull(value, nullptr, 10);
    } else if (key == "--folder") {
      options->folder = value;
    } else if (key == "--child" && i + 1 < argc) {
      options->child = value;
      options->child_path = argv[++i];
    } else {
      return false;
    }
  }
  return options->shape.gpus > 0 && options->shape.ratio_step > 0;
}

int Main(int argc, char** argv) {
  Options options;
  if (!Parse(argc, argv, &options)) {
    std::fputs("week_bench: see the first lines of week_bench.cc for its options\n", stderr);
    return 2;
  }
  if (!options.child.empty()) return RunChild(options);
  if (options.growth) {
    RunGrowth(options);
  } else if (options.soak) {
    RunSoak(options);
  } else {
    RunTable(options);
  }
  std::filesystem::remove(options.RunPath());
  return 0;
}

}  // namespace
}  // namespace epochmeter::bench

int main(int argc, char** argv) { return epochmeter::bench::Main(argc, argv); }
