// SPDX-License-Identifier: Apache-2.0
#include "cli/text_options.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "base/strings.h"

namespace epochmeter::cli {
namespace {

std::string Getenv(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// --color, then NO_COLOR, CLICOLOR_FORCE / FORCE_COLOR, CLICOLOR=0, TERM=dumb, then the terminal.
bool UseColor(const Arguments& arguments, bool to_stdout) {
  const std::string when = arguments.Value("color").value_or("auto");
  if (when == "always") return true;
  if (when == "never" || !Getenv("NO_COLOR").empty()) return false;
  for (const char* force : {"CLICOLOR_FORCE", "FORCE_COLOR"}) {
    const std::string value = Getenv(force);
    if (!value.empty() && value != "0") return true;
  }
  if (Getenv("CLICOLOR") == "0" || Getenv("TERM") == "dumb") return false;
  return to_stdout && ::isatty(STDOUT_FILENO) != 0;
}

bool Utf8Terminal() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const std::string value = base::ToLowerAscii(Getenv(name));
    if (!value.empty())
      return value.find("utf-8") != std::string::npos || value.find("utf8") != std::string::npos;
  }
  return false;
}

// Of the terminal; elsewhere $COLUMNS, or what a wide page needs.
size_t PageWidth(bool to_stdout) {
  constexpr size_t kLeast = 60, kElsewhere = 200;
  winsize size{};
  if (to_stdout && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    return std::max<size_t>(size.ws_col, kLeast);
  }
  const auto columns = base::ParseUint(Getenv("COLUMNS"));
  return columns ? std::max<size_t>(*columns, kLeast) : kElsewhere;
}

}  // namespace

base::Result<render::TextOptions> MakeTextOptions(const Arguments& arguments) {
  render::TextOptions options;
  const std::string language = arguments.Value("lang").value_or("en");
  if (language != "en" && language != "zh") {
    return base::Error{.what = "unknown language " + language,
                       .where = "",
                       .why = "",
                       .what_to_do = "--lang en or --lang zh",
                       .code = kUsageError};
  }
  options.language = language == "zh" ? render::Language::kChinese : render::Language::kEnglish;
  options.redact = !arguments.Has("no-redact");
  const bool to_stdout = arguments.Value("output").value_or("-") == "-";
  options.color = UseColor(arguments, to_stdout);
  options.width = PageWidth(to_stdout);
  options.ascii = arguments.Has("ascii") || (to_stdout && ::isatty(STDOUT_FILENO) != 0 &&
                                             !Utf8Terminal() && language == "en");
  return options;
}

}  // namespace epochmeter::cli
