// SPDX-License-Identifier: Apache-2.0
#include "model/oom_text.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/strings.h"

namespace epochmeter::model {
namespace {

using std::string_view;

constexpr size_t kLongestSize = 32;  // "139.80 GiB" and the like

bool Contains(string_view text, string_view part) { return text.find(part) != string_view::npos; }

std::optional<double> FactorOf(string_view unit) {
  if (unit.empty() || unit == "B" || base::StartsWith(unit, "byte")) return 1;
  constexpr string_view kLetters = "KMGT";
  const size_t power = kLetters.find(unit.front() == 'k' ? 'K' : unit.front());
  if (power == string_view::npos) return {};
  const string_view rest = unit.substr(1);
  if (!rest.empty() && rest != "B" && rest != "iB" && rest != "b") return {};
  return std::pow(1024.0, static_cast<double>(power + 1));
}

// "139.80 GiB", "5.300939GB", "1234 bytes".
std::optional<double> SizeOf(string_view text) {
  text = base::Trim(text);
  const size_t number_end = std::min(text.find_first_not_of("0123456789."), text.size());
  const auto number = base::ParseDouble(text.substr(0, number_end));
  string_view unit = base::Trim(text.substr(number_end));
  unit = unit.substr(0, std::min(unit.find_first_not_of("KMGTkiBbytes"), unit.size()));
  const auto factor = FactorOf(unit);
  if (!number || !factor || !std::isfinite(*number) || *number < 0) return {};
  return *number * *factor;
}

std::optional<double> SizeAfter(string_view text, string_view mark) {
  const size_t at = text.find(mark);
  if (at == string_view::npos) return {};
  return SizeOf(text.substr(at + mark.size(), kLongestSize));
}

// The size that ends where the mark begins.
std::optional<double> SizeBefore(string_view text, string_view mark) {
  const size_t end = text.find(mark);
  if (end == string_view::npos) return {};
  size_t begin = end;
  while (begin > 0 && end - begin < kLongestSize &&
         string_view("0123456789. KMGTiB").find(text[begin - 1]) != string_view::npos) {
    --begin;
  }
  return SizeOf(text.substr(begin, end - begin));
}

template <typename... Rest>
std::optional<double> FirstOf(std::optional<double> first, Rest... rest) {
  if constexpr (sizeof...(rest) == 0) {
    return first;
  } else {
    return first ? first : FirstOf(rest...);
  }
}

std::optional<int32_t> NumberAfter(string_view text, string_view mark) {
  const size_t at = text.find(mark);
  if (at == string_view::npos) return {};
  const string_view rest = text.substr(at + mark.size(), 6);
  const auto number =
      base::ParseUint(rest.substr(0, std::min(rest.find_first_not_of("0123456789"), rest.size())));
  if (!number || *number > 4096) return {};
  return static_cast<int32_t>(*number);
}

// TensorFlow names the shape and the type instead of the size.
std::optional<double> TensorBytes(string_view text) {
  constexpr string_view kShape = "with shape[";
  const size_t at = text.find(kShape);
  if (at == string_view::npos) return {};
  const string_view rest = text.substr(at + kShape.size(), 200);
  const size_t close = rest.find(']');
  if (close == string_view::npos) return {};
  constexpr std::array<std::pair<string_view, double>, 9> kTypes = {{{"float64", 8},
                                                                     {"double", 8},
                                                                     {"int64", 8},
                                                                     {"float", 4},
                                                                     {"int32", 4},
                                                                     {"half", 2},
                                                                     {"bfloat16", 2},
                                                                     {"int8", 1},
                                                                     {"bool", 1}}};
  constexpr string_view kType = "type ";
  const size_t type_at = rest.find(kType, close);
  if (type_at == string_view::npos) return {};
  const string_view type = rest.substr(type_at + kType.size());
  const auto known = std::find_if(kTypes.begin(), kTypes.end(),
                                  [&](const auto& t) { return base::StartsWith(type, t.first); });
  if (known == kTypes.end()) return {};
  double bytes = known->second;
  for (const string_view size : base::Split(rest.substr(0, close), ',')) {
    const auto number = base::ParseUint(base::Trim(size));
    if (!number) return {};
    bytes *= static_cast<double>(*number);
  }
  return bytes;
}

// "Process 1234 has 12.30 GiB memory in use."
std::vector<std::pair<int64_t, double>> OthersIn(string_view text) {
  constexpr size_t kMost = 64;
  std::vector<std::pair<int64_t, double>> others;
  constexpr string_view kMark = "Process ", kHas = " has ";
  for (size_t at = text.find(kMark); at != string_view::npos && others.size() < kMost;
       at = text.find(kMark, at + 1)) {
    const string_view rest = text.substr(at + kMark.size(), 64);
    const size_t has = rest.find(kHas);
    if (has == string_view::npos) continue;
    const auto pid = base::ParseInt(rest.substr(0, has));
    const auto bytes = SizeOf(rest.substr(has + kHas.size()));
    if (pid && bytes) others.emplace_back(*pid, *bytes);
  }
  return others;
}

constexpr auto kDevice = std::to_array<string_view>(
    {"CUDA out of memory", "HIP out of memory", "Out of memory error on GPU",
     "CUDA_ERROR_OUT_OF_MEMORY", "cudaErrorMemoryAllocation", "CUDA error: out of memory",
     "RESOURCE_EXHAUSTED: Out of memory", "CUBLAS_STATUS_ALLOC_FAILED", "OOM when allocating",
     "torch.OutOfMemoryError", "cuda.OutOfMemoryError"});
constexpr auto kHost = std::to_array<string_view>(
    {"not enough memory: you tried to allocate", "Unable to allocate", "std::bad_alloc",
     "Cannot allocate memory", "oom_kill event", "oom-kill event", "Out of memory: Kill",
     "is killed by signal: Killed", "MemoryError"});

bool AnyIn(string_view text, const auto& marks) {
  return std::any_of(marks.begin(), marks.end(),
                     [text](string_view mark) { return Contains(text, mark); });
}

}  // namespace

std::optional<OomText> ParseOomText(string_view text) {
  OomText oom;
  if (Contains(text, "caller indicates that this is not a failure")) return {};
  const bool device = AnyIn(text, kDevice);
  const bool on_cpu = Contains(text, "OOM when allocating") && Contains(text, "device:CPU:");
  oom.host = (!device && AnyIn(text, kHost)) || on_cpu;
  if (!device && !oom.host) return {};
  oom.asked_bytes =
      FirstOf(SizeAfter(text, "Tried to allocate "), SizeAfter(text, "Cannot allocate "),
              SizeAfter(text, "trying to allocate "), SizeAfter(text, "you tried to allocate "),
              SizeAfter(text, "Unable to allocate "), TensorBytes(text));
  if (oom.host) return oom;
  oom.total_bytes =
      FirstOf(SizeAfter(text, "total capacity of "), SizeBefore(text, " total capacity"));
  oom.free_bytes = FirstOf(SizeBefore(text, " is free"), SizeBefore(text, " free;"),
                           SizeAfter(text, "available memory is only "));
  oom.allocated_bytes =
      FirstOf(SizeBefore(text, " is allocated by PyTorch"), SizeBefore(text, " already allocated"),
              SizeBefore(text, " memory has been allocated"));
  oom.unallocated_bytes = SizeBefore(text, " is reserved by PyTorch but unallocated");
  const auto reserved =
      FirstOf(SizeBefore(text, " reserved in total by PyTorch"), SizeBefore(text, " cached)"));
  if (!oom.unallocated_bytes && reserved && oom.allocated_bytes) {
    oom.unallocated_bytes = std::max(0.0, *reserved - *oom.allocated_bytes);
  }
  oom.process_bytes = SizeAfter(text, "this process has ");
  oom.gpu = NumberAfter(text, "GPU ");
  if (!oom.gpu) oom.gpu = NumberAfter(text, "device:GPU:");
  oom.others = OthersIn(text);
  return oom;
}

}  // namespace epochmeter::model
