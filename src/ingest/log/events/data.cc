// SPDX-License-Identifier: Apache-2.0
// Samples that could not be read: broken pictures, labels that don't parse. One event per report,
// with the path where one is named.
#include <algorithm>
#include <array>

#include "base/strings.h"
#include "ingest/log/events/event_text.h"
#include "ingest/log/events/families.h"

namespace epochmeter::ingest::log {
namespace {

using std::string_view;

// A program's report of one sample, not a sentence about them.
constexpr auto kReports = std::to_array<string_view>(
    {"ERROR: When parsing line ", "UnidentifiedImageError: cannot identify image file ",
     "OSError: image file is truncated", "ignoring corrupt image/label",
     "Ignoring corrupted image and/or label", "Corrupt JPEG data: ", "Premature end of JPEG file",
     "libpng error: ", "DataLossError: corrupted record at ", "DATA_LOSS: corrupted record at "});

// A word with a slash or the end of a file's name.
string_view PathIn(string_view text) {
  for (const char quote : {'\'', '"'}) {
    const size_t open = text.find(quote);
    const size_t close = open == string_view::npos ? open : text.find(quote, open + 1);
    if (close != string_view::npos && close - open > 1)
      return text.substr(open + 1, close - open - 1);
  }
  for (string_view word : base::SplitWhitespace(text.substr(0, 1000))) {
    while (!word.empty() && string_view(":,;)").find(word.back()) != string_view::npos) {
      word.remove_suffix(1);
    }
    const size_t dot = word.rfind('.');
    const bool file = dot != string_view::npos && dot + 6 > word.size() && dot + 2 < word.size();
    if (word.find('/') != string_view::npos && file) return word;
  }
  return {};
}

bool Read(const EventLine& line, EventContext& context) {
  const auto found = std::find_if(kReports.begin(), kReports.end(),
                                  [&](string_view words) { return Contains(line.text, words); });
  if (found == kReports.end()) return false;
  const size_t at = line.text.find(*found);
  // Quoted, it is a text about such reports.
  if (at > 0 && (line.text[at - 1] == '"' || line.text[at - 1] == '\'')) return false;
  LogEvent event = MakeEvent("data_error", line);
  AddText(&event, "path",
          CutText(PathIn(line.text.substr(base::StartsWith(*found, "ignor") ? 0 : at)), 300));
  context.Emit(std::move(event));
  return true;
}

constexpr auto kAnchors = std::to_array<string_view>(
    {"Whenparsingline", "cannotidentifyimagefile", "imagefileistruncated", "gnoringcorrupt",
     "CorruptJPEGdata", "PrematureendofJPEG", "libpngerror", "corruptedrecordat"});

}  // namespace

const EventFamily kDataFamily = {"data", kAnchors, Read};

}  // namespace epochmeter::ingest::log
