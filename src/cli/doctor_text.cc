// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

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

void WriteMeasured(Page& page, const std::vector<collect::ProbedSource>& sources) {
  for (const collect::ProbedSource& source : sources) {
    std::vector<std::string> names;
    for (const auto& metric : source.metrics) {
      if (metric.measured()) names.push_back(MetricName(metric));
    }
    if (names.empty()) continue;
    const std::string cost = source.median_us ? Microseconds(*source.median_us) : "-";
    const std::string first =
        fmt::format("  {:<22}{:>9} /{:>3.0f} s  ", source.name, cost, source.period_s);
    page.Wrapped(base::Join(names, ", "), first, std::string(first.size(), ' '));
  }
}

// Absent metrics by reason: one driver call often explains many.
void WriteAbsent(Page& page, const std::vector<collect::ProbedSource>& sources) {
  std::vector<std::string> order;
  std::map<std::string, std::vector<std::string>> by_reason;
  for (const collect::ProbedSource& source : sources) {
    for (const auto& metric : source.metrics) {
      if (metric.measured()) continue;
      auto& names = by_reason[metric.reason];
      if (names.empty()) order.push_back(metric.reason);
      names.push_back(MetricName(metric));
    }
  }
  for (const std::string& reason : order) {
    page.Wrapped(base::Join(by_reason[reason], ", "), "  ", "  ");
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
    WriteMeasured(page, report.probe.gpu_sources);
    WriteMeasured(page, report.probe.host_sources);
  }
  if (Any(report, false)) {
    page.Line("");
    page.Line(page.Text(kAbsent));
    WriteAbsent(page, report.probe.gpu_sources);
    WriteAbsent(page, report.probe.host_sources);
  }
  WriteCalls(page, report.probe.nvml.calls);
  page.Line("");
  page.Line(fmt::format(
      "faults {}, limits {}; at 1 s reading takes {} of a core for the host, {} for GPUs",
      report.Count(CheckStatus::kFault), report.Count(CheckStatus::kLimited),
      Share(CostRatio(report.probe.host_sources)), Share(CostRatio(report.probe.gpu_sources))));
  return page.Take();
}

}  // namespace epochmeter::cli
