// SPDX-License-Identifier: Apache-2.0
#include "diagnose/own_gpus.h"

#include <algorithm>

#include "base/strings.h"

namespace epochmeter::diagnose {
namespace {

using model::EntityDef;

// Words of `GPU-a, GPU-b`, `0,1` and `["GPU-a","GPU-b"]`.
std::vector<std::string> Words(std::string_view list) {
  std::string plain(list);
  for (char& c : plain) {
    if (c == '[' || c == ']' || c == '"' || c == ',' || c == ';') c = ' ';
  }
  std::vector<std::string> words;
  for (const std::string_view word : base::SplitWhitespace(plain)) words.emplace_back(word);
  return words;
}

bool SamePciBusId(std::string_view a, std::string_view b) {
  // Domains are written with four or eight digits: "0000:1b:00.0", "00000000:1B:00.0".
  const auto tail = [](std::string_view id) {
    return id.size() <= 12 ? id : id.substr(id.size() - 12);
  };
  return !a.empty() && base::ToLowerAscii(tail(a)) == base::ToLowerAscii(tail(b));
}

bool Matches(const EntityDef& gpu, std::string_view word) {
  if (gpu.name == word || Find(gpu.labels, "uuid") == word) return true;
  if (SamePciBusId(Find(gpu.labels, "pci_bus_id"), word)) return true;
  if (SamePciBusId(Find(gpu.attributes, "pci_bus_id"), word)) return true;
  return base::ParseInt(word) == int64_t{GpuIndex(gpu)} && GpuIndex(gpu) >= 0;
}

std::optional<std::vector<int32_t>> Resolve(const std::vector<const EntityDef*>& gpus,
                                            const std::vector<std::string>& words) {
  std::vector<int32_t> found;
  for (const std::string& word : words) {
    // The framework's own number need not be the driver's; with one GPU it can mean no other.
    if (gpus.size() == 1 && base::StartsWith(word, "framework:")) {
      found.push_back(GpuIndex(*gpus.front()));
      continue;
    }
    const auto gpu = std::find_if(gpus.begin(), gpus.end(),
                                  [&](const EntityDef* def) { return Matches(*def, word); });
    if (gpu == gpus.end()) return {};
    found.push_back(GpuIndex(**gpu));
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

}  // namespace

std::string_view Find(const model::Labels& labels, std::string_view key) {
  for (const auto& [name, value] : labels) {
    if (name == key) return value;
  }
  return {};
}

int32_t GpuIndex(const EntityDef& gpu) {
  const std::optional<int64_t> index = base::ParseInt(Find(gpu.labels, "gpu"));
  return index && *index >= 0 && *index < 4096 ? static_cast<int32_t>(*index) : -1;
}

std::optional<std::vector<int32_t>> OwnGpus(const model::Run& run, const RankEvents& rank,
                                            bool only_rank) {
  const std::vector<const EntityDef*> gpus = run.EntitiesOf(model::Scope::kGpu);
  for (auto event = rank.events.rbegin(); event != rank.events.rend(); ++event) {
    if (const auto index = (*event)->Number("gpus")) {
      return Resolve(gpus, {std::to_string(static_cast<int64_t>(*index))});
    }
    if (const auto list = (*event)->Text("gpus")) return Resolve(gpus, Words(*list));
  }
  if (!only_rank || gpus.empty()) return {};
  std::vector<int32_t> all;
  all.reserve(gpus.size());
  for (const EntityDef* gpu : gpus) all.push_back(GpuIndex(*gpu));
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace epochmeter::diagnose
