// SPDX-License-Identifier: Apache-2.0
// Imports `dcgmi dmon -e IDS`: a header of two lines, rows that begin with "GPU 0" or, with MIG,
// "GPU-I 3" and "GPU-CI 7" below their GPU, "N/A" where there is no number. It has no times.
#include <algorithm>

#include "base/strings.h"
#include "ingest/line_import.h"
#include "model/gpu_activity_metrics.h"
#include "model/gpu_health_metrics.h"
#include "model/gpu_link_metrics.h"
#include "model/gpu_power_metrics.h"

namespace epochmeter::ingest {
namespace {

namespace metrics = model::gpu;

// DCGM's short names, in lower case. Its activity fields are ratios, its rates bytes a second. The
// times of violations (PVIOL ...) are left out: its versions call them us and ns.
constexpr ForeignColumn kColumns[] = {
    {"gputl", &metrics::kUtilization, "%"},
    {"mcutl", &metrics::kMemoryActivity, "%"},
    {"ecutl", &metrics::kEncoder, "%"},
    {"dcutl", &metrics::kDecoder, "%"},
    {"power", &metrics::kPower, "W"},
    {"pwrdi", &metrics::kPowerInstant, "W"},
    {"eplmt", &metrics::kPowerLimit, "W"},
    {"pmlmt", &metrics::kPowerLimitRequested, "W"},
    {"pmdef", &metrics::kPowerLimitDefault, "W"},
    {"pmmin", &metrics::kPowerLimitMin, "W"},
    {"pmmax", &metrics::kPowerLimitMax, "W"},
    {"totec", &metrics::kEnergy, "mJ"},
    {"tmptr", &metrics::kTemperature, "C"},
    {"mmtmp", &metrics::kMemoryTemperature, "C"},
    {"sdtmp", &metrics::kTemperatureSlowdown, "C"},
    {"shtmp", &metrics::kTemperatureShutdown, "C"},
    {"fansp", &metrics::kFanSpeed, "%"},
    {"pstat", &metrics::kPerformanceState, ""},
    {"smclk", &metrics::kSmClock, "MHz"},
    {"mmclk", &metrics::kMemoryClock, "MHz"},
    {"viclk", &metrics::kVideoClock, "MHz"},
    {"smmax", &metrics::kMaxSmClock, "MHz"},
    {"mmmax", &metrics::kMaxMemoryClock, "MHz"},
    {"fbttl", &metrics::kMemoryTotal, "MiB"},
    {"fbfre", &metrics::kMemoryFree, "MiB"},
    {"fbusd", &metrics::kMemoryUsed, "MiB"},
    {"fbrsv", &metrics::kMemoryReserved, "MiB"},
    {"b1ttl", &metrics::kBar1Total, "MiB"},
    {"b1use", &metrics::kBar1Used, "MiB"},
    {"dvcctr", &metrics::kThrottleReasons, ""},
    {"rpctr", &metrics::kPcieReplays, ""},
    {"pcilg", &metrics::kPcieGeneration, ""},
    {"pcimg", &metrics::kPcieMaxGeneration, ""},
    {"pcilw", &metrics::kPcieWidth, ""},
    {"pcimw", &metrics::kPcieMaxWidth, ""},
    {"esvtl", &metrics::kEccCorrectedVolatile, ""},
    {"edvtl", &metrics::kEccUncorrectedVolatile, ""},
    {"esatl", &metrics::kEccCorrectedAggregate, ""},
    {"edatl", &metrics::kEccUncorrectedAggregate, ""},
    {"crmps", &metrics::kRemappedCorrected, ""},
    {"urmps", &metrics::kRemappedUncorrected, ""},
    {"rrp", &metrics::kRemapPending, ""},
    {"rrf", &metrics::kRemapFailed, ""},
    {"rpsbe", &metrics::kRetiredSingle, ""},
    {"rpdbe", &metrics::kRetiredDouble, ""},
    {"rppen", &metrics::kRetiredPending, ""},
    {"gract", &metrics::kEngineActive, ""},
    {"smact", &metrics::kSmActive, ""},
    {"smocc", &metrics::kSmOccupancy, ""},
    {"tenso", &metrics::kTensorActive, ""},
    {"thmma", &metrics::kTensorHalfActive, ""},
    {"drama", &metrics::kDramActive, ""},
    {"fp64a", &metrics::kFp64Active, ""},
    {"fp32a", &metrics::kFp32Active, ""},
    {"fp16a", &metrics::kFp16Active, ""},
    {"intac", &metrics::kIntegerActive, ""},
    {"pcitx", &metrics::kPcieTransmitRate, "B/s"},
    {"pcirx", &metrics::kPcieReceiveRate, "B/s"},
    {"nvltx", &metrics::kNvlinkTransmitRate, "B/s"},
    {"nvlrx", &metrics::kNvlinkReceiveRate, "B/s"},
};

struct Field {
  const ForeignColumn* column = nullptr;
  size_t at = 0;  // where its values begin in a line
};

const ForeignColumn* FindColumn(std::string_view name) {
  const std::string lower = base::ToLowerAscii(name);
  for (const ForeignColumn& column : kColumns) {
    if (column.name == lower) return &column;
  }
  return nullptr;
}

bool IsHeader(std::string_view line) { return base::StartsWith(base::Trim(line), "#Entity"); }

class Dmon : public LineFormat {
 public:
  explicit Dmon(ForeignRun& run) : run_(run) {}

  void Line(std::string_view line) override {
    const std::string_view text = base::Trim(line);
    if (IsHeader(line)) {
      TakeHeader(line);
      return;
    }
    // Comments, the line of units, and what dcgmi says when it is stopped.
    const bool talk = text.empty() || text[0] == '#' || text == "ID" ||
                      base::StartsWith(text, "ID ") || base::StartsWith(text, "dmon was stopped");
    if (talk) return;
    TakeRow(line);
  }

 private:
  void TakeHeader(std::string_view line) {
    fields_.clear();
    const auto words = base::SplitWhitespace(line);
    for (size_t i = 1; i < words.size(); ++i) {
      Field field;
      field.at = static_cast<size_t>(words[i].data() - line.data());
      field.column = FindColumn(words[i]);
      if (field.column == nullptr) run_.Unknown(std::string(words[i]));
      fields_.push_back(field);
    }
  }

  // The value of a field: its word where every field has one, else what stands below its name.
  std::string_view ValueOf(size_t field, std::string_view line,
                           const std::vector<std::string_view>& words) const {
    if (words.size() == fields_.size() + 2) return words[field + 2];
    const size_t begin = std::min(fields_[field].at, line.size());
    const bool last = field + 1 == fields_.size();
    const size_t end = last ? line.size() : std::min(fields_[field + 1].at, line.size());
    return base::Trim(line.substr(begin, end - begin));
  }

  bool ReadSubject(const std::vector<std::string_view>& words, Subject* subject) {
    const auto id = words.size() > 1 ? base::ParseInt(words[1]) : std::nullopt;
    if (!id || *id < 0) return false;
    if (words[0] == "GPU") {
      gpu_ = *id;
    } else if (words[0] != "GPU-I" && words[0] != "GPU-CI") {
      return false;
    } else {
      // Rows of instances stand below their GPU and don't name it.
      subject->instance = std::string(words[0]) + " " + std::string(words[1]);
    }
    subject->index = gpu_;
    return gpu_.has_value();
  }

  void TakeRow(std::string_view line) {
    const auto words = base::SplitWhitespace(line);
    Subject subject;
    if (fields_.empty()) {
      run_.BadLine("no header before it");
    } else if (!ReadSubject(words, &subject)) {
      run_.BadLine("it does not begin with a GPU");
    } else if (words.size() != fields_.size() + 2 && line.size() <= fields_.back().at) {
      run_.BadLine("shorter than the header");
    } else if (run_.Begin({}, subject)) {
      for (size_t i = 0; i < fields_.size(); ++i) {
        if (fields_[i].column != nullptr) run_.Cell(*fields_[i].column, ValueOf(i, line, words));
      }
      run_.EndRow();
    }
  }

  ForeignRun& run_;
  std::vector<Field> fields_;
  std::optional<int64_t> gpu_;  // of the last row of a whole GPU
};

int Recognise(const SourceHead& head) {
  const auto lines = head.Lines();
  return std::any_of(lines.begin(), lines.end(), IsHeader) ? 95 : 0;
}

base::Result<ImportSummary> Import(const std::string& path, const ImportOptions& options,
                                   model::Sink& sink) {
  return ImportLines({.tool = "dcgmi dmon",
                      .default_interval_s = 1,
                      .nothing_usable = "give the output of dcgmi dmon -e IDS with its header",
                      .Make = [](ForeignRun& run, const ImportOptions& /*options*/)
                          -> std::unique_ptr<LineFormat> { return std::make_unique<Dmon>(run); }},
                     path, options, sink);
}

}  // namespace

const ImporterDef kDcgmiDmonImporter{.name = "dcgmi-dmon",
                                     .summary = "dcgmi dmon -e IDS (it has no times: --start)",
                                     .Recognise = &Recognise,
                                     .Import = &Import};

}  // namespace epochmeter::ingest
