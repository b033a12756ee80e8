// SPDX-License-Identifier: Apache-2.0
#include "cli/config_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <utility>

// Of the parser's assertions some fail on bad input (toml++ 3.3: "[" and a line end) that it would
// refuse one line further; with NDEBUG they are assumptions instead, and undefined behaviour.
#undef NDEBUG
#define TOML_ASSERT(expr) static_assert(true)
#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

#include "base/file.h"
#include "base/strings.h"

namespace epochmeter::cli {
namespace {

constexpr size_t kMostBytes = 1 << 20;
constexpr double kMostPrice = 1e9;

// The parser must not see letters beyond ASCII either: outside of texts some of them end in a
// branch that it calls unreachable. In their place stands ~uHEX~, which no bare word of TOML may
// hold.
std::string ToAscii(std::string_view text) {
  std::string ascii;
  const std::string valid = base::ToValidUtf8(text);
  for (size_t i = 0; i < valid.size();) {
    const auto lead = static_cast<unsigned char>(valid[i]);
    const size_t length = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    if (length == 1) {
      ascii += valid[i++];
      continue;
    }
    ascii += "~u";
    for (size_t end = std::min(i + length, valid.size()); i < end; ++i) {
      ascii += fmt::format("{:02X}", static_cast<unsigned char>(valid[i]));
    }
    ascii += '~';
  }
  return ascii;
}

std::string FromAscii(std::string_view ascii) {
  std::string text;
  while (!ascii.empty()) {
    const size_t end = base::StartsWith(ascii, "~u") ? ascii.find('~', 1) : std::string_view::npos;
    std::string bytes;
    for (size_t i = 2; end != std::string_view::npos && i + 1 < end; i += 2) {
      const std::optional<uint64_t> byte = base::ParseUint(ascii.substr(i, 2), 16);
      if (byte) bytes += static_cast<char>(*byte);
    }
    const bool mark = end != std::string_view::npos && end >= 6 && 2 * bytes.size() == end - 2;
    text += mark ? bytes : std::string(1, ascii.front());
    ascii.remove_prefix(mark ? end + 1 : 1);
  }
  return base::ToValidUtf8(text);
}

struct ReadPrice {
  model::GpuPrice price;
  bool has_gpu_hour = false;
};

class Reader {
 public:
  Reader(const std::string& path, std::vector<base::Error>* problems)
      : path_(path), problems_(problems) {}

  void Read(const toml::table& root, Config* config) {
    for (const auto& [key, node] : root) {
      const std::string name(key.str());
      if (name == "limits") {
        if (const toml::table* table = TableOf(node, name)) ReadLimits(*table, "", config);
      } else if (name == "prices") {
        if (const toml::table* table = TableOf(node, name)) ReadPrices(*table, &config->rates);
      } else if (name == "energy") {
        if (const toml::table* table = TableOf(node, name)) ReadEnergy(*table, &config->rates);
      } else if (name == "carbon") {
        if (const toml::table* table = TableOf(node, name)) ReadCarbon(*table, &config->rates);
      } else {
        Unknown(node, "section", name, {"limits", "prices", "energy", "carbon"});
      }
    }
  }

 private:
  void Problem(const toml::node& node, std::string what, std::string what_to_do) {
    problems_->push_back({.what = std::move(what),
                          .where = fmt::format("{}:{}", path_, node.source().begin.line),
                          .why = "",
                          .what_to_do = std::move(what_to_do),
                          .code = kUsageError});
  }

  void Unknown(const toml::node& node, const char* kind, const std::string& name,
               const std::vector<std::string>& known) {
    const std::optional<std::string> nearest = base::NearestWord(name, known);
    Problem(node, fmt::format("unknown {} {}", kind, FromAscii(name)),
            nearest ? fmt::format("did you mean {}?", *nearest)
                    : "'epochmeter config' lists what there is");
  }

  const toml::table* TableOf(const toml::node& node, const std::string& name) {
    const toml::table* table = node.as_table();
    if (table == nullptr) {
      Problem(node, fmt::format("{} is no section", name), fmt::format("write [{}]", name));
    }
    return table;
  }

  // Nothing when it is no number in the range; that is told then.
  std::optional<double> NumberOf(const toml::node& node, const std::string& name, double least,
                                 double most) {
    const std::optional<double> number = node.value<double>();
    const bool is_number = node.is_floating_point() || node.is_integer();
    if (is_number && number && std::isfinite(*number) && *number >= least && *number <= most) {
      return number;
    }
    Problem(node, fmt::format("{} is no number from {} to {}", name, least, most),
            "give a number without a unit; 'epochmeter config' tells the unit of each");
    return {};
  }

  // `data_starvation.warning_ratio = 0.2` is a table in a table; quoted, it is one key.
  void ReadLimits(const toml::table& table, const std::string& prefix, Config* config) {
    for (const auto& [key, node] : table) {
      const std::string id = prefix + std::string(key.str());
      if (const toml::table* inner = node.as_table()) {
        ReadLimits(*inner, id + ".", config);
        continue;
      }
      if (!IsLimit(id)) {
        std::vector<std::string> known;
        for (const auto& limit : diagnose::LimitTable()) known.emplace_back(limit.id);
        Unknown(node, "limit", id, known);
        continue;
      }
      const std::optional<double> value = NumberOf(node, id, 0, 1e18);
      if (value) config->limits.Set(id, *value);
    }
  }

  static bool IsLimit(const std::string& id) {
    for (const auto& limit : diagnose::LimitTable()) {
      if (limit.id == id) return true;
    }
    return false;
  }

  void ReadPrices(const toml::table& table, model::Rates* rates) {
    std::optional<ReadPrice> others;
    for (const auto& [key, node] : table) {
      const std::string name(key.str());
      if (name == "currency") {
        rates->currency = TextOf(node, name).value_or("");
      } else if (name == "electricity_kwh") {
        rates->electricity_kwh = NumberOf(node, name, 0, kMostPrice);
      } else if (name == "gpu") {
        ReadGpus(node, rates);
      } else if (IsPrice(name)) {
        if (!others) others.emplace();
        SetPrice(node, name, &*others);
      } else {
        Unknown(node, "price", name,
                {"currency", "gpu_hour", "evaluation_gpu_hour", "idle_gpu_hour", "electricity_kwh",
                 "gpu"});
      }
    }
    // Those of the section hold for GPUs that no [[prices.gpu]] names.
    if (others && CheckPrice(table, *others)) rates->gpus.push_back(others->price);
  }

  void ReadGpus(const toml::node& node, model::Rates* rates) {
    const toml::array* list = node.as_array();
    if (list == nullptr) {
      Problem(node, "prices.gpu is no list", "write [[prices.gpu]] for each kind of GPU");
      return;
    }
    for (const toml::node& item : *list) {
      const toml::table* table = item.as_table();
      if (table == nullptr) {
        Problem(item, "an entry of prices.gpu is no table", "write [[prices.gpu]]");
        continue;
      }
      ReadPrice read;
      for (const auto& [key, value] : *table) {
        const std::string name(key.str());
        if (name == "name") {
          read.price.name = TextOf(value, name).value_or("");
        } else if (IsPrice(name)) {
          SetPrice(value, name, &read);
        } else {
          Unknown(value, "price", name,
                  {"name", "gpu_hour", "evaluation_gpu_hour", "idle_gpu_hour"});
        }
      }
      if (CheckPrice(item, read)) rates->gpus.push_back(read.price);
    }
  }

  static bool IsPrice(std::string_view name) {
    return name == "gpu_hour" || name == "evaluation_gpu_hour" || name == "idle_gpu_hour";
  }

  void SetPrice(const toml::node& node, const std::string& name, ReadPrice* read) {
    const std::optional<double> value = NumberOf(node, name, 0, kMostPrice);
    if (!value) return;
    if (name == "gpu_hour") {
      read->price.gpu_hour = *value;
      read->has_gpu_hour = true;
    } else if (name == "evaluation_gpu_hour") {
      read->price.evaluation_gpu_hour = value;
    } else {
      read->price.idle_gpu_hour = value;
    }
  }

  // Whether it has what it needs.
  bool CheckPrice(const toml::node& node, const ReadPrice& read) {
    const bool good = read.has_gpu_hour && !read.price.name.empty();
    if (!good) {
      Problem(node, "a price of GPUs lacks gpu_hour or the name of the GPUs",
              "give the price of a GPU and hour: gpu_hour = 2.5");
    }
    return good;
  }

  std::optional<std::string> TextOf(const toml::node& node, const std::string& name) {
    std::optional<std::string> text;
    if (node.is_string()) text = node.value<std::string>();
    if (!text || text->empty() || text->size() > 100) {
      Problem(node, fmt::format("{} is no text of 1 to 100 bytes", name), "write it in quotes");
      return {};
    }
    return FromAscii(*text);
  }

  void ReadEnergy(const toml::table& table, model::Rates* rates) {
    for (const auto& [key, node] : table) {
      const std::string name(key.str());
      if (name != "pue") {
        Unknown(node, "setting of energy", name, {"pue"});
        continue;
      }
      rates->pue = NumberOf(node, "pue", 1, 10).value_or(rates->pue);
    }
  }

  void ReadCarbon(const toml::table& table, model::Rates* rates) {
    for (const auto& [key, node] : table) {
      const std::string name(key.str());
      if (name != "g_per_kwh") {
        Unknown(node, "setting of carbon", name, {"g_per_kwh"});
        continue;
      }
      rates->carbon_g_per_kwh = NumberOf(node, name, 0, 1e5);
    }
  }

  const std::string& path_;
  std::vector<base::Error>* problems_;
};

base::Error NoToml(const std::string& where, std::string why) {
  return {.what = "cannot read the settings",
          .where = where,
          .why = std::move(why),
          .what_to_do = "the file is TOML; 'epochmeter config' prints a good one",
          .code = kUsageError};
}

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Empty when the environment names no home.
std::string DefaultPath() {
  std::string folder = Environment("XDG_CONFIG_HOME");
  if (folder.empty() || folder.front() != '/') {
    const std::string home = Environment("HOME");
    if (home.empty()) return {};
    folder = home + "/.config";
  }
  return folder + "/epochmeter/config.toml";
}

base::Result<Config> LoadNamed(const std::string& path) {
  EPM_ASSIGN(const std::string text, base::ReadFile(path, kMostBytes));
  std::vector<base::Error> problems;
  Config config = ParseConfig(text, path, &problems);
  if (!problems.empty()) return problems.front();
  return config;
}

void Warn(const base::Error& problem) {
  std::fputs(("epochmeter: warning: " + problem.Message() + "\n").c_str(), stderr);
}

Config LoadDefault() {
  const std::string path = DefaultPath();
  if (path.empty()) return {};
  const base::Result<std::string> text = base::ReadFile(path, kMostBytes);
  if (!text.ok()) {
    if (text.error().code != ENOENT && text.error().code != ENOTDIR) Warn(text.error());
    return {};
  }
  std::vector<base::Error> problems;
  Config config = ParseConfig(*text, path, &problems);
  for (const base::Error& problem : problems) Warn(problem);
  return config;
}

}  // namespace

Config ParseConfig(std::string_view text, const std::string& path,
                   std::vector<base::Error>* problems) {
  Config config{.path = path, .limits = {}, .rates = {}};
  const toml::parse_result parsed = toml::parse(ToAscii(text), path);
  if (!parsed) {
    problems->push_back(NoToml(fmt::format("{}:{}", path, parsed.error().source().begin.line),
                               FromAscii(parsed.error().description())));
    return config;
  }
  Reader(path, problems).Read(parsed.table(), &config);
  return config;
}

base::Result<Config> LoadConfig(const Arguments& arguments) {
  Config config;
  if (const std::optional<std::string> path = arguments.Value("config")) {
    EPM_ASSIGN(config, LoadNamed(*path));
  } else {
    config = LoadDefault();
  }
  if (const std::optional<std::string> path = arguments.Value("rates")) {
    EPM_ASSIGN(Config rates, LoadNamed(*path));
    config.rates = std::move(rates.rates);
  }
  return config;
}

base::Result<diagnose::ReportOptions> LoadReportOptions(const Arguments& arguments) {
  EPM_ASSIGN(Config config, LoadConfig(arguments));
  return diagnose::ReportOptions{.all_gpus = arguments.Has("all-gpus"),
                                 .limits = std::move(config.limits),
                                 .rates = std::move(config.rates)};
}

}  // namespace epochmeter::cli
