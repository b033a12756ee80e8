// SPDX-License-Identifier: Apache-2.0
#include "export/log_regex.h"

#include <fmt/format.h>

#include <cctype>
#include <set>

#include "base/json_writer.h"
#include "base/strings.h"

namespace epochmeter::exporting {
namespace {

using model::LogField;
using model::LogShape;

constexpr size_t kMostSageMaker = 500;
constexpr size_t kMostBefore = 6;  // bytes before a number without a name
constexpr std::string_view kNumber =
    "([-+]?(?:[0-9]+\\.?[0-9]*|\\.[0-9]+)(?:[eE][-+]?[0-9]+)?|nan|NaN|-?inf)";

bool IsWord(char letter) {
  const auto code = static_cast<unsigned char>(letter);
  return std::isalnum(code) != 0 || letter == '_' || code >= 0x80;
}

// Text as a pattern for it: spaces of any number, digits of any value.
std::string Escaped(std::string_view text) {
  constexpr std::string_view kSpecial = "\\^$.|?*+()[]{}";
  std::string pattern;
  for (size_t i = 0; i < text.size(); ++i) {
    const char letter = text[i];
    const bool space = letter == ' ' || letter == '\t';
    const bool digit = letter >= '0' && letter <= '9';
    if (space || digit) {
      const std::string_view any = space ? "\\s*" : "[0-9.eE+-]*";
      if (!base::EndsWith(pattern, any)) pattern += any;
    } else {
      if (kSpecial.find(letter) != std::string_view::npos) pattern += '\\';
      pattern += letter;
    }
  }
  return pattern;
}

// A name that Python takes for a group and SageMaker for a metric.
std::string GroupName(const LogField& field) {
  const bool known = field.role != "other" && field.role != "metric" && field.role != "loss_part" &&
                     field.role != "eval_metric";
  std::string name = known || field.key.empty() ? field.role : field.key;
  for (char& letter : name) {
    const bool plain = IsWord(letter) && static_cast<unsigned char>(letter) < 0x80;
    if (!plain) letter = '_';
  }
  if (name.empty() || (name[0] >= '0' && name[0] <= '9')) name.insert(0, "v");
  return name;
}

// Where the key ends that stands before the number, with little but punctuation between.
size_t KeyBefore(std::string_view line, const LogField& field, size_t from, size_t number) {
  constexpr size_t kMostBetween = 24;
  if (field.key.empty()) return std::string_view::npos;
  const size_t at = line.substr(0, number).rfind(field.key);
  if (at == std::string_view::npos || at < from) return std::string_view::npos;
  const size_t end = at + field.key.size();
  return number - end <= kMostBetween ? at : std::string_view::npos;
}

size_t FindNumber(std::string_view line, const LogField& field, size_t from) {
  const size_t key = field.key.empty() ? std::string_view::npos : line.find(field.key, from);
  if (key != std::string_view::npos) {
    const size_t after = line.find(field.text, key + field.key.size());
    if (after != std::string_view::npos) return after;
  }
  return line.find(field.text, from);
}

std::string Pattern(const LogPattern& pattern) { return pattern.before + std::string(kNumber); }

std::string KatibPattern(const LogPattern& pattern) {
  // The first group is the name, the second the value.
  const std::string name = Escaped(pattern.key);
  const size_t at = pattern.before.rfind(name);
  if (pattern.key.empty() || at == std::string::npos) return {};
  return pattern.before.substr(0, at) + "(" + name + ")" + pattern.before.substr(at + name.size()) +
         std::string(kNumber);
}

void WriteShape(const LogShape& shape, base::JsonWriter& json) {
  const std::vector<LogPattern> patterns = PatternsOf(shape);
  std::string python;
  for (const LogPattern& pattern : patterns) {
    if (!python.empty() && pattern.between.empty()) python += ".*?";
    python += fmt::format("{}(?P<{}>{}", pattern.between.empty() ? pattern.before : pattern.between,
                          pattern.name, kNumber.substr(1));
  }
  json.BeginObject().Field("kind", shape.first.kind).Field("records", shape.records);
  json.Key("line").Uint(shape.first.line).Field("python", python).EndObject();
}

}  // namespace

std::vector<LogPattern> PatternsOf(const LogShape& shape) {
  std::vector<LogPattern> patterns;
  std::set<std::string> names;
  const std::string_view line = shape.sample;
  size_t from = 0, pattern_end = std::string_view::npos;  // behind the last number that has one
  for (const LogField& field : shape.first.fields) {
    if (field.text.empty() || !base::ParseDouble(field.text)) continue;
    const size_t number = FindNumber(line, field, from);
    if (number == std::string_view::npos) continue;
    LogPattern pattern{.name = GroupName(field), .key = field.key, .before = {}};
    const size_t key = KeyBefore(line, field, from, number);
    if (key != std::string_view::npos) {
      const bool inside = key > 0 && IsWord(line[key - 1]);
      if (inside) continue;  // the end of another name
      pattern.before = (IsWord(line[key]) ? "(?:^|[^0-9A-Za-z_/.-])" : "") +
                       Escaped(line.substr(key, number - key));
    } else if (number > from && number - from <= kMostBefore && from == pattern_end) {
      // Of two totals in a line each has the number before it in its pattern.
      pattern.key.clear();
      pattern.between = Escaped(line.substr(from, number - from));
      pattern.before =
          patterns.back().before + "(?:" + std::string(kNumber.substr(1)) + pattern.between;
    } else {
      size_t begin = number;
      while (begin > from && number - begin < kMostBefore) --begin;
      while (begin < number && (static_cast<unsigned char>(line[begin]) & 0xC0) == 0x80) ++begin;
      pattern.key.clear();
      pattern.before = Escaped(line.substr(begin, number - begin));
      if (pattern.before.empty() || pattern.before == "\\s*") continue;
    }
    from = number + field.text.size();
    if (!names.insert(pattern.name).second) continue;
    patterns.push_back(std::move(pattern));
    pattern_end = from;
  }
  return patterns;
}

std::string LogPatterns(const model::LogReport& report) {
  base::JsonWriter json(2);
  json.BeginObject().Key("MetricDefinitions").BeginArray();
  std::vector<std::string> katib;
  std::set<std::string> names;
  for (const LogShape& shape : report.shapes) {
    if (shape.first.kind != "train" && shape.first.kind != "eval") continue;
    for (const LogPattern& pattern : PatternsOf(shape)) {
      const std::string regex = Pattern(pattern);
      const std::string name = shape.first.kind + ":" + pattern.name;
      if (regex.size() > kMostSageMaker || !names.insert(name).second) continue;
      json.BeginObject().Field("Name", name).Field("Regex", regex).EndObject();
      std::string filter = KatibPattern(pattern);
      if (!filter.empty()) katib.push_back(std::move(filter));
    }
  }
  json.EndArray().Key("katib").BeginObject().Key("source").BeginObject().Key("filter");
  json.BeginObject().Key("metricsFormat").BeginArray();
  for (const std::string& filter : katib) json.String(filter);
  json.EndArray().EndObject().EndObject().EndObject().Key("python").BeginArray();
  for (const LogShape& shape : report.shapes) WriteShape(shape, json);
  return json.EndArray().EndObject().Take() + "\n";
}

}  // namespace epochmeter::exporting
