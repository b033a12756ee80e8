// SPDX-License-Identifier: Apache-2.0
// What a report of a long run costs: a day of 8 GPUs with 30 metrics at 1 Hz and 100,000 steps of 8
// ranks, made up, and then each format written by a process of its own.
//
//   report_cost EPOCHMETER [--hours 24] [--steps 100000] [--ranks 8] [--formats html,text,json]
//               [--keep PATH] [--repeats 5]
//
// Wall and CPU time are the least (middle) of the repeats; memory is the most of them.
#include <fmt/format.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/strings.h"
#include "measure.h"
#include "week_file.h"

extern char** environ;

namespace epochmeter::bench {
namespace {

constexpr double kTicksPerHour = 3600;

struct Options {
  std::string program, keep;
  std::string formats = "html,text,json";
  std::string path = "/tmp/report_cost.emr";
  double hours = 24, steps = 100'000;
  int ranks = 8, repeats = 5;
};

struct Cost {
  double wall_s = 0, cpu_s = 0, peak_mb = 0;
};

Cost Report(const Options& options, const std::string& format, const std::string& output) {
  std::vector<std::string> words = {options.program, "report", options.path, "-f",
                                    format,          "-o",     output};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const Stopwatch watch;
  pid_t pid = 0;
  EPM_CHECK(posix_spawn(&pid, words[0].c_str(), nullptr, nullptr, arguments.data(), environ) == 0);
  int status = 0;
  rusage usage{};
  EPM_CHECK(wait4(pid, &status, 0, &usage) == pid);
  EPM_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0) << format;
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return {.wall_s = watch.wall_s(),
          .cpu_s = seconds(usage.ru_utime) + seconds(usage.ru_stime),
          .peak_mb = static_cast<double>(usage.ru_maxrss) * 1024 / 1e6};
}

double Middle(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void PrintFormat(const Options& options, const std::string& format) {
  const std::string output = options.path + ".out";
  std::vector<double> wall, cpu;
  double peak_mb = 0;
  for (int i = 0; i < options.repeats; ++i) {
    const Cost cost = Report(options, format, output);
    wall.push_back(cost.wall_s);
    cpu.push_back(cost.cpu_s);
    peak_mb = std::max(peak_mb, cost.peak_mb);
  }
  fmt::print("{:<6} {:.2f} ({:.2f}) s wall, {:.2f} ({:.2f}) s CPU, {:.0f} MB, {} bytes\n", format,
             *std::min_element(wall.begin(), wall.end()), Middle(wall),
             *std::min_element(cpu.begin(), cpu.end()), Middle(cpu), peak_mb, FileBytes(output));
  std::fflush(stdout);
  std::filesystem::remove(output);
}

bool Parse(int argc, char** argv, Options* options) {
  if (argc < 2) return false;
  options->program = argv[1];
  for (int i = 2; i + 1 < argc; i += 2) {
    const std::string key = argv[i];
    const char* const value = argv[i + 1];
    if (key == "--hours") {
      options->hours = std::atof(value);
    } else if (key == "--steps") {
      options->steps = std::atof(value);
    } else if (key == "--ranks") {
      options->ranks = std::atoi(value);
    } else if (key == "--repeats") {
      options->repeats = std::max(1, std::atoi(value));
    } else if (key == "--formats") {
      options->formats = value;
    } else if (key == "--keep") {
      options->keep = value;
      options->path = value;
    } else {
      return false;
    }
  }
  return options->hours > 0 && options->ranks > 0;
}

int Main(int argc, char** argv) {
  Options options;
  if (!Parse(argc, argv, &options)) {
    std::fputs("report_cost: see the first lines of report_cost.cc for its options\n", stderr);
    return 2;
  }
  const auto ticks = static_cast<uint64_t>(options.hours * kTicksPerHour);
  const StreamShape shape = {.steps_per_tick = options.steps / static_cast<double>(ticks),
                             .ranks = options.ranks};
  const WriteCost cost = WriteRun(options.path, shape, ticks, true);
  fmt::print("{} GPUs x {} metrics x {} ticks, {} events: {} bytes\n", shape.gpus, kMetricsPerGpu,
             ticks, cost.events, cost.bytes);
  for (const std::string_view format : base::Split(options.formats, ',')) {
    if (!format.empty()) PrintFormat(options, std::string(format));
  }
  if (options.keep.empty()) std::filesystem::remove(options.path);
  return 0;
}

}  // namespace
}  // namespace epochmeter::bench

int main(int argc, char** argv) { return epochmeter::bench::Main(argc, argv); }
