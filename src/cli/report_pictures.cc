// SPDX-License-Identifier: Apache-2.0
#include "cli/report_pictures.h"

#include <unistd.h>

#include <sstream>

#include "base/strings.h"
#include "cli/text_options.h"
#include "export/exporters.h"
#include "render/html.h"

namespace epochmeter::cli {
namespace {

base::Error UsageError(std::string what, std::string what_to_do) {
  return {.what = std::move(what),
          .where = "",
          .why = "",
          .what_to_do = std::move(what_to_do),
          .code = kUsageError};
}

// "2000000", "5MB", "500 kB": bytes.
base::Result<uint64_t> MaxSize(const Arguments& arguments) {
  const std::optional<std::string> given = arguments.Value("max-size");
  if (!given) return render::kPageBytes;
  std::string text = base::ToLowerAscii(base::Trim(*given));
  double unit = 1;
  if (base::EndsWith(text, "b")) text.pop_back();
  if (base::EndsWith(text, "k")) unit = 1e3;
  if (base::EndsWith(text, "m")) unit = 1e6;
  if (unit > 1) text.pop_back();
  const std::optional<double> number = base::ParseDouble(base::Trim(text));
  const double bytes = number.value_or(0) * unit;
  if (!(bytes >= 50e3 && bytes <= 1e9)) {
    return UsageError("cannot take --max-size " + *given, "give a size from 50kB to 1000MB");
  }
  return static_cast<uint64_t>(bytes);
}

base::Result<std::string> MakeHtml(const Arguments& arguments, const OpenedRun& opened,
                                   const model::Report& report) {
  EPM_ASSIGN(const uint64_t max_bytes, MaxSize(arguments));
  EPM_ASSIGN(const render::TextOptions text, MakeTextOptions(arguments));
  const exporting::ExporterDef* json = exporting::FindExporter(exporting::Subject::kReport, "json");
  EPM_CHECK(json != nullptr);
  std::ostringstream report_json;
  EPM_TRY(json->Write(opened.run, report, {}, report_json));
  const std::string data = std::move(report_json).str();
  return render::RenderHtml(opened.run, report,
                            {.language = text.language,
                             .report_json = base::Trim(data),
                             .redact = !arguments.Has("no-redact")},
                            max_bytes);
}

}  // namespace

bool IsPictureFormat(std::string_view format) { return format == "html"; }

base::Result<> WritePicture(const Arguments& arguments, const OpenedRun& opened,
                            const model::Report& report, std::string_view format,
                            const std::optional<std::string>& path) {
  if (path.value_or("-") == "-" && ::isatty(STDOUT_FILENO) != 0) {
    const std::string name(format);
    return UsageError("a terminal can't show " + name, "give -o run." + name + ", or a pipe");
  }
  EPM_ASSIGN(const std::string picture, MakeHtml(arguments, opened, report));
  EPM_ASSIGN(const auto output, Output::Open(path, opened.path));
  output->stream() << picture;
  return output->Close();
}

}  // namespace epochmeter::cli
