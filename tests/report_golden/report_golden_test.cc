// SPDX-License-Identifier: Apache-2.0
// What every renderer and exporter makes of one small run, against tests/golden/report_tiny/.
// EPOCHMETER_UPDATE_GOLDEN=1 writes what came out instead.
#include <gtest/gtest.h>

#include <cstdlib>
#include <sstream>

#include "base/file.h"
#include "base/version.h"
#include "diagnose/report_builder.h"
#include "export/exporters.h"
#include "render/markdown.h"
#include "render/text.h"
#include "tiny_findings.h"
#include "tiny_run.h"

namespace epochmeter {
namespace {

std::string GoldenPath(const std::string& name) {
  const char* source = std::getenv("EPOCHMETER_SOURCE_DIR");
  return std::string(source == nullptr ? "." : source) + "/tests/golden/report_tiny/" + name;
}

void Expect(const std::string& name, const std::string& actual) {
  const std::string path = GoldenPath(name);
  if (std::getenv("EPOCHMETER_UPDATE_GOLDEN") != nullptr) {
    ASSERT_TRUE(base::WriteFileAtomically(path, actual).ok());
    return;
  }
  const base::Result<std::string> expected = base::ReadFile(path);
  ASSERT_TRUE(expected.ok()) << expected.error().Message();
  EXPECT_EQ(*expected, actual);
}

std::string Export(const model::Run& run, exporting::Subject subject, const std::string& name,
                   const exporting::ExportOptions& options = {}) {
  const exporting::ExporterDef* exporter = exporting::FindExporter(subject, name);
  if (exporter == nullptr) return "no exporter " + name;
  std::ostringstream out;
  const base::Result<> written = exporter->Write(run, testing::TinyReport(run, true), options, out);
  if (!written.ok()) return written.error().Message();
  std::string text = out.str();
  // The revision differs from commit to commit.
  const std::string revision = "\"" + std::string(base::kRevision) + "\"";
  if (const size_t at = text.find(revision); at != std::string::npos) {
    text.replace(at, revision.size(), "\"REVISION\"");
  }
  return text;
}

TEST(ReportGolden, Text) {
  const model::Run run = testing::TinyRun();
  const model::Report report = testing::TinyReport(run, false);
  const model::Report all = testing::TinyReport(run, true);
  render::TextOptions options;
  options.width = 160;
  options.files = {"tiny.emr"};
  Expect("report.txt", render::RenderReport(run, all, options));
  Expect("summary.txt", render::RenderSummary(run, report, options));
  Expect("line.txt", render::RenderLine(run, report, options));
  options.language = render::Language::kChinese;
  Expect("report.zh.txt", render::RenderReport(run, all, options));
  options.ascii = true;
  options.width = 80;
  Expect("report.narrow.txt", render::RenderReport(run, report, options));
}

TEST(ReportGolden, Markdown) {
  const model::Run run = testing::TinyRun();
  const model::Report report = testing::TinyReport(run, true);
  Expect("report.md", render::RenderMarkdown(run, report, {}));
  render::TextOptions options;
  options.language = render::Language::kChinese;
  Expect("report.zh.md", render::RenderMarkdown(run, report, options));
}

TEST(ReportGolden, TextWithoutGpuNamesTheReason) {
  const model::Run run = testing::TinyRunWithoutGpu();
  model::Report report = diagnose::BuildReport(run);
  report.findings.clear();
  Expect("no_gpu.txt", render::RenderReport(run, report, {}));
}

TEST(ReportGolden, OfARunWithNothingInIt) {
  model::Run run;
  model::Report report = diagnose::BuildReport(run);
  report.findings.clear();
  Expect("empty.txt", render::RenderReport(run, report, {}));
  Expect("empty.csv", Export(run, exporting::Subject::kSeries, "csv"));
}

TEST(ReportGolden, ReportFormats) {
  const model::Run run = testing::TinyRun();
  exporting::ExportOptions options;
  options.indent = 1;
  Expect("report.json", Export(run, exporting::Subject::kReport, "json", options));
  Expect("report.csv", Export(run, exporting::Subject::kReport, "csv"));
  Expect("report.jsonl", Export(run, exporting::Subject::kReport, "jsonl"));
  Expect("report.findings.csv", Export(run, exporting::Subject::kReport, "findings"));
}

TEST(ReportGolden, SeriesFormats) {
  const model::Run run = testing::TinyRun();
  exporting::ExportOptions options;
  Expect("series.csv", Export(run, exporting::Subject::kSeries, "csv", options));
  Expect("series.jsonl", Export(run, exporting::Subject::kSeries, "jsonl", options));
  options.long_form = true;
  options.time = exporting::TimeFormat::kEpochNs;
  Expect("series.long.csv", Export(run, exporting::Subject::kSeries, "csv", options));
}

}  // namespace
}  // namespace epochmeter
