// SPDX-License-Identifier: Apache-2.0
#include "render/finding_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/clock.h"
#include "base/strings.h"
#include "render/columns.h"
#include "render/figure_words.h"
#include "render/fill.h"
#include "render/units.h"

namespace epochmeter::render {
namespace {

using model::Advice;
using model::Evidence;
using model::Finding;
using model::Report;
using model::Run;
using model::Severity;

constexpr size_t kMostFindings = 20;
constexpr size_t kMostSteps = 6;

// A speed-up of more than this is no longer a forecast.
constexpr double kMostGain = 0.95;
// Below it a share says more than a factor.
constexpr double kTellingSpeed = 1.1;

std::string Since(const Run& run, int64_t t_ns) {
  const double since_s = base::SecondsFromNs(t_ns - run.Recorded().begin_ns);
  return (since_s < 0 ? "-" : "+") + base::FormatDuration(std::fabs(since_s));
}

// "+2.1 s to +93 s"; empty for all of the run and for what has no limits.
std::string IntervalText(const Run& run, model::Interval interval, Language language) {
  const model::Interval all;
  if (interval.begin_ns == all.begin_ns || interval.end_ns == all.end_ns) return {};
  if (interval.begin_ns >= interval.end_ns) return Since(run, interval.begin_ns);
  return fmt::format("{} {} {}", Since(run, interval.begin_ns), Text(Phrase::kTo, language),
                     Since(run, interval.end_ns));
}

// "steps 20, 21, 22 and 4 more".
std::string StepsText(const std::vector<int64_t>& steps, Language language) {
  if (steps.empty()) return {};
  std::vector<std::string> names;
  for (size_t i = 0; i < std::min(steps.size(), kMostSteps); ++i) {
    names.push_back(std::to_string(steps[i]));
  }
  std::string text =
      fmt::format("{} {}", Text(steps.size() == 1 ? Phrase::kStep : Phrase::kStepNumbers, language),
                  base::Join(names, ", "));
  if (steps.size() > names.size()) {
    text += fmt::format(" {} {} {}", Text(Phrase::kAnd, language), steps.size() - names.size(),
                        Text(Phrase::kMore, language));
  }
  return text;
}

// How the training ended when that alone is bad news; empty otherwise.
std::string BadEnd(const Run& run, Language language) {
  if (!run.end) return {};
  if (run.end->exit_code.value_or(0) != 0) {
    return fmt::format("{} {}", Text(Phrase::kExitCode, language), *run.end->exit_code);
  }
  if (run.end->signal)
    return fmt::format("{} {}", Text(Phrase::kSignal, language), *run.end->signal);
  return {};
}

// The first exception that the training told of; empty without any.
std::string FirstException(const Run& run) {
  for (const model::Event& event : run.events) {
    if (event.kind != model::EventKind::kException) continue;
    const std::string message(event.Text("message").value_or(""));
    return Plain(message.empty() ? event.name : event.name + ": " + message);
  }
  return {};
}

std::string Sentence(const Finding& finding, Language language) {
  const std::string_view summary = Said(finding.summary, language);
  return Plain(summary.empty() ? Said(finding.title, language) : summary);
}

// As it is where it fits: spaces count in it.
void AddCode(std::string_view line, Page* page) {
  const std::string indent(6 + std::min(line.find_first_not_of(' '), line.size()), ' ');
  const std::string whole = std::string(6, ' ') + page->Shown(line);
  if (DisplayWidth(whole) <= page->width()) {
    page->Line(page->Tinted(whole, Tint::kGreen));
  } else {
    page->Paragraph(line, indent, indent + "  ", Tint::kGreen);
  }
}

void AddAdvice(const AdviceGroup& group, Page* page) {
  const std::string what = fmt::format("{}{}{}{}", page->Word(Phrase::kChange), group.To(),
                                       page->Word(Phrase::kColon), page->Said(*group.text));
  page->Paragraph(what, "    ", "      ");
  for (const Advice* advice : group.with_code) {
    if (group.with_code.size() > 1) page->Line(fmt::format("      {}:", FrameworkWord(*advice)));
    for (const std::string_view line : base::Split(advice->code, '\n')) {
      AddCode(line, page);
    }
  }
}

void AddFinding(const Run& run, const Report& report, const Finding& finding, Page* page) {
  const Language language = page->options().language;
  const std::string_view word = SeverityWord(finding.severity, language);
  page->Line(fmt::format("  {}  {}  {}", page->Tinted(word, SeverityTint(finding.severity)),
                         page->Tinted(page->Shown(page->Said(finding.title)), Tint::kBold),
                         page->Tinted(RuleText(finding), Tint::kDim)));
  page->Paragraph(Sentence(finding, language), "    ", "    ");
  const auto add = [&](Phrase name, std::string_view text, Tint tint) {
    if (text.empty()) return;
    page->Paragraph(fmt::format("{}{}{}", page->Word(name), page->Word(Phrase::kColon), text),
                    "    ", "      ", tint);
  };
  add(Phrase::kCost, CostText(finding, language), Tint::kNone);
  for (const Evidence& evidence : finding.evidence) {
    add(Phrase::kEvidence, EvidenceText(run, evidence, language), Tint::kNone);
  }
  add(Phrase::kHowJudged, page->Said(finding.explanation), Tint::kDim);
  for (const AdviceGroup& group : GroupAdvice(finding, report.framework)) AddAdvice(group, page);
}

// Each rule that could not judge, with the reason.
void AddNotApplicable(const Report& report, Page* page) {
  const size_t count = CountOf(report, Severity::kNotApplicable);
  if (count == 0) return;
  if (!page->options().all_rules) {
    page->Line(
        fmt::format("  {} {} (--all-rules)", count, page->Word(Phrase::kRulesNotApplicable)));
    return;
  }
  page->Line(fmt::format("  {} {}{}", count, page->Word(Phrase::kRulesNotApplicable),
                         page->Word(Phrase::kColon)));
  for (const Finding& finding : report.findings) {
    if (finding.severity != Severity::kNotApplicable) continue;
    page->Paragraph(fmt::format("{}: {}", finding.rule, page->Said(finding.summary)), "    ",
                    "      ", Tint::kDim);
  }
}

}  // namespace

std::string_view SeverityWord(Severity severity, Language language) {
  switch (severity) {
    case Severity::kCritical:
      return Text(Phrase::kCritical, language);
    case Severity::kWarning:
      return Text(Phrase::kWarning, language);
    case Severity::kInfo:
      return Text(Phrase::kInfo, language);
    case Severity::kNotApplicable:
      return Text(Phrase::kNotApplicable, language);
  }
  return "";
}

std::string RuleText(const Finding& finding) {
  std::string who;
  if (finding.rank) who += fmt::format("rank{} ", *finding.rank);
  if (finding.pid) who += fmt::format("pid{} ", *finding.pid);
  if (finding.gpu) who += fmt::format("gpu{} ", *finding.gpu);
  return fmt::format("[{}{}]", who, Plain(finding.rule));
}

std::string CostText(const Finding& finding, Language language) {
  std::vector<std::string> parts;
  if (finding.lost_gpu_s && std::isfinite(*finding.lost_gpu_s) && *finding.lost_gpu_s > 0) {
    parts.push_back(Fill(Phrase::kGpuTimeLost, language, GpuTime(*finding.lost_gpu_s)));
  }
  if (finding.gain_ratio && std::isfinite(*finding.gain_ratio) && *finding.gain_ratio > 0) {
    const double gain = std::min(*finding.gain_ratio, kMostGain);
    const double speed = 1 / (1 - gain);
    std::string text = Fill(Phrase::kWouldSave, language, Percent(gain).value_or(""));
    if (speed >= kTellingSpeed) {
      text += Fill(Phrase::kAsFast, language, fmt::format("{:.2g}", speed));
    }
    parts.push_back(std::move(text));
  }
  return base::Join(parts, Text(Phrase::kListComma, language));
}

std::string EvidenceText(const Run& run, const Evidence& evidence, Language language) {
  std::vector<std::string> where;
  for (const std::string& part : {evidence.series, IntervalText(run, evidence.interval, language),
                                  StepsText(evidence.steps, language)}) {
    if (!part.empty()) where.push_back(part);
  }
  std::vector<std::string> figures;
  for (const auto& [name, value] : evidence.values)
    figures.push_back(NamedFigure(name, value, language));
  std::string text = base::Join(where, ", ");
  if (!figures.empty()) text += (text.empty() ? "" : ": ") + base::Join(figures, ", ");
  const std::string_view note = Said(evidence.note, language);
  if (!note.empty()) text += fmt::format("{}{}", text.empty() ? "" : "; ", note);
  return text;
}

size_t CountOf(const Report& report, Severity severity) {
  return static_cast<size_t>(
      std::count_if(report.findings.begin(), report.findings.end(),
                    [severity](const Finding& finding) { return finding.severity == severity; }));
}

Verdict VerdictOf(const Run& run, const Report& report, Language language) {
  Verdict verdict;
  const auto word = [language](Phrase phrase) { return std::string(Text(phrase, language)); };
  // Findings stand worst first.
  const Finding* first = report.findings.empty() ? nullptr : &report.findings.front();
  const bool bad = first != nullptr && (first->severity == Severity::kCritical ||
                                        first->severity == Severity::kWarning);
  const std::string end = BadEnd(run, language);
  if (bad) {
    verdict.severity = first->severity;
    verdict.worst = first;
    const std::vector<AdviceGroup> advice = GroupAdvice(*first, report.framework);
    if (!advice.empty()) verdict.advice = advice.front();
    verdict.text = Sentence(*first, language);
    if (!end.empty() && first->severity != Severity::kCritical) {
      verdict.text = end + word(Phrase::kSemicolon) + verdict.text;
    }
    return verdict;
  }
  if (!end.empty()) {
    verdict.severity = Severity::kCritical;
    verdict.text = end + word(Phrase::kSemicolon) + word(Phrase::kNoRuleKnowsWhy);
    return verdict;
  }
  if (const std::string raised = FirstException(run); !raised.empty()) {
    verdict.severity = Severity::kWarning;
    verdict.text = word(Phrase::kRaised) + " " + raised;
    return verdict;
  }
  // Of a run without figures the recorder's own health is all that was judged.
  const bool judged = !report.epochs.empty() || !report.gpus.empty();
  verdict.good = judged;
  verdict.text = word(judged ? Phrase::kNothingWrong : Phrase::kNothingToJudge);
  if (judged && !report.rules_judged.empty()) {
    verdict.text = Fill(Phrase::kNoneOfRules, language, report.rules_judged.size());
  }
  if (const size_t remarks = CountOf(report, Severity::kInfo); remarks > 0) {
    verdict.text +=
        fmt::format("{}{} {}", word(Phrase::kListComma), remarks, word(Phrase::kRemarks));
  }
  return verdict;
}

std::string FirstAdvice(const Verdict& verdict, Language language) {
  if (!verdict.advice) return {};
  const std::string to = verdict.advice->frameworks;
  return (to.empty() ? to : to + ": ") + std::string(Said(*verdict.advice->text, language));
}

std::string FirstCode(const Verdict& verdict) {
  if (!verdict.advice || verdict.advice->with_code.size() != 1) return {};
  const std::string& code = verdict.advice->with_code.front()->code;
  return code.substr(0, code.find('\n'));
}

void AddVerdict(const Run& run, const Report& report, Page* page) {
  const Language language = page->options().language;
  const Verdict verdict = VerdictOf(run, report, language);
  const std::string_view word =
      verdict.good ? page->Word(Phrase::kGood) : SeverityWord(verdict.severity, language);
  const Tint tint = verdict.good ? Tint::kGreen : SeverityTint(verdict.severity);
  page->Line("");
  const std::string head = fmt::format("  {}  ", word);
  // The whole of a long one stands among the findings.
  const std::string text =
      CutTo(page->Shown(verdict.text), 2 * page->width() - 16, page->options().ascii);
  std::vector<std::string> lines = Wrap(text, page->width(), head, "  ");
  if (!lines.empty()) {
    lines[0] =
        "  " + page->Tinted(word, tint) + "  " +
        page->Tinted(std::string_view(lines[0]).substr(std::min(head.size(), lines[0].size())),
                     Tint::kBold);
  }
  page->Lines(lines);
  if (verdict.worst == nullptr) return;
  const std::string cost = CostText(*verdict.worst, language);
  if (!cost.empty()) page->Paragraph(cost, "  ", "  ");
  if (!verdict.advice) return;
  page->Paragraph(fmt::format("→ {} {}", FirstAdvice(verdict, language), FirstCode(verdict)), "  ",
                  "    ", Tint::kGreen);
}

void AddFindings(const Run& run, const Report& report, Page* page) {
  if (report.findings.empty()) return;
  page->Title(page->Word(Phrase::kFindings));
  size_t shown = 0, told = 0;
  for (const Finding& finding : report.findings) {
    if (finding.severity == Severity::kNotApplicable) continue;
    if (++told > kMostFindings) continue;
    if (shown++ > 0) page->Line("");
    AddFinding(run, report, finding, page);
  }
  if (told > shown) {
    page->Line(fmt::format("  {} {} {} ({})", page->Word(Phrase::kAnd), told - shown,
                           page->Word(Phrase::kMore), page->Word(Phrase::kAllFigures)));
  }
  if (told == 0) page->Line(fmt::format("  {}", page->Word(Phrase::kNone)));
  AddNotApplicable(report, page);
}

}  // namespace epochmeter::render
