// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/strings.h"
#include "cli/doctor_report.h"
#include "render/columns.h"

namespace epochmeter::cli {
namespace {

using model::CheckStatus;

enum Word : size_t { kOk, kInfo, kLimited, kFault, kWhy, kFix, kMeasured, kAbsent, kCost, kEach };
constexpr std::array<std::array<const char*, 2>, 10> kWords = {{{"ok", "正常"},
                                                                {"info", "提示"},
                                                                {"limited", "受限"},
                                                                {"fault", "故障"},
                                                                {"why", "原因"},
                                                                {"fix", "解决"},
                                                                {"Measured here", "可以测量"},
                                                                {"Not measured", "无法测量"},
                                                                {"cost", "开销"},
                                                                {"each", "周期"}}};

class Page {
 public:
  explicit Page(const render::TextOptions& options) : options_(options) {}

  const char* Text(Word word) const { return kWords[word][static_cast<size_t>(options_.language)]; }

  void Line(const std::string& line) {
    text_ += (options_.ascii ? render::ToAscii(line) : line) + "\n";
  }
  void Wrapped(const std::string& text, const std::string& first, const std::string& rest) {
    for (const std::string& line : render::Wrap(render::Plain(text), options_.width, first, rest)) {
      Line(line);
    }
  }
  // `text` padded to `width` as a terminal counts, coloured by status.
  std::string Status(CheckStatus status, size_t width) const {
    std::string word = Text(static_cast<Word>(status));
    const size_t shown = render::DisplayWidth(word);
    if (options_.color) {
      constexpr std::array<const char*, 4> kColors = {"32", "36", "33", "31;1"};
      word = fmt::format("\033[{}m{}\033[0m", kColors[static_cast<size_t>(status)], word);
    }
    return word + std::string(width > shown ? width - shown : 0, ' ');
  }
  std::string Take() { return std::move(text_); }

 private:
  const render::TextOptions& options_;
  std::string text_;
};

std::string Microseconds(double us) {
  if (us >= 1000) return fmt::format("{:.1f} ms", us / 1000);
  return us >= 10 ? fmt::format("{:.0f} us", us) : fmt::format("{:.1f} us", us);
}

void WriteFact(Page& page, const model::CheckFact& fact) {
  constexpr size_t kStatusWidth = 9;
  const std::string margin(2 + kStatusWidth, ' ');
  // Wrapped without the status, which may hold invisible colour codes.
  const auto lines = render::Wrap(render::Plain(fact.what), 88, "", "");
  for (size_t i = 0; i < lines.size(); ++i) {
    page.Line((i == 0 ? "  " + page.Status(fact.status, kStatusWidth) : margin) + lines[i]);
  }
  const auto part = [&](Word word, const std::string& text) {
    if (text.empty()) return;
    const std::string name = std::string(page.Text(word)) + ": ";
    page.Wrapped(text, margin + name, margin + std::string(render::DisplayWidth(name), ' '));
  };
  if (fact.status == CheckStatus::kOk) {
    if (!fact.why.empty()) page.Wrapped(fact.why, margin, margin);
    return;
  }
  part(kWhy, fact.why);
  part(kFix, fact.fix);
}

std::string MetricName(const collect::ProbedMetric& metric) {
  const std::string& label = metric.info.label;
  std::string text = metric.info.name + (label.empty() ? "" : "{" + label + "}");
  if (metric.measured() && metric.entities < metric.known_entities) {
    text += fmt::format(" ({} of {})", metric.entities, metric.known_entities);
  }
  return text;
}

// `process` tells apart what each process has of its own: what it costs itself.
void WriteMeasured(Page& page, const std::vector<collect::ProbedSource>& sources,
                   std::string_view process) {
  for (const collect::ProbedSource& source : sources) {
    std::vector<std::string> names;
    for (const auto& metric : source.metrics) {
      if (metric.measured()) names.push_back(MetricName(metric));
    }
    if (names.empty()) continue;
    const bool self = base::EndsWith(source.name, ".self");
    const std::string name = self ? std::string(process) + ".self" : source.name;
    const std::string cost = source.median_us ? Microseconds(*source.median_us) : "-";
    const std::string first =
        fmt::format("  {:<22}{:>9} /{:>3.0f} s  ", name, cost, source.period_s);
    page.Wrapped(base::Join(names, ", "), first, std::string(first.size(), ' '));
  }
}

void AddOnce(std::vector<std::string>& names, std::string name) {
  if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(std::move(name));
}

// "gpu.memory" of "gpu.memory.used".
std::string FamilyOf(const std::string& name) {
  const size_t first = name.find('.');
  return first == std::string::npos ? name : name.substr(0, name.find('.', first + 1));
}

// What one reason explains: each metric once, and families in place of many metrics.
class AbsentGroup {
 public:
  void Add(const collect::ProbedMetric& metric) {
    AddOnce(names_, MetricName(metric));
    const std::string family = FamilyOf(metric.info.name);
    if (members_.find(family) == members_.end()) families_.push_back(family);
    AddOnce(members_[family], metric.info.name);
  }
  std::string Text() const {
    constexpr size_t kMostNames = 24;
    constexpr size_t kMostFamilies = 12;
    if (names_.size() <= kMostNames) return base::Join(names_, ", ");
    std::vector<std::string> shown;
    for (const std::string& family : families_) {
      if (shown.size() == kMostFamilies) break;
      const std::vector<std::string>& members = members_.at(family);
      const bool one = members.size() == 1;
      shown.push_back(one ? members.front() : fmt::format("{}.* ({})", family, members.size()));
    }
    std::string text = fmt::format("{} metrics: {}", names_.size(), base::Join(shown, ", "));
    if (families_.size() > shown.size()) text += " and others (doctor --json names all)";
    return text;
  }

 private:
  std::vector<std::string> names_, families_;
  std::map<std::string, std::vector<std::string>> members_;
};

// Absent metrics by reason: one driver call often explains many.
void WriteAbsent(Page& page, const collect::MachineProbe& probe) {
  std::vector<std::string> order;
  std::map<std::string, AbsentGroup> by_reason;
  for (const auto* sources : {&probe.gpu_sources, &probe.host_sources}) {
    for (const collect::ProbedSource& source : *sources) {
      for (const auto& metric : source.metrics) {
        if (metric.measured()) continue;
        AddOnce(order, metric.reason);
        by_reason[metric.reason].Add(metric);
      }
    }
  }
  for (const std::string& reason : order) {
    page.Wrapped(by_reason[reason].Text(), "  ", "  ");
    page.Wrapped(reason, "      ", "      ");
  }
}

bool Any(const DoctorReport& report, bool measured) {
  for (const auto* sources : {&report.probe.gpu_sources, &report.probe.host_sources}) {
    for (const auto& source : *sources) {
      for (const auto& metric : source.metrics) {
        if (metric.measured() == measured) return true;
      }
    }
  }
  return false;
}

void WriteCalls(Page& page, const std::vector<collect::ProbedCall>& calls) {
  if (calls.empty()) return;
  page.Line("");
  page.Line("NVML calls, " + std::string(page.Text(kCost)));
  for (const collect::ProbedCall& call : calls) {
    page.Line(
        fmt::format("  {:<44}{:>9}  {}", call.name, Microseconds(call.median_us), call.error));
  }
}

std::string Share(std::optional<double> ratio) {
  return ratio ? fmt::format("{:.2f} %", *ratio * 100) : "unknown";
}

}  // namespace

int DoctorReport::Count(CheckStatus status) const {
  int count = 0;
  for (const CheckResult& check : checks) {
    for (const model::CheckFact& fact : check.facts) count += fact.status == status ? 1 : 0;
  }
  return count;
}

std::optional<double> CostRatio(const std::vector<collect::ProbedSource>& sources) {
  std::optional<double> ratio;
  for (const collect::ProbedSource& source : sources) {
    if (source.median_us && source.period_s > 0) {
      ratio = ratio.value_or(0) + *source.median_us * 1e-6 / source.period_s;
    }
  }
  return ratio;
}

std::string DoctorText(const DoctorReport& report, const render::TextOptions& options) {
  Page page(options);
  page.Line("epochmeter doctor: " + report.host +
            (report.pid > 0 ? ", process " + std::to_string(report.pid) : ""));
  page.Line("");
  for (const CheckResult& check : report.checks) {
    for (const model::CheckFact& fact : check.facts) WriteFact(page, fact);
  }
  if (Any(report, true)) {
    page.Line("");
    page.Line(
        fmt::format("{} ({} / {})", page.Text(kMeasured), page.Text(kCost), page.Text(kEach)));
    WriteMeasured(page, report.probe.gpu_sources, "sampler");
    WriteMeasured(page, report.probe.host_sources, "recorder");
  }
  if (Any(report, false)) {
    page.Line("");
    page.Line(page.Text(kAbsent));
    WriteAbsent(page, report.probe);
  }
  WriteCalls(page, report.probe.nvml.calls);
  page.Line("");
  if (!report.looked) {
    page.Line(
        fmt::format("faults {}; nothing else was looked at", report.Count(CheckStatus::kFault)));
    return page.Take();
  }
  page.Line(fmt::format(
      "faults {}, limits {}; at 1 s reading takes {} of a core for the host, {} for GPUs",
      report.Count(CheckStatus::kFault), report.Count(CheckStatus::kLimited),
      Share(CostRatio(report.probe.host_sources)), Share(CostRatio(report.probe.gpu_sources))));
  return page.Take();
}

}  // namespace epochmeter::cli
