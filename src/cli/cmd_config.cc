// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "base/json_writer.h"
#include "cli/config_file.h"
#include "cli/verbs.h"
#include "render/columns.h"

namespace epochmeter::cli {
namespace {

constexpr FlagSpec kFlags[] = {kConfigFlag};

// A TOML string: JSON's escapes are among those of TOML.
std::string Quoted(const std::string& text) { return base::JsonQuote(text); }

// TOML wants a float or an integer; both read back as the same number.
std::string Number(double value) { return base::JsonNumber(value); }

std::string Comment(std::string_view text) {
  std::string lines;
  for (const std::string& line : render::Wrap(text, 100, "# ", "# ")) lines += line + "\n";
  return lines;
}

// One setting; commented out with an example when it is not set.
std::string Setting(std::string_view name, const std::optional<double>& value,
                    std::string_view example, std::string_view comment) {
  const std::string number = value ? Number(*value) : std::string(example);
  return fmt::format("{}{}{} = {}\n", Comment(comment), value ? "" : "# ", name, number);
}

std::string PriceText(const model::GpuPrice& price) {
  std::string text = fmt::format("[[prices.gpu]]\nname = {}\ngpu_hour = {}\n", Quoted(price.name),
                                 Number(price.gpu_hour));
  if (price.evaluation_gpu_hour) {
    text += fmt::format("evaluation_gpu_hour = {}\n", Number(*price.evaluation_gpu_hour));
  }
  if (price.idle_gpu_hour)
    text += fmt::format("idle_gpu_hour = {}\n", Number(*price.idle_gpu_hour));
  return text;
}

std::string PricesText(const model::Rates& rates) {
  std::string text = "[prices]\n";
  text += Comment("What prices are in, as the bill prints it.");
  text += rates.currency.empty() ? "# currency = \"EUR\"\n"
                                 : fmt::format("currency = {}\n", Quoted(rates.currency));
  text += Setting("electricity_kwh", rates.electricity_kwh, "0.30",
                  "Price of a kWh; energy is multiplied by the PUE first.");
  text += Comment(
      "Price of a GPU and hour, by the GPU's name: '*' and '?' stand for any text and any letter, "
      "and the first that matches holds. evaluation_gpu_hour is for evaluation, idle_gpu_hour for "
      "time between steps and for GPUs that no rank uses; without them gpu_hour holds.");
  if (rates.gpus.empty()) {
    return text +
           "# [[prices.gpu]]\n# name = \"*H100*\"\n# gpu_hour = 2.5\n"
           "# evaluation_gpu_hour = 1.5\n# idle_gpu_hour = 2.5\n";
  }
  for (const model::GpuPrice& price : rates.gpus) text += PriceText(price);
  return text;
}

std::string LimitsText(const diagnose::Limits& limits) {
  std::string text = "[limits]\n";
  for (const diagnose::LimitDef& limit : diagnose::LimitTable()) {
    const double value = limits[limit.id];
    std::string about = fmt::format("in {}: {}", limit.unit, limit.source);
    if (value != limit.value) about += fmt::format(" (built in: {})", Number(limit.value));
    text += Comment(about) + fmt::format("{} = {}\n", limit.id, Number(value));
  }
  return text;
}

std::string ConfigText(const Config& config) {
  std::string text = Comment(
      "Settings of epochmeter, for reports, summaries, bills and exports. Read from --config FILE, "
      "else EPOCHMETER_CONFIG, else ~/.config/epochmeter/config.toml. Lines that are left out keep "
      "what is built in.");
  text += config.path.empty() ? Comment("No file was read: this is what is built in.")
                              : Comment("Read from " + render::Plain(config.path));
  text += "\n" + PricesText(config.rates);
  text += "\n[energy]\n" + Setting("pue", config.rates.pue, "1.0",
                                   "Energy of the data centre per energy of its computers; 1 "
                                   "counts the GPUs alone.");
  text += "\n[carbon]\n" + Setting("g_per_kwh", config.rates.carbon_g_per_kwh, "400",
                                   "Grams of CO2 of a kWh where the GPUs stand.");
  text += "\n" + Comment(
                     "Thresholds of the rules, with their unit (UCUM; 1 is a ratio) and where the "
                     "built-in number comes from.");
  return text + LimitsText(config.limits);
}

std::string ConfigJson(const Config& config) {
  base::JsonWriter json;
  json.BeginObject().Key("path");
  config.path.empty() ? json.Null() : json.String(config.path);
  json.Key("limits").BeginArray();
  for (const diagnose::LimitDef& limit : diagnose::LimitTable()) {
    json.BeginObject()
        .Field("id", limit.id)
        .Field("value", config.limits[limit.id])
        .Field("built_in", limit.value)
        .Field("unit", limit.unit)
        .Field("source", limit.source)
        .EndObject();
  }
  const model::Rates& rates = config.rates;
  json.EndArray().Key("prices").BeginObject().Key("currency");
  rates.currency.empty() ? json.Null() : json.String(rates.currency);
  json.Field("electricity_kwh", rates.electricity_kwh).Key("gpu").BeginArray();
  for (const model::GpuPrice& price : rates.gpus) {
    json.BeginObject()
        .Field("name", price.name)
        .Field("gpu_hour", price.gpu_hour)
        .Field("evaluation_gpu_hour", price.evaluation_gpu_hour)
        .Field("idle_gpu_hour", price.idle_gpu_hour)
        .EndObject();
  }
  json.EndArray().EndObject();
  json.Key("energy").BeginObject().Field("pue", rates.pue).EndObject();
  json.Key("carbon").BeginObject().Field("g_per_kwh", rates.carbon_g_per_kwh).EndObject();
  return json.EndObject().Take();
}

int RunConfig(const Arguments& arguments) {
  const base::Result<Config> config = LoadConfig(arguments);
  if (!config.ok()) return Fail(arguments, config.error(), kExitUsage);
  if (arguments.json()) {
    PrintJson(ConfigJson(*config));
  } else {
    PrintOut(ConfigText(*config));
  }
  return kExitOk;
}

}  // namespace

const Command kConfigCommand = {.name = "config",
                                .summary = "the settings that hold, as a settings file",
                                .usage = "[flags]",
                                .examples =
                                    "  epochmeter config\n"
                                    "  epochmeter config > ~/.config/epochmeter/config.toml\n",
                                .flags = kFlags,
                                .Run = RunConfig};

}  // namespace epochmeter::cli
