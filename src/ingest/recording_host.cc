// SPDX-License-Identifier: Apache-2.0
#include "base/strings.h"
#include "ingest/recording_lines.h"
#include "model/host_metrics.h"

namespace epochmeter::ingest {
namespace {

using model::MetricDef;
namespace metrics = model::host;

constexpr double kPageBytes = 4096;  // recordings come from x86-64 machines

// In the order of the line "cpu" of /proc/stat.
constexpr std::array<const MetricDef*, 8> kCpuModes = {
    &metrics::kCpuUser,   &metrics::kCpuNice, &metrics::kCpuSystem,  &metrics::kCpuIdle,
    &metrics::kCpuIowait, &metrics::kCpuIrq,  &metrics::kCpuSoftirq, &metrics::kCpuSteal};

struct MemoryField {
  std::string_view key;
  const MetricDef* metric;
};
constexpr MemoryField kMemoryFields[] = {
    {"mem_total_kb", &metrics::kMemoryTotal}, {"mem_available_kb", &metrics::kMemoryAvailable},
    {"cached_kb", &metrics::kMemoryCached},   {"swap_total_kb", &metrics::kSwapTotal},
    {"swap_free_kb", &metrics::kSwapFree},
};

// A count that sums of some thousands can't overflow.
std::optional<int64_t> CountField(JsonObject object, std::string_view key) {
  const auto count = IntField(object, key);
  if (!count || *count < 0 || *count > (int64_t{1} << 46)) return std::nullopt;
  return count;
}

}  // namespace

// Sums over the processes of one host line. What one of them lacks is unknown for all.
struct HostLines::Tree {
  Counters counters{0, 0, 0, 0};
  std::optional<int64_t> rss_pages = 0, threads = 0;
  int64_t processes = 0;
};

namespace {

void Add(std::optional<int64_t>& sum, std::optional<int64_t> part) {
  if (sum && part) {
    *sum += *part;
  } else {
    sum.reset();
  }
}

}  // namespace

HostLines::HostLines(const RecordingHeader& header, SeriesCache& cache)
    : clk_tck_(header.clk_tck),
      period_ns_(PeriodNs(header)),
      cache_(cache),
      host_(cache.registry().AddEntity(
          {.scope = model::Scope::kHost, .name = "host", .labels = {}, .attributes = {}})) {
  if (!header.cpus) return;
  model::EntityDef about = cache.registry().entity(host_);
  about.attributes = {{"cpus", std::to_string(*header.cpus)}};
  cache.registry().AddEntity(std::move(about));
}

void HostLines::Host(JsonObject line, model::Samples& out) {
  if (const auto stat = TextField(line, "stat")) CpuTimes(*stat, out);
  for (const MemoryField& field : kMemoryFields) {
    const auto kib = RealField(line, field.key);
    if (kib) cache_.Put(host_, *field.metric, period_ns_, *kib * 1024, 0, kMostBytes, out);
  }
  if (const auto processes = ArrayField(line, "procs")) ProcessTree(*processes, out);
}

void HostLines::CpuTimes(std::string_view stat, model::Samples& out) {
  const auto words = base::SplitWhitespace(stat);
  if (!clk_tck_ || words.empty() || words[0] != "cpu") return;
  for (size_t i = 0; i < kCpuModes.size() && i + 1 < words.size(); ++i) {
    const auto ticks = base::ParseUint(words[i + 1]);
    if (!ticks) continue;
    const double seconds = static_cast<double>(*ticks) / static_cast<double>(*clk_tck_);
    cache_.Put(host_, *kCpuModes[i], period_ns_, seconds, 0, kMostCount, out);
  }
}

void HostLines::AddProcess(JsonObject process, Tree& tree) {
  ++tree.processes;
  Add(tree.rss_pages, CountField(process, "rss_pages"));
  Add(tree.threads, CountField(process, "threads"));
  const auto pid = IntField(process, "pid");
  if (!pid) {
    tree.counters = {};
    return;
  }
  const auto user = CountField(process, "utime");
  const auto system = CountField(process, "stime");
  const Counters now = {user && system ? std::optional(*user + *system) : std::nullopt,
                        CountField(process, "read_bytes"), CountField(process, "write_bytes"),
                        CountField(process, "majflt")};
  Known& known = processes_[*pid];
  known.seen = lines_;
  for (size_t i = 0; i < kCounters; ++i) {
    auto& last = known.counters[i];
    // A counter that fell is another process under the same pid.
    if (last && now[i] && *now[i] < *last) ended_[i] += static_cast<double>(*last);
    if (now[i]) last = now[i];
    Add(tree.counters[i], last);
  }
}

void HostLines::ForgetEnded() {
  std::erase_if(processes_, [this](const auto& entry) {
    if (entry.second.seen == lines_) return false;
    for (size_t i = 0; i < kCounters; ++i)
      ended_[i] += static_cast<double>(entry.second.counters[i].value_or(0));
    return true;
  });
}

void HostLines::ProcessTree(simdjson::dom::array processes, model::Samples& out) {
  ++lines_;
  Tree tree;
  for (const JsonElement item : processes) {
    JsonObject process;
    if (item.get(process) == simdjson::SUCCESS) AddProcess(process, tree);
  }
  // What ended keeps its part, so that the sums never fall.
  ForgetEnded();
  const model::EntityId entity = cache_.registry().AddEntity(
      {.scope = model::Scope::kProcess, .name = "tree", .labels = {}, .attributes = {}});
  const auto put = [&](const MetricDef& metric, std::optional<double> value) {
    if (value) cache_.Put(entity, metric, period_ns_, *value, 0, kMostCount, out);
  };
  const auto total = [&](size_t i) -> std::optional<double> {
    if (!tree.counters[i]) return std::nullopt;
    return static_cast<double>(*tree.counters[i]) + ended_[i];
  };
  if (const auto ticks = total(0); ticks && clk_tck_) {
    put(metrics::kTreeCpu, *ticks / static_cast<double>(*clk_tck_));
  }
  put(metrics::kTreeRead, total(1));
  put(metrics::kTreeWritten, total(2));
  put(metrics::kTreeMajorFaults, total(3));
  put(metrics::kTreeProcesses, static_cast<double>(tree.processes));
  put(metrics::kTreeThreads, tree.threads);
  if (tree.rss_pages) put(metrics::kTreeRss, static_cast<double>(*tree.rss_pages) * kPageBytes);
}

}  // namespace epochmeter::ingest
