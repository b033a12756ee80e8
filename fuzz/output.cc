// SPDX-License-Identifier: Apache-2.0
#include "fuzz/output.h"

#include <simdjson.h>

#include <algorithm>
#include <sstream>
#include <string>

#include "base/check.h"
#include "base/strings.h"
#include "diagnose/report_builder.h"
#include "export/exporters.h"
#include "render/text.h"

namespace epochmeter::fuzz {
namespace {

void CheckUtf8(std::string_view text) {
  EPM_CHECK(simdjson::validate_utf8(text.data(), text.size())) << "output is not UTF-8";
}

// Of one row, from `at` on; `at` is behind its line end then.
size_t CellsOfRow(std::string_view text, size_t* at) {
  size_t cells = 1;
  bool quoted = false;
  for (; *at < text.size(); ++*at) {
    const char c = text[*at];
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    if (c == ',') ++cells;
    if (c == '\n') break;
  }
  EPM_CHECK(!quoted) << "a quote without its end";
  ++*at;
  return cells;
}

void CheckExport(const exporting::ExporterDef& exporter, const model::Run& run,
                 const model::Report& report, const exporting::ExportOptions& options) {
  std::ostringstream out;
  EPM_CHECK(exporter.Write(run, report, options, out).ok());
  const std::string text = out.str();
  CheckUtf8(text);
  if (exporter.name == "json") CheckJson(text);
  if (exporter.name == "jsonl") CheckJsonLines(text);
  if (exporter.name == "csv") CheckCsv(text);
}

}  // namespace

void CheckText(std::string_view text, bool color, bool ascii) {
  CheckUtf8(text);
  for (const char c : text) {
    const auto byte = static_cast<uint8_t>(c);
    const bool allowed = byte == '\n' || (color && byte == 0x1B);
    EPM_CHECK(allowed || (byte >= 0x20 && byte != 0x7F)) << "control character " << int{byte};
    EPM_CHECK(!ascii || byte < 0x80) << "not ASCII";
  }
}

void CheckJson(std::string_view text) {
  static simdjson::dom::parser parser;
  const auto error = parser.parse(simdjson::padded_string(text)).error();
  EPM_CHECK(error == simdjson::SUCCESS) << simdjson::error_message(error) << ": " << text;
}

void CheckJsonLines(std::string_view lines) {
  while (!lines.empty()) {
    const size_t end = std::min(lines.find('\n'), lines.size());
    CheckJson(lines.substr(0, end));
    lines.remove_prefix(std::min(end + 1, lines.size()));
  }
}

void CheckCsv(std::string_view text) {
  size_t at = 0;
  size_t expected = 0;
  while (at < text.size()) {
    const size_t cells = CellsOfRow(text, &at);
    if (expected == 0) expected = cells;
    EPM_CHECK(cells == expected) << cells << " cells in place of " << expected;
  }
}

void CheckStore(const model::Run& run) {
  for (size_t id = 0; id < run.series.size(); ++id) {
    const auto series = static_cast<model::SeriesId>(id);
    const auto column = run.store->Read(series, {});
    const auto summary = run.store->Summarize(series, {});
    if (!column.ok() || !summary.ok()) continue;
    EPM_CHECK(column->t_ns.size() == column->value.size());
    EPM_CHECK(std::is_sorted(column->t_ns.begin(), column->t_ns.end()));
    // The sums of a damaged chunk are good although its samples are not.
    EPM_CHECK(summary->count >= column->t_ns.size());
    if (run.store->LossesFound().empty()) EPM_CHECK(summary->count == column->t_ns.size());
  }
}

void CheckAllOutput(const model::Run& run) {
  for (const bool all_gpus : {false, true}) {
    const model::Report report = diagnose::BuildReport(run, {.all_gpus = all_gpus});
    for (const auto language : {render::Language::kEnglish, render::Language::kChinese}) {
      const bool ascii = language == render::Language::kEnglish && !all_gpus;
      const render::TextOptions options{.language = language,
                                        .color = all_gpus,
                                        .live = all_gpus,
                                        .ascii = ascii,
                                        .width = all_gpus ? size_t{60} : size_t{100},
                                        .files = {"run.emr"}};
      CheckText(render::RenderReport(run, report, options), options.color, ascii);
      CheckText(render::RenderSummary(run, report, options), options.color, ascii);
    }
    const exporting::ExportOptions options{
        .long_form = all_gpus,
        .time = all_gpus ? exporting::TimeFormat::kEpochNs : exporting::TimeFormat::kUtc,
        .indent = all_gpus ? 2 : 0,
        .warnings = {}};
    for (const exporting::ExporterDef* exporter : exporting::Exporters()) {
      CheckExport(*exporter, run, report, options);
    }
  }
}

}  // namespace epochmeter::fuzz
