// SPDX-License-Identifier: Apache-2.0
// What runs are judged by: each rule with its limits, their units and where they come from.
#include <fmt/format.h>

#include <string>

#include "base/json_writer.h"
#include "base/strings.h"
#include "cli/verbs.h"
#include "diagnose/limits.h"
#include "diagnose/rules.h"

namespace epochmeter::cli {
namespace {

// The part before the dot: the rule, or a method that several rules share.
std::string_view OwnerOf(const diagnose::LimitDef& limit) {
  return limit.id.substr(0, limit.id.find('.'));
}

bool IsRule(std::string_view id) {
  for (const diagnose::RuleDef* rule : diagnose::Rules()) {
    if (rule->id == id) return true;
  }
  return false;
}

void LimitAsJson(const diagnose::LimitDef& limit, base::JsonWriter* json) {
  json->BeginObject().Field("id", limit.id).Field("value", limit.value);
  json->Field("unit", limit.unit).Field("source", limit.source).EndObject();
}

void RulesAsJson() {
  base::JsonWriter json;
  json.BeginObject().Key("rules").BeginArray();
  for (const diagnose::RuleDef* rule : diagnose::Rules()) {
    const model::Message title = rule->Title();
    json.BeginObject().Field("id", rule->id).Key("title").BeginObject();
    json.Field("en", title.en).Field("zh", title.zh).EndObject().Key("limits").BeginArray();
    for (const diagnose::LimitDef& limit : diagnose::LimitTable()) {
      if (OwnerOf(limit) == rule->id) LimitAsJson(limit, &json);
    }
    json.EndArray().EndObject();
  }
  json.EndArray().Key("shared_limits").BeginArray();
  for (const diagnose::LimitDef& limit : diagnose::LimitTable()) {
    if (!IsRule(OwnerOf(limit))) LimitAsJson(limit, &json);
  }
  PrintJson(json.EndArray().EndObject().text());
}

std::string LimitLine(const diagnose::LimitDef& limit) {
  const std::string number = fmt::format("{} {}", limit.value, limit.unit == "1" ? "" : limit.unit);
  return fmt::format("  {:<40} {:<14} {}\n", limit.id, number, limit.source);
}

void RulesAsText() {
  std::string text;
  for (const diagnose::RuleDef* rule : diagnose::Rules()) {
    text += fmt::format("{}{}: {}\n", text.empty() ? "" : "\n", rule->id, rule->Title().en);
    for (const diagnose::LimitDef& limit : diagnose::LimitTable()) {
      if (OwnerOf(limit) == rule->id) text += LimitLine(limit);
    }
  }
  std::string shared;
  for (const diagnose::LimitDef& limit : diagnose::LimitTable()) {
    if (!IsRule(OwnerOf(limit))) shared += LimitLine(limit);
  }
  if (!shared.empty()) text += "\nshared by several rules\n" + shared;
  PrintOut(text);
}

int RunRules(const Arguments& arguments) {
  if (arguments.json()) {
    RulesAsJson();
  } else {
    RulesAsText();
  }
  return kExitOk;
}

}  // namespace

const Command kRulesCommand = {.name = "rules",
                               .summary = "what runs are judged by: rules and their limits",
                               .usage = "",
                               .examples = "  epochmeter rules\n  epochmeter rules --json\n",
                               .flags = {},
                               .Run = RunRules};

}  // namespace epochmeter::cli
