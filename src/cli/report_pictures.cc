// SPDX-License-Identifier: Apache-2.0
#include "cli/report_pictures.h"

#include <unistd.h>

#include <sstream>

#include "base/strings.h"
#include "cli/command.h"
#include "cli/svg_to_png.h"
#include "cli/text_options.h"
#include "export/exporters.h"
#include "render/html.h"
#include "render/run_picture.h"

namespace epochmeter::cli {
namespace {

// With more epochs of ranks than these the page has them in brief: it shows nothing of the rest.
constexpr size_t kMostFullEpochs = 500;

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
  const exporting::ExportOptions options{.brief_epochs = report.epochs.size() > kMostFullEpochs};
  EPM_TRY(json->Write(opened.run, report, options, report_json));
  const std::string data = std::move(report_json).str();
  return render::RenderHtml(opened.run, report,
                            {.language = text.language,
                             .report_json = base::Trim(data),
                             .redact = !arguments.Has("no-redact")},
                            max_bytes);
}

base::Result<std::string> MakeSvg(const Arguments& arguments, const OpenedRun& opened,
                                  const model::Report& report) {
  EPM_ASSIGN(const render::TextOptions text, MakeTextOptions(arguments));
  render::PictureOptions options{.language = text.language, .redact = !arguments.Has("no-redact")};
  const std::string x = arguments.Value("x").value_or("time");
  const std::optional<render::PictureX> axis = render::PictureXFromName(x);
  if (!axis) return UsageError("unknown axis " + x, "--x time, --x step or --x epoch");
  options.x = *axis;
  const std::string theme = arguments.Value("theme").value_or("light");
  if (theme != "light" && theme != "dark") {
    return UsageError("unknown theme " + theme, "--theme light or --theme dark");
  }
  options.dark = theme == "dark";
  base::Result<std::string> svg =
      render::RenderSvg(opened.run, report, arguments.Value("chart").value_or("trend"), options);
  if (svg.ok()) return svg;
  base::Error error = svg.error();
  error.code = kUsageError;
  return error;
}

base::Result<std::string> MakePicture(const Arguments& arguments, const OpenedRun& opened,
                                      const model::Report& report, std::string_view format) {
  if (format == "html") return MakeHtml(arguments, opened, report);
  EPM_ASSIGN(std::string svg, MakeSvg(arguments, opened, report));
  if (format == "svg") return svg;
  return PngOfSvg(svg);
}

}  // namespace

bool IsPictureFormat(std::string_view format) {
  return format == "html" || format == "svg" || format == "png";
}

base::Result<> WritePicture(const Arguments& arguments, const OpenedRun& opened,
                            const model::Report& report, std::string_view format,
                            const std::optional<std::string>& path) {
  if (path.value_or("-") == "-" && ::isatty(STDOUT_FILENO) != 0) {
    const std::string name(format);
    return UsageError("a terminal can't show " + name, "give -o run." + name + ", or a pipe");
  }
  EPM_ASSIGN(const std::string picture, MakePicture(arguments, opened, report, format));
  EPM_ASSIGN(const auto output, Output::Open(path, opened.path));
  output->stream() << picture;
  return output->Close();
}

}  // namespace epochmeter::cli
