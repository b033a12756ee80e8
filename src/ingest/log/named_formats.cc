// SPDX-License-Identifier: Apache-2.0
#include "ingest/log/named_formats.h"

#include <algorithm>
#include <charconv>

#include "base/check.h"
#include "base/strings.h"
#include "ingest/json_text.h"
#include "ingest/log/named_format_files.h"
#include "ingest/log/vocabulary.h"

namespace epochmeter::ingest::log {
namespace {

constexpr size_t kFewestKeys = 2;  // a single short name would fit lines of anything

base::Error Wrong(std::string_view file, std::string why) {
  return {.what = "this is no named format",
          .where = std::string(file),
          .why = std::move(why),
          .what_to_do = "see docs/logs.md, Naming a format"};
}

std::optional<Role> RoleOfName(std::string_view name) {
  for (int i = 0; i <= static_cast<int>(Role::kRank); ++i) {
    const auto role = static_cast<Role>(i);
    if (RoleName(role) == name) return role;
  }
  return std::nullopt;
}

// "#2", or a name in the form that NormalKey gives.
std::optional<ValueName> ReadValueName(std::string_view text) {
  if (!base::StartsWith(text, "#")) {
    if (text.empty() || NormalKey(text) != text) return std::nullopt;
    return ValueName{.name = std::string(text)};
  }
  size_t place = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data() + 1, end, place);
  if (error != std::errc() || stop != end) return std::nullopt;
  return ValueName{.place = place};
}

// "epoch/epochs" also names the second number of a pair.
std::optional<NamedFormat::ValueRole> ReadRole(std::string_view key, std::string_view text) {
  const auto value = ReadValueName(key);
  const size_t slash = text.find('/');
  const auto role = RoleOfName(text.substr(0, slash));
  if (!value || !role) return std::nullopt;
  if (slash == std::string_view::npos) return NamedFormat::ValueRole{*value, *role, std::nullopt};
  const auto total = RoleOfName(text.substr(slash + 1));
  if (!total) return std::nullopt;
  return NamedFormat::ValueRole{*value, *role, total};
}

// Each step answers with what is wrong, or with nothing.
std::string ReadHead(JsonObject object, NamedFormat* format) {
  const auto name = TextField(object, "name");
  const auto summary = TextField(object, "summary");
  const std::string_view kind = TextField(object, "kind").value_or("train");
  if (!name || name->empty()) return "it has no \"name\"";
  if (!summary || summary->empty()) return "it has no \"summary\"";
  if (kind != "train" && kind != "eval") return "\"kind\" is neither \"train\" nor \"eval\"";
  format->name = *name;
  format->summary = *summary;
  format->kind = kind == "eval" ? RecordKind::kEval : RecordKind::kTrain;
  return {};
}

std::string ReadKeys(JsonObject object, NamedFormat* format) {
  const auto keys = ArrayField(object, "keys");
  if (!keys || keys->size() < kFewestKeys) return "\"keys\" has fewer than two keys";
  for (const JsonElement element : *keys) {
    const auto key = TextOf(element);
    const auto value = key ? ReadValueName(*key) : std::nullopt;
    if (!value) return "a key is neither a name in lower case with '_' nor \"#\" and a number";
    format->keys.push_back(*value);
  }
  return {};
}

std::string ReadRoles(JsonObject object, NamedFormat* format) {
  const auto roles = ObjectField(object, "roles");
  if (!roles || roles->size() == 0) return "it has no \"roles\"";
  for (const auto field : *roles) {
    const auto text = TextOf(field.value);
    const auto role = text ? ReadRole(field.key, *text) : std::nullopt;
    if (!role) return "no value and role: \"" + std::string(field.key) + "\"";
    format->roles.push_back(*role);
  }
  return {};
}

std::string ReadSample(JsonObject object, NamedFormat* format) {
  const auto text = TextField(object, "text");
  const auto expected = ObjectField(object, "expected");
  if (!text || !expected || expected->size() == 0) return "a sample has no text or expects nothing";
  NamedFormat::Sample sample{.text = std::string(*text), .expected = {}};
  for (const auto field : *expected) {
    const auto role = RoleOfName(field.key);
    const auto value = TextOf(field.value);
    if (!role || !value) return "a sample expects \"" + std::string(field.key) + "\"";
    sample.expected.emplace_back(*role, std::string(*value));
  }
  format->samples.push_back(std::move(sample));
  return {};
}

std::string ReadSamples(JsonObject object, NamedFormat* format) {
  const auto samples = ArrayField(object, "samples");
  if (!samples || samples->size() == 0) return "it has no \"samples\"";
  for (const JsonElement element : *samples) {
    JsonObject sample;
    if (element.get(sample) != simdjson::SUCCESS) return "a sample is no object";
    if (std::string why = ReadSample(sample, format); !why.empty()) return why;
  }
  return {};
}

bool Fits(const ValueName& value, std::span<const std::string_view> keys) {
  if (value.place) return *value.place < keys.size();
  return std::find(keys.begin(), keys.end(), value.name) != keys.end();
}

std::vector<NamedFormat> ReadAll() {
  std::vector<NamedFormat> formats;
  for (const std::string_view part : base::Split(NamedFormatFiles(), kFormatFileMark)) {
    if (part.empty()) continue;
    const size_t end = part.find('\n');
    auto format = ParseNamedFormat(part.substr(0, end), part.substr(end + 1));
    EPM_CHECK(format.ok()) << format.error().Message();
    formats.push_back(std::move(*format));
  }
  return formats;
}

}  // namespace

const NamedFormat::ValueRole* NamedFormat::Find(std::string_view field_name, size_t place) const {
  const ValueRole* by_place = nullptr;
  for (const ValueRole& role : roles) {
    if (!role.value.place && role.value.name == field_name) return &role;
    if (role.value.place == place) by_place = &role;
  }
  return by_place;
}

base::Result<NamedFormat> ParseNamedFormat(std::string_view file, std::string_view json) {
  JsonParser parser(JsonDialect::kStrict);
  JsonObject object;
  if (parser.Parse(json, &object) != JsonFault::kNone) {
    return Wrong(file, "it is not one JSON object");
  }
  NamedFormat format;
  for (const auto read : {ReadHead, ReadKeys, ReadRoles, ReadSamples}) {
    if (std::string why = read(object, &format); !why.empty()) return Wrong(file, std::move(why));
  }
  return format;
}

std::span<const NamedFormat> NamedFormats() {
  static const std::vector<NamedFormat> formats = ReadAll();
  return formats;
}

std::string NameOfField(const Field& field) {
  if (!field.key.empty()) {
    return NormalKey(field.group.empty() ? field.key : field.group + "." + field.key);
  }
  return NormalKey(field.unit.empty() ? field.after : field.unit);
}

const NamedFormat* FindNamedFormat(std::span<const std::string_view> keys) {
  const NamedFormat* best = nullptr;
  for (const NamedFormat& format : NamedFormats()) {
    const bool fits = std::all_of(format.keys.begin(), format.keys.end(),
                                  [keys](const ValueName& key) { return Fits(key, keys); });
    if (fits && (best == nullptr || format.keys.size() > best->keys.size())) best = &format;
  }
  return best;
}

}  // namespace epochmeter::ingest::log
