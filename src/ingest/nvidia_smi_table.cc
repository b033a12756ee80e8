// SPDX-License-Identifier: Apache-2.0
// Imports the table that plain `nvidia-smi` prints, again and again under -l or watch, and that of
// `nvitop -1`, which has the same fields in other lines. Above each table stands its time.
#include <algorithm>
#include <array>

#include "base/strings.h"
#include "ingest/line_import.h"
#include "model/gpu_metrics.h"

namespace epochmeter::ingest {
namespace {

namespace metrics = model::gpu;

constexpr ForeignColumn kTemperature{"Temp", &metrics::kTemperature, "C"};
constexpr ForeignColumn kPower{"Pwr:Usage", &metrics::kPower, "W"};
constexpr ForeignColumn kPowerLimit{"Pwr:Cap", &metrics::kPowerLimit, "W"};
constexpr ForeignColumn kMemoryUsed{
    "Memory-Usage", &metrics::kMemoryUsed, "MiB",
    "what the driver reserves is in it before driver 510, and not from then on"};
constexpr ForeignColumn kMemoryTotal{"Memory-Usage (total)", &metrics::kMemoryTotal, "MiB"};
constexpr ForeignColumn kUtilization{"GPU-Util", &metrics::kUtilization, "%"};

// The cells between '|' or the box characters U+2502 and U+2551.
std::vector<std::string> TableCells(std::string_view line) {
  std::string plain;
  for (size_t at = 0; at < line.size(); ++at) {
    const std::string_view three = line.substr(at, 3);
    if (three == "\xE2\x94\x82" || three == "\xE2\x95\x91") {
      plain += '|';
      at += 2;
    } else {
      plain += line[at];
    }
  }
  std::vector<std::string> cells;
  for (const std::string_view cell : base::Split(plain, '|')) cells.emplace_back(base::Trim(cell));
  if (!cells.empty()) cells.erase(cells.begin());
  return cells;
}

// "69W /  700W" at the end of a cell, or "0MiB / 81559MiB": both halves, or none.
std::array<std::string, 2> Halves(std::string_view text) {
  const size_t slash = text.find(" / ");
  if (slash == std::string_view::npos) return {};
  const auto left = base::SplitWhitespace(text.substr(0, slash));
  const auto right = base::SplitWhitespace(text.substr(slash + 3));
  if (left.empty() || right.empty()) return {};
  return {std::string(left.back()), std::string(right.front())};
}

bool EndsAsNumberWith(std::string_view word, char unit) {
  return word.size() > 1 && word.back() == unit && word[0] >= '0' && word[0] <= '9';
}

// "Tue Jul  7 08:12:38 2026", whatever stands behind it.
std::optional<Stamp> TableTime(std::string_view text) {
  const auto words = base::SplitWhitespace(text.substr(0, 64));
  if (words.size() < 5 || words[0].size() != 3) return std::nullopt;
  const char* end = words[4].data() + words[4].size();
  return ParseStamp(text.substr(0, static_cast<size_t>(end - text.data())));
}

class Table : public LineFormat {
 public:
  explicit Table(ForeignRun& run) : run_(run) {}

  void Line(std::string_view line) override {
    const std::string_view text = base::Trim(line);
    if (const auto stamp = TableTime(text)) {
      time_.wall_ns = run_.clock().ToUtc(stamp->ns);
      index_.reset();
      return;
    }
    const std::string stripped = base::ToLowerAscii(text.substr(0, 200));
    if (stripped.find("driver version:") != std::string::npos) TakeVersions(text);
    // Below the GPUs stands the table of processes, which has no two-line rows.
    if (stripped.find("processes:") != std::string::npos) index_.reset();
    const auto cells = TableCells(line);
    if (cells.size() >= 3) TakeCells(cells);
  }

 private:
  void TakeVersions(std::string_view text) {
    constexpr std::string_view kMark = "Driver Version:";
    const size_t at = text.find(kMark);
    if (at == std::string_view::npos) return;
    const auto words = base::SplitWhitespace(text.substr(at + kMark.size()));
    if (!words.empty()) driver_ = words[0];
  }

  // The first line of a GPU has its index, name and bus id, the second one its numbers.
  void TakeCells(const std::vector<std::string>& cells) {
    const auto words = base::SplitWhitespace(cells[0]);
    const bool numbers = cells[1].find("iB / ") != std::string::npos;
    if (numbers && index_) {
      TakeNumbers(cells);
      index_.reset();
      return;
    }
    const auto index = words.size() > 1 ? base::ParseInt(words[0]) : std::nullopt;
    const bool bus = std::count(cells[1].begin(), cells[1].end(), ':') >= 2;
    if (!index || !bus) return;
    index_ = index;
    name_ = cells[0].substr(words[1].data() - cells[0].data());
    // Behind the name stands whether persistence mode is on.
    const size_t last = name_.find_last_of(' ');
    if (last != std::string::npos) name_ = base::Trim(name_.substr(0, last));
  }

  void TakeNumbers(const std::vector<std::string>& cells) {
    const Subject subject{.index = index_};
    if (!run_.Begin(time_, subject)) return;
    run_.Describe("name", name_);
    run_.Describe("driver_version", driver_);
    for (const std::string_view word : base::SplitWhitespace(cells[0])) {
      if (EndsAsNumberWith(word, 'C')) run_.Cell(kTemperature, word);
    }
    const auto power = Halves(cells[0]);
    const auto memory = Halves(cells[1]);
    run_.Cell(kPower, power[0]);
    run_.Cell(kPowerLimit, power[1]);
    run_.Cell(kMemoryUsed, memory[0]);
    run_.Cell(kMemoryTotal, memory[1]);
    const auto words = base::SplitWhitespace(cells[2]);
    if (!words.empty()) run_.Cell(kUtilization, words[0]);
    run_.EndRow();
  }

  ForeignRun& run_;
  RowTime time_;
  std::optional<int64_t> index_;  // of the GPU whose second line is next
  std::string name_, driver_;
};

int Recognise(const SourceHead& head) {
  const bool smi = head.bytes.find("NVIDIA-SMI") != std::string::npos ||
                   head.bytes.find("NVITOP") != std::string::npos;
  return smi && head.bytes.find("iB / ") != std::string::npos ? 85 : 0;
}

base::Result<ImportSummary> Import(const std::string& path, const ImportOptions& options,
                                   model::Sink& sink) {
  return ImportLines({.tool = "nvidia-smi table",
                      .default_interval_s = 1,
                      .nothing_usable = "give the output of nvidia-smi -l 1 or nvitop -1",
                      .Make = [](ForeignRun& run, const ImportOptions& /*options*/)
                          -> std::unique_ptr<LineFormat> { return std::make_unique<Table>(run); }},
                     path, options, sink);
}

}  // namespace

const ImporterDef kNvidiaSmiTableImporter{
    .name = "nvidia-smi-table",
    .summary = "the table of plain nvidia-smi (-l 1) or nvitop -1",
    .Recognise = &Recognise,
    .Import = &Import};

}  // namespace epochmeter::ingest
