// SPDX-License-Identifier: Apache-2.0
// Imports the scrolling tables of `nvidia-smi dmon` and `nvidia-smi pmon`: a header of two lines
// that comes again and again, '-' where there is no number, with date and time by -o DT, with
// performance metrics by --gpm-metrics, as a table or by --format csv.
#include <algorithm>
#include <array>

#include "base/strings.h"
#include "ingest/line_import.h"
#include "model/gpu_activity_metrics.h"
#include "model/gpu_health_metrics.h"
#include "model/gpu_power_metrics.h"

namespace epochmeter::ingest {
namespace {

namespace metrics = model::gpu;

// The PCIe throughput (rxpci, txpci) is left out on purpose: the driver looks at 20 ms of a second.
constexpr ForeignColumn kDeviceColumns[] = {
    {"pwr", &metrics::kPower, "W"},
    {"gtemp", &metrics::kTemperature, "C"},
    {"temp", &metrics::kTemperature, "C"},
    {"mtemp", &metrics::kMemoryTemperature, "C"},
    {"sm", &metrics::kUtilization, "%"},
    {"mem", &metrics::kMemoryActivity, "%"},
    {"enc", &metrics::kEncoder, "%"},
    {"dec", &metrics::kDecoder, "%"},
    {"jpg", &metrics::kJpeg, "%"},
    {"ofa", &metrics::kOpticalFlow, "%"},
    {"mclk", &metrics::kMemoryClock, "MHz"},
    {"pclk", &metrics::kSmClock, "MHz"},
    {"fb", &metrics::kMemoryUsed, "MB", "frame buffer in use; MB means MiB"},
    {"bar1", &metrics::kBar1Used, "MB", "MB means MiB"},
    {"sbecc", &metrics::kEccCorrectedAggregate, ""},
    {"dbecc", &metrics::kEccUncorrectedAggregate, ""},
    {"pci", &metrics::kPcieReplays, ""},
    {"gract", &metrics::kEngineActive, "%"},
    {"smutil", &metrics::kSmActive, "%"},
    {"smocc", &metrics::kSmOccupancy, "%"},
    {"intutil", &metrics::kIntegerActive, "%"},
    {"mmaact", &metrics::kTensorActive, "%"},
    {"dram", &metrics::kDramActive, "%"},
    {"fp64", &metrics::kFp64Active, "%"},
    {"fp32", &metrics::kFp32Active, "%"},
    {"fp16", &metrics::kFp16Active, "%"},
    {"pcitx", &metrics::kPcieTransmitRate, "MiB/s"},
    {"pcirx", &metrics::kPcieReceiveRate, "MiB/s"},
    {"nvltx", &metrics::kNvlinkTransmitRate, "MiB/s"},
    {"nvlrx", &metrics::kNvlinkReceiveRate, "MiB/s"},
};

// A process that did nothing in the driver's window is not in it: '-'.
constexpr model::SeriesCondition kNoWindow = model::SeriesCondition::kNotFound;
constexpr ForeignColumn kProcessColumns[] = {
    {"sm", &metrics::kOfProcessSm, "%", "in the driver's window", kNoWindow},
    {"mem", &metrics::kOfProcessMemoryActivity, "%", "in the driver's window", kNoWindow},
    {"fb", &metrics::kOfProcessMemory, "MB", "frame buffer of the process; MB means MiB"},
};

enum class Role : uint8_t { kUnknown, kValue, kGpu, kPid, kDate, kTime, kMig, kCommand };

struct Field {
  Role role = Role::kUnknown;
  const ForeignColumn* column = nullptr;
  std::string name;
};

Role RoleOf(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, Role>, 10> kRoles = {{
      {"gpu", Role::kGpu},
      {"pid", Role::kPid},
      {"date", Role::kDate},
      {"time", Role::kTime},
      {"mig", Role::kMig},
      {"gi", Role::kMig},
      {"ci", Role::kMig},
      {"command", Role::kCommand},
      {"type", Role::kCommand},
      {"name", Role::kCommand},
  }};
  for (const auto& [known, role] : kRoles) {
    if (known == name) return role;
  }
  return Role::kUnknown;
}

// The words of a line of a table, or its CSV fields.
std::vector<std::string> Words(std::string_view line) {
  if (line.find(',') != std::string_view::npos) return CsvFields(line, ',', 0);
  std::vector<std::string> words;
  for (const std::string_view word : base::SplitWhitespace(line)) words.emplace_back(word);
  return words;
}

// "20260824" as the begin of that day, as if in UTC.
std::optional<int64_t> ReadDate(std::string_view text) {
  if (text.size() != 8) return std::nullopt;
  const auto year = Digits(text, 0, 4);
  const auto month = Digits(text, 4, 2);
  const auto day = Digits(text, 6, 2);
  return year && month && day ? DayNs(*year, *month, *day) : std::nullopt;
}

class Monitor : public LineFormat {
 public:
  explicit Monitor(ForeignRun& run) : run_(run) {}

  void Line(std::string_view line) override {
    line = base::Trim(line);
    if (line.empty()) return;
    if (line[0] == '#') {
      TakeHeader(line.substr(1));
      return;
    }
    if (fields_.empty()) {
      run_.BadLine("no header before it");
      return;
    }
    std::vector<std::string> words = Words(line);
    // A command may hold spaces; it is the last column.
    while (words.size() > fields_.size() && fields_.back().role == Role::kCommand) words.pop_back();
    if (words.size() != fields_.size()) {
      run_.BadLine("not as many words as the header has");
      return;
    }
    TakeRow(words);
  }

 private:
  // Of the header's two lines only the first one, with the names, counts.
  void TakeHeader(std::string_view line) {
    std::vector<std::string> words = Words(line);
    for (std::string& word : words) word = base::ToLowerAscii(word);
    if (std::find(words.begin(), words.end(), "gpu") == words.end()) return;
    const bool processes = std::find(words.begin(), words.end(), "pid") != words.end();
    processes_ = processes;
    fields_.clear();
    for (std::string& word : words) {
      Field field{.role = RoleOf(word), .column = nullptr, .name = word};
      if (field.role == Role::kUnknown) field.column = FindColumn(word);
      if (field.column != nullptr) field.role = Role::kValue;
      if (field.role == Role::kUnknown) run_.Unknown(word);
      fields_.push_back(std::move(field));
    }
  }

  const ForeignColumn* FindColumn(std::string_view name) const {
    const auto find = [name](const auto& columns) -> const ForeignColumn* {
      for (const ForeignColumn& column : columns) {
        if (column.name == name) return &column;
      }
      return nullptr;
    };
    return processes_ ? find(kProcessColumns) : find(kDeviceColumns);
  }

  // False when a word that names the row can't be read; `idle` for a row of no process.
  bool ReadName(const std::vector<std::string>& words, RowTime* time, Subject* subject,
                bool* idle) {
    std::optional<int64_t> day_ns;
    bool good = true;
    for (size_t i = 0; i < words.size(); ++i) {
      const std::string& word = words[i];
      const Role role = fields_[i].role;
      if (role == Role::kGpu) {
        subject->index = base::ParseInt(word);
        good = good && subject->index;
      } else if (role == Role::kDate) {
        day_ns = ReadDate(word);
        good = good && day_ns;
      } else if (role == Role::kTime) {
        time->of_day_ns = TimeOfDayNs(word, 0);
        good = good && time->of_day_ns;
      } else if (role == Role::kMig && word != "-") {
        subject->instance += (subject->instance.empty() ? "" : "/") + fields_[i].name + word;
      } else if (role == Role::kPid) {
        *idle = word == "-";
        const auto pid = base::ParseInt(word);
        subject->pid = pid.value_or(0);
        good = good && (*idle || (pid && *pid > 0));
      }
    }
    if (day_ns && time->of_day_ns) {
      time->wall_ns = run_.clock().ToUtc(*day_ns + *time->of_day_ns);
      time->of_day_ns.reset();
    }
    return good;
  }

  void TakeRow(const std::vector<std::string>& words) {
    RowTime time;
    Subject subject;
    bool idle = false;
    if (processes_) subject.kind = Subject::Kind::kProcess;
    if (!ReadName(words, &time, &subject, &idle)) {
      run_.BadLine("its time, GPU or process can't be read");
      return;
    }
    // A GPU without processes still begins a sample.
    if (idle) subject.kind = Subject::Kind::kGpu;
    if (!run_.Begin(time, subject)) return;
    for (size_t i = 0; i < words.size() && !idle; ++i) {
      const Field& field = fields_[i];
      if (field.role == Role::kValue) run_.Cell(*field.column, words[i]);
      if (field.name == "command") run_.Describe("process_name", words[i]);
    }
    run_.EndRow();
  }

  ForeignRun& run_;
  bool processes_ = false;
  std::vector<Field> fields_;
};

int Recognise(const SourceHead& head) {
  for (const std::string_view raw : head.Lines()) {
    const std::string line = base::ToLowerAscii(base::Trim(raw));
    if (line.empty() || line[0] != '#') continue;
    const auto words = Words(std::string_view(line).substr(1));
    const auto has = [&words](std::string_view name) {
      return std::find(words.begin(), words.end(), name) != words.end();
    };
    if (!has("gpu")) continue;
    const bool device = has("sm") || has("pwr") || has("fb") || has("mclk") || has("gract");
    return device || has("pid") ? 90 : 40;
  }
  return 0;
}

base::Result<ImportSummary> Import(const std::string& path, const ImportOptions& options,
                                   model::Sink& sink) {
  return ImportLines(
      {.tool = "nvidia-smi dmon/pmon",
       .default_interval_s = 1,
       .nothing_usable = "give the output of nvidia-smi dmon (-o DT for times) or nvidia-smi pmon "
                         "-s um with its header",
       .Make = [](ForeignRun& run, const ImportOptions& /*options*/)
           -> std::unique_ptr<LineFormat> { return std::make_unique<Monitor>(run); }},
      path, options, sink);
}

}  // namespace

const ImporterDef kNvidiaSmiMonitorImporter{.name = "nvidia-smi-dmon",
                                            .summary = "nvidia-smi dmon or pmon, best with -o DT",
                                            .Recognise = &Recognise,
                                            .Import = &Import};

}  // namespace epochmeter::ingest
