// SPDX-License-Identifier: Apache-2.0
#include "diagnose/own_gpus.h"

#include <algorithm>

#include "base/strings.h"
#include "model/limits.h"

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

// GPUs with the attribute job=yes.
std::set<int32_t> MarkedGpus(const model::Run& run) {
  std::set<int32_t> gpus;
  for (const EntityDef* gpu : run.EntitiesOf(model::Scope::kGpu)) {
    if (Find(gpu->attributes, "job") == "yes") gpus.insert(GpuIndex(*gpu));
  }
  return gpus;
}

// Whether the environment of the job left GPUs out.
bool HasForeignGpus(const model::Run& run) {
  const auto gpus = run.EntitiesOf(model::Scope::kGpu);
  return std::any_of(gpus.begin(), gpus.end(),
                     [](const EntityDef* gpu) { return Find(gpu->attributes, "job") == "no"; });
}

}  // namespace

std::set<int32_t> UsedGpus(const model::Run& run) {
  std::set<int32_t> gpus;
  for (const EntityDef* process : run.EntitiesOf(model::Scope::kProcess)) {
    if (Find(process->attributes, "owner") != "job") continue;
    for (const EntityDef* gpu : run.EntitiesOf(model::Scope::kGpu)) {
      if (gpu->name == Find(process->labels, "uuid")) gpus.insert(GpuIndex(*gpu));
    }
  }
  return gpus;
}

JobGpus FindJobGpus(const model::Run& run, const std::vector<RankEvents>& ranks) {
  std::set<int32_t> chosen = MarkedGpus(run);
  const std::set<int32_t> used = UsedGpus(run);
  std::set<int32_t> named;
  bool all_named = !ranks.empty();
  for (const RankEvents& rank : ranks) {
    const auto own = OwnGpus(run, rank, nullptr);
    all_named &= own.has_value();
    if (own) named.insert(own->begin(), own->end());
  }
  const bool restricted = HasForeignGpus(run);
  if (restricted || all_named) {
    chosen.insert(named.begin(), named.end());
    chosen.insert(used.begin(), used.end());
    return {.gpus = std::move(chosen)};
  }
  if (!used.empty()) return {.gpus = used};
  return {};
}

void MarkGpus(const JobGpus& job, bool all, std::vector<model::GpuStats>* gpus) {
  if (!job.gpus) return;
  for (model::GpuStats& gpu : *gpus) gpu.of_job = job.gpus->contains(gpu.gpu);
  if (!all) std::erase_if(*gpus, [](const model::GpuStats& gpu) { return !*gpu.of_job; });
}

std::optional<std::vector<int32_t>> OwnGpus(const model::Run& run, const RankEvents& rank,
                                            const JobGpus* job) {
  const std::vector<const EntityDef*> gpus = run.EntitiesOf(model::Scope::kGpu);
  for (auto event = rank.events.rbegin(); event != rank.events.rend(); ++event) {
    if (const auto number = (*event)->Number("gpus")) {
      const std::optional<int64_t> index = model::WholeOf(*number);
      return index ? Resolve(gpus, {std::to_string(*index)}) : std::nullopt;
    }
    if (const auto list = (*event)->Text("gpus")) return Resolve(gpus, Words(*list));
  }
  if (job == nullptr || gpus.empty()) return {};
  if (job->gpus) return std::vector<int32_t>(job->gpus->begin(), job->gpus->end());
  std::vector<int32_t> all;
  all.reserve(gpus.size());
  for (const EntityDef* gpu : gpus) all.push_back(GpuIndex(*gpu));
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace epochmeter::diagnose
