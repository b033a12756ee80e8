// SPDX-License-Identifier: Apache-2.0
#include "ingest/log/units.h"

#include <array>

#include "base/strings.h"

namespace epochmeter::ingest::log {
namespace {

struct TimeUnit {
  std::string_view name;
  double seconds;
};
constexpr std::array<TimeUnit, 41> kTimeUnits = {{{"s", 1},
                                                  {"ms", 1e-3},
                                                  {"us", 1e-6},
                                                  {"µs", 1e-6},
                                                  {"μs", 1e-6},
                                                  {"ns", 1e-9},
                                                  {"sec", 1},
                                                  {"secs", 1},
                                                  {"second", 1},
                                                  {"seconds", 1},
                                                  {"msec", 1e-3},
                                                  {"msecs", 1e-3},
                                                  {"millis", 1e-3},
                                                  {"millisecond", 1e-3},
                                                  {"milliseconds", 1e-3},
                                                  {"usec", 1e-6},
                                                  {"microsecond", 1e-6},
                                                  {"microseconds", 1e-6},
                                                  {"m", 60},
                                                  {"min", 60},
                                                  {"mins", 60},
                                                  {"minute", 60},
                                                  {"minutes", 60},
                                                  {"h", 3600},
                                                  {"hr", 3600},
                                                  {"hrs", 3600},
                                                  {"hour", 3600},
                                                  {"hours", 3600},
                                                  {"d", 86400},
                                                  {"day", 86400},
                                                  {"days", 86400},
                                                  {"w", 604800},
                                                  {"week", 604800},
                                                  {"weeks", 604800},
                                                  {"秒", 1},
                                                  {"毫秒", 1e-3},
                                                  {"分", 60},
                                                  {"分钟", 60},
                                                  {"时", 3600},
                                                  {"小时", 3600},
                                                  {"天", 86400}}};

struct CountedWord {
  std::string_view name;  // without a plural's 's'
  Counted counted;
};
constexpr std::array<CountedWord, 38> kCountedWords = {
    {{"it", Counted::kSteps},         {"iter", Counted::kSteps},
     {"iteration", Counted::kSteps},  {"step", Counted::kSteps},
     {"batch", Counted::kSteps},      {"batche", Counted::kSteps},
     {"update", Counted::kSteps},     {"minibatch", Counted::kSteps},
     {"image", Counted::kSamples},    {"img", Counted::kSamples},
     {"im", Counted::kSamples},       {"sample", Counted::kSamples},
     {"smpl", Counted::kSamples},     {"in", Counted::kSamples},
     {"instance", Counted::kSamples}, {"example", Counted::kSamples},
     {"ex", Counted::kSamples},       {"exp", Counted::kSamples},
     {"sequence", Counted::kSamples}, {"seq", Counted::kSamples},
     {"sentence", Counted::kSamples}, {"sent", Counted::kSamples},
     {"record", Counted::kSamples},   {"frame", Counted::kSamples},
     {"clip", Counted::kSamples},     {"video", Counted::kSamples},
     {"token", Counted::kTokens},     {"tok", Counted::kTokens},
     {"word", Counted::kTokens},      {"w", Counted::kTokens},
     {"epoch", Counted::kEpochs},     {"ep", Counted::kEpochs},
     {"byte", Counted::kBytes},       {"b", Counted::kBytes},
     {"flop", Counted::kFlops},       {"flo", Counted::kFlops},
     {"样本", Counted::kSamples},     {"步", Counted::kSteps}}};

// Rates that need no "/s".
constexpr std::array<CountedWord, 6> kRates = {{{"tps", Counted::kTokens},
                                                {"ips", Counted::kSamples},
                                                {"fps", Counted::kSamples},
                                                {"wps", Counted::kTokens},
                                                {"ups", Counted::kSteps},
                                                {"sps", Counted::kSamples}}};

constexpr std::string_view kScales = "KMGTP";

double Power(double base, size_t exponent) {
  double power = 1;
  for (; exponent > 0; --exponent) power *= base;
  return power;
}

// "GiB", "MB", "Mb", "K", "B", "bytes"; 0 for others. Lone letters only of memory.
double BytesOf(std::string_view unit, UnitContext context) {
  if (unit == "B" || unit == "byte" || unit == "bytes" || unit == "Bytes") return 1;
  if (unit.empty()) return 0;
  const auto upper = static_cast<char>(unit[0] & ~0x20);
  const size_t scale = kScales.find(upper);
  const bool lower_mega = unit[0] == 'm' || unit[0] == 'p';  // "m" and "p" are no bytes
  if (scale == std::string_view::npos || (lower_mega && unit.size() < 2)) return 0;
  const std::string_view rest = unit.substr(1);
  if (rest == "iB" || rest == "ib" || rest == "IB") return Power(1024, scale + 1);
  if (rest == "B" || rest == "b" || rest == "bytes") {
    return Power(context == UnitContext::kMemory ? 1024 : 1000, scale + 1);
  }
  return rest.empty() && context == UnitContext::kMemory ? Power(1024, scale + 1) : 0;
}

// "tokens", "MB", "Ktokens", "TFLOP": what is counted, and in which thousands.
UnitMeaning ReadCounted(std::string_view word) {
  UnitMeaning meaning{.dimension = Dimension::kPerSecond, .counted = CountedOf(word)};
  if (meaning.counted != Counted::kNothing) return meaning;
  if (const double bytes = BytesOf(word, UnitContext::kAny); bytes != 0) {
    return {.dimension = Dimension::kPerSecond, .factor = bytes, .counted = Counted::kBytes};
  }
  const size_t scale = word.empty() ? kScales.npos : kScales.find(word[0] == 'k' ? 'K' : word[0]);
  if (scale != kScales.npos) meaning.counted = CountedOf(word.substr(1));
  if (meaning.counted != Counted::kNothing) {
    meaning.factor = Power(1000, scale + 1);
    return meaning;
  }
  meaning.counted = Counted::kOther;
  return meaning;
}

UnitMeaning ReadRate(std::string_view over, std::string_view under) {
  const size_t slash = under.find('/');
  const std::string_view device = slash == under.npos ? "" : under.substr(slash + 1);
  const bool known = device == "gpu" || device == "GPU" || device == "device" || device == "chip" ||
                     device == "card" || device == "rank" || device == "npu" || device == "xpu";
  under = under.substr(0, slash);
  if (!device.empty() && !known) return {};
  if (const auto seconds = SecondsOfUnit(over)) {
    // "min/max" is no rate; only times of what is counted are.
    const Counted counted = CountedOf(under);
    if (counted == Counted::kNothing || !device.empty()) return {};
    return {.dimension = Dimension::kSecondsPer, .factor = *seconds, .counted = counted};
  }
  const auto seconds = SecondsOfUnit(under);
  if (!seconds) return {};
  UnitMeaning meaning = ReadCounted(over);
  meaning.factor /= *seconds;
  meaning.per_device = known;
  return meaning;
}

}  // namespace

std::optional<double> SecondsOfUnit(std::string_view unit) {
  for (const TimeUnit& known : kTimeUnits) {
    if (unit == known.name) return known.seconds;
  }
  if (unit.size() < 2 || unit[0] > 'Z' || unit[0] < 'A') return std::nullopt;
  const std::string lower = base::ToLowerAscii(unit);
  for (const TimeUnit& known : kTimeUnits) {
    if (lower == known.name) return known.seconds;
  }
  return std::nullopt;
}

double HumanFactor(std::string_view suffix) {
  if (suffix.size() != 1) return 0;
  switch (suffix[0]) {
    case 'K':
    case 'k':
      return 1e3;
    case 'M':
      return 1e6;
    case 'B':
      return 1e9;
    case 'T':
      return 1e12;
    default:
      return 0;
  }
}

Counted CountedOf(std::string_view word) {
  if (word.empty() || word.size() > 12) return Counted::kNothing;
  const std::string lower = base::ToLowerAscii(word);
  std::string_view stem = lower;
  for (int pass = 0; pass < 2; ++pass) {
    for (const CountedWord& known : kCountedWords) {
      if (stem == known.name) return known.counted;
    }
    if (stem.size() < 3 || stem.back() != 's') break;
    stem.remove_suffix(1);
  }
  return Counted::kNothing;
}

UnitMeaning UnitOf(std::string_view unit, UnitContext context) {
  unit = base::Trim(unit);
  while (!unit.empty() && (unit.back() == '.' || unit.back() == ',')) unit.remove_suffix(1);
  if (unit.empty() || unit.size() > 32) return {};
  if (unit[0] == '%') return {.dimension = Dimension::kRatio, .factor = 0.01};
  const size_t slash = unit.find('/');
  if (slash != std::string_view::npos) {
    return ReadRate(base::Trim(unit.substr(0, slash)), base::Trim(unit.substr(slash + 1)));
  }
  if (const double bytes = BytesOf(unit, context); bytes != 0) {
    return {.dimension = Dimension::kBytes, .factor = bytes, .counted = Counted::kBytes};
  }
  if (const auto seconds = SecondsOfUnit(unit)) {
    return {.dimension = Dimension::kSeconds, .factor = *seconds};
  }
  const std::string lower = base::ToLowerAscii(unit);
  for (const CountedWord& rate : kRates) {
    if (lower == rate.name) return {.dimension = Dimension::kPerSecond, .counted = rate.counted};
  }
  // Short words ("in", "it", "w") count something only in a rate.
  const Counted counted = unit.size() > 3 ? CountedOf(unit) : Counted::kNothing;
  if (counted != Counted::kNothing) return {.dimension = Dimension::kCount, .counted = counted};
  if (const double factor = HumanFactor(unit); factor != 0) {
    return {.dimension = Dimension::kCount, .factor = factor};
  }
  return unit == "G" ? UnitMeaning{.dimension = Dimension::kCount, .factor = 1e9} : UnitMeaning{};
}

}  // namespace epochmeter::ingest::log
