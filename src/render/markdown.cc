// SPDX-License-Identifier: Apache-2.0
#include "render/markdown.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/redact.h"
#include "base/strings.h"
#include "render/bars.h"
#include "render/bill_block.h"
#include "render/columns.h"
#include "render/epoch_table.h"
#include "render/finding_text.h"
#include "render/header.h"
#include "render/not_measured.h"
#include "render/run_items.h"
#include "render/units.h"

namespace epochmeter::render {
namespace {

using model::Finding;
using model::Report;
using model::Run;
using model::Severity;

constexpr size_t kMostFindings = 20;
constexpr size_t kMostItems = 12;

std::string_view SeveritySign(Severity severity) {
  switch (severity) {
    case Severity::kCritical:
      return "🔴";
    case Severity::kWarning:
      return "🟠";
    case Severity::kInfo:
      return "🔵";
    case Severity::kNotApplicable:
      return "⚪";
  }
  return "";
}

// "| a | b |" of cells that are escaped.
std::string Row(const std::vector<std::string>& cells) {
  return "| " + base::Join(cells, " | ") + " |\n";
}

class MarkdownPage {
 public:
  MarkdownPage(const Run& run, const Report& report, const TextOptions& options)
      : run_(run), report_(report), options_(options) {
    options_.ascii = false;
    options_.color = false;
    options_.width = std::numeric_limits<uint16_t>::max();
  }

  std::string Take() {
    AddHead();
    AddVerdict();
    AddFigures();
    AddFindings();
    AddEpochs();
    AddList(Phrase::kIncidents, IncidentItems(run_, report_, language()));
    AddList(Phrase::kExceptions, ExceptionItems(run_, language()));
    if (report_.bill) AddList(Phrase::kBill, BillItems(*report_.bill, language()));
    AddList(Phrase::kLosses, LossItems(run_, language()));
    AddList(Phrase::kNotMeasured, NotMeasuredItems(report_, language()));
    return std::move(text_);
  }

 private:
  Language language() const { return options_.language; }
  std::string_view Word(Phrase phrase) const { return Text(phrase, language()); }
  // Without what the options have taken out.
  std::string Open(std::string_view text) {
    return options_.redact ? redactor_.Text(text) : std::string(text);
  }
  std::string Foreign(std::string_view text) { return MarkdownText(Open(text)); }
  void Title(int level, std::string_view title) {
    text_ += fmt::format("\n{} {}\n\n", std::string(static_cast<size_t>(level), '#'), title);
  }

  void AddHead() {
    const std::vector<std::string> lines = HeaderLines(run_, report_, Phrase::kReport, options_);
    text_ += "## " + Foreign(lines.front()) + "\n\n";
    for (size_t i = 1; i < lines.size(); ++i) {
      text_ += "- " + Foreign(base::Trim(lines[i])) + "\n";
    }
  }

  void AddVerdict() {
    const Verdict verdict = VerdictOf(run_, report_, language());
    text_ +=
        fmt::format("\n> {} **{}**{}{}\n", verdict.good ? "🟢" : SeveritySign(verdict.severity),
                    verdict.good ? Word(Phrase::kGood) : SeverityWord(verdict.severity, language()),
                    Word(Phrase::kColon), Foreign(verdict.text));
    if (verdict.worst == nullptr) return;
    const std::string cost = CostText(*verdict.worst, language());
    if (!cost.empty()) text_ += ">\n> " + Foreign(cost) + "\n";
    if (!verdict.advice) return;
    text_ += ">\n> → " + Foreign(FirstAdvice(verdict, language()));
    const std::string code = FirstCode(verdict);
    if (!code.empty()) text_ += " " + MarkdownCode(Open(code));
    text_ += "\n";
  }

  void AddFigures() {
    const std::vector<Gauge> gauges = GaugesOf(run_, report_, language());
    const std::optional<std::string> energy = Joules(report_.energy_j);
    if (gauges.empty() && !energy) return;
    Title(3, Word(Phrase::kKeyFigures));
    text_ += Row({std::string(Word(Phrase::kName)), std::string(Word(Phrase::kValues))});
    text_ += "| --- | --- |\n";
    for (const Gauge& gauge : gauges) {
      text_ += Row({std::string(Word(gauge.name)), Foreign(gauge.text)});
    }
    if (energy) text_ += Row({std::string(Word(Phrase::kEnergy)), Foreign(*energy)});
  }

  void AddFindings() {
    const size_t not_applicable = CountOf(report_, Severity::kNotApplicable);
    if (report_.findings.empty()) return;
    Title(3, Word(Phrase::kFindings));
    size_t told = 0;
    for (const Finding& finding : report_.findings) {
      if (finding.severity == Severity::kNotApplicable) continue;
      if (++told <= kMostFindings) AddFinding(finding);
    }
    if (told == 0) text_ += fmt::format("{}\n", Word(Phrase::kNone));
    if (told > kMostFindings) {
      text_ += fmt::format("\n{} {} {}\n", Word(Phrase::kAnd), told - kMostFindings,
                           Word(Phrase::kMore));
    }
    if (not_applicable > 0) {
      text_ += fmt::format("\n{} {}\n", not_applicable, Word(Phrase::kRulesNotApplicable));
    }
    if (options_.all_rules) AddNotApplicable();
  }

  void AddNotApplicable() {
    text_ += "\n";
    for (const Finding& finding : report_.findings) {
      if (finding.severity != Severity::kNotApplicable) continue;
      text_ += fmt::format("- {}: {}\n", MarkdownCode(finding.rule),
                           Foreign(Said(finding.summary, language())));
    }
  }

  void AddFinding(const Finding& finding) {
    text_ += fmt::format("#### {} {}{}{} {}\n\n", SeveritySign(finding.severity),
                         SeverityWord(finding.severity, language()), Word(Phrase::kColon),
                         Foreign(Said(finding.title, language())), MarkdownCode(RuleText(finding)));
    text_ += Foreign(Said(finding.summary, language())) + "\n\n";
    const auto add = [&](Phrase name, const std::string& value) {
      if (value.empty()) return;
      text_ += fmt::format("- {}{}{}\n", Word(name), Word(Phrase::kColon), Foreign(value));
    };
    add(Phrase::kCost, CostText(finding, language()));
    for (const model::Evidence& evidence : finding.evidence) {
      add(Phrase::kEvidence, EvidenceText(run_, evidence, language()));
    }
    add(Phrase::kHowJudged, std::string(Said(finding.explanation, language())));
    for (const AdviceGroup& group : GroupAdvice(finding, report_.framework)) AddAdvice(group);
    text_ += "\n";
  }

  void AddAdvice(const AdviceGroup& group) {
    text_ += fmt::format("- {}{}{}{}\n", Word(Phrase::kChange), Foreign(group.To()),
                         Word(Phrase::kColon), Foreign(Said(*group.text, language())));
    for (const model::Advice* advice : group.with_code) {
      if (group.with_code.size() > 1) {
        text_ += fmt::format("\n  {}:\n", Foreign(FrameworkWord(*advice)));
      }
      AddCode(advice->code);
    }
  }

  // Indented as a part of the item; a fence that no line of the code can end.
  void AddCode(const std::string& code) {
    std::string fence = "```";
    while (code.find(fence) != std::string::npos) fence += '`';
    text_ += "  " + fence + "\n";
    for (const std::string_view line : base::Split(code, '\n')) {
      text_ += "  " + Plain(Open(line)) + "\n";
    }
    text_ += "  " + fence + "\n";
  }

  void AddEpochs() {
    if (report_.epochs.empty()) return;
    Title(3, Word(Phrase::kEpochs));
    const EpochCells cells = MakeEpochCells(report_, options_);
    std::vector<std::string> titles, rule;
    for (const TableColumn& column : cells.columns) {
      titles.push_back(Foreign(column.title));
      rule.emplace_back(column.left ? "---" : "---:");
    }
    text_ += Row(titles) + Row(rule);
    for (size_t row = 0; row < cells.rows.size(); ++row) {
      std::vector<std::string> texts;
      for (const TableColumn& column : cells.columns) {
        texts.push_back(column.cells[row] ? Foreign(*column.cells[row]) : "-");
      }
      text_ += Row(texts);
    }
    if (cells.rows.size() < report_.epochs.size()) {
      text_ += fmt::format("\n… {} {}\n", report_.epochs.size() - cells.rows.size(),
                           Word(Phrase::kMoreRows));
    }
    if (cells.has_incomplete) text_ += fmt::format("\n\\* {}\n", Word(Phrase::kIncomplete));
  }

  void AddList(Phrase title, const std::vector<std::string>& items) {
    if (items.empty()) return;
    Title(3, Word(title));
    for (size_t i = 0; i < std::min(items.size(), kMostItems); ++i) {
      text_ += "- " + Foreign(items[i]) + "\n";
    }
    if (items.size() <= kMostItems) return;
    text_ += fmt::format("- {} {} {}\n", Word(Phrase::kAnd), items.size() - kMostItems,
                         Word(Phrase::kMore));
  }

  const Run& run_;
  const Report& report_;
  TextOptions options_;
  base::Redactor redactor_;
  std::string text_;
};

}  // namespace

std::string MarkdownText(std::string_view text) {
  // Anywhere in a line, and where one begins: quotes, headings, items of lists.
  constexpr std::string_view kMarkup = "\\`*_[]|~$^#";
  constexpr std::string_view kAtBegin = "-+=";
  const std::string plain = Plain(text);
  const size_t digits = plain.find_first_not_of("0123456789");
  std::string escaped;
  for (size_t i = 0; i < plain.size(); ++i) {
    const char c = plain[i];
    const std::string_view rest = std::string_view(plain).substr(i);
    const bool number = i > 0 && i == digits && (c == '.' || c == ')');
    if (c == '<') {
      escaped += "&lt;";
    } else if (c == '>') {
      escaped += "&gt;";
    } else if (c == '&') {
      escaped += "&amp;";
    } else if (c == '@') {
      escaped += "&#64;";  // no mention of somebody
    } else if (base::StartsWith(rest, "://")) {
      escaped += "&#58;";  // no link
    } else if (base::StartsWith(base::ToLowerAscii(rest.substr(0, 4)), "www.")) {
      escaped += "&#119;";
    } else {
      const bool special = kMarkup.find(c) != std::string_view::npos;
      if (special || number || (i == 0 && kAtBegin.find(c) != std::string_view::npos)) {
        escaped += '\\';
      }
      escaped += c;
    }
  }
  return escaped;
}

std::string MarkdownCode(std::string_view text) {
  std::string plain = Plain(text);
  // A table cell ends at a bar even inside of code.
  std::replace(plain.begin(), plain.end(), '|', '/');
  std::string fence = "`";
  while (plain.find(fence) != std::string::npos) fence += '`';
  const bool pad = base::StartsWith(plain, "`") || base::EndsWith(plain, "`");
  return fence + (pad ? " " : "") + plain + (pad ? " " : "") + fence;
}

std::string RenderMarkdown(const Run& run, const Report& report, const TextOptions& options) {
  return MarkdownPage(run, report, options).Take();
}

}  // namespace epochmeter::render
