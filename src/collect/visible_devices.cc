// SPDX-License-Identifier: Apache-2.0
#include "collect/visible_devices.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "base/strings.h"
#include "collect/proc_pid.h"

namespace epochmeter::collect {
namespace {

constexpr std::string_view kGpuPrefix = "GPU-";
constexpr std::string_view kMigPrefix = "MIG-";
constexpr std::string_view kMigOfGpuPrefix = "MIG-GPU-";
// Since this branch a process may use several MIG devices.
constexpr int kSeveralMigBranch = 530;

std::optional<std::string> Variable(std::string_view environ_text, std::string_view name) {
  const auto value = EnvironValue(environ_text, name);
  return value ? std::optional<std::string>(*value) : std::nullopt;
}

// As strtoul reads the beginning of a token; nothing when there is no number or a negative one.
std::optional<size_t> LeadingNumber(std::string_view token) {
  const std::string_view text = base::Trim(token);
  size_t at = !text.empty() && text[0] == '+' ? 1 : 0;
  const size_t first = at;
  size_t number = 0;
  for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at) {
    if (number > 100000) return std::nullopt;
    number = 10 * number + static_cast<size_t>(text[at] - '0');
  }
  return at > first ? std::optional(number) : std::nullopt;
}

bool SameModel(std::span<const GpuIdentity> gpus) {
  return std::all_of(gpus.begin(), gpus.end(),
                     [&](const GpuIdentity& gpu) { return gpu.model == gpus.front().model; });
}

// Places in the order of the bus id, which is NVML's order. Equal digits compare as numbers do.
std::vector<size_t> PciOrder(std::span<const GpuIdentity> gpus) {
  const auto key = [&](size_t place) {
    std::string id = base::ToLowerAscii(gpus[place].bus_id);
    if (id.size() < 16) id.insert(0, 16 - id.size(), '0');
    return id;
  };
  std::vector<size_t> order(gpus.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return key(a) < key(b); });
  return order;
}

// What one token names: a GPU, or a MIG device of it.
struct Named {
  size_t gpu;
  std::string mig;
};

std::optional<Named> FindByPrefix(std::span<const GpuIdentity> gpus, std::string_view token) {
  std::optional<Named> found;
  for (size_t place = 0; place < gpus.size(); ++place) {
    if (!base::StartsWith(gpus[place].uuid, token)) continue;
    if (found) return std::nullopt;  // not unique
    found = Named{.gpu = place, .mig = {}};
  }
  return found;
}

// "MIG-GPU-<uuid>/gi/ci" and "MIG-<uuid>".
std::optional<Named> FindMig(std::span<const GpuIdentity> gpus, std::string_view token) {
  if (base::StartsWith(token, kMigOfGpuPrefix)) {
    const auto parts = base::Split(token.substr(kMigPrefix.size()), '/');
    if (parts.size() != 3 || !base::ParseUint(parts[1]) || !base::ParseUint(parts[2])) return {};
    for (size_t place = 0; place < gpus.size(); ++place) {
      if (gpus[place].uuid == parts[0]) return Named{.gpu = place, .mig = std::string(token)};
    }
    return {};
  }
  for (size_t place = 0; place < gpus.size(); ++place) {
    for (const MigIdentity& mig : gpus[place].mig) {
      if (mig.uuid == token) return Named{.gpu = place, .mig = mig.uuid};
    }
  }
  return {};
}

bool KnowsMig(std::span<const GpuIdentity> gpus) {
  return std::any_of(gpus.begin(), gpus.end(),
                     [](const GpuIdentity& gpu) { return !gpu.mig.empty(); });
}

VisibleGpus All(std::span<const GpuIdentity> gpus, std::string note = {}) {
  return {.restricted = false, .gpus = PciOrder(gpus), .mig = {}, .note = std::move(note)};
}

void EndList(std::string_view variable, std::string_view token, VisibleGpus* out) {
  out->note = std::string(variable) + ": '" + std::string(token) + "' ends the list";
}

VisibleGpus ByNumber(std::string_view list, std::span<const GpuIdentity> gpus) {
  VisibleGpus out{.restricted = true, .gpus = {}, .mig = {}, .note = {}};
  const std::vector<size_t> order = PciOrder(gpus);
  std::set<size_t> seen;
  for (const std::string_view token : base::Split(list, ',')) {
    const auto number = LeadingNumber(token);
    if (!number || *number >= gpus.size()) {
      EndList("CUDA_VISIBLE_DEVICES", token, &out);
      break;
    }
    if (!seen.insert(*number).second) {
      return {.restricted = true,
              .gpus = {},
              .mig = {},
              .note = "CUDA_VISIBLE_DEVICES names a device twice, so none is visible"};
    }
    out.gpus.push_back(order[*number]);
  }
  return out;
}

VisibleGpus ByName(std::string_view list, std::span<const GpuIdentity> gpus, int driver_branch) {
  VisibleGpus out{.restricted = true, .gpus = {}, .mig = {}, .note = {}};
  const bool mig = base::StartsWith(base::Trim(list), kMigPrefix);
  if (mig && !base::StartsWith(base::Trim(list), kMigOfGpuPrefix) && !KnowsMig(gpus)) {
    return All(gpus, "CUDA_VISIBLE_DEVICES names a MIG device whose GPU is not known");
  }
  std::set<std::string> seen;
  for (const std::string_view raw : base::Split(list, ',')) {
    const std::string_view token = base::Trim(raw);
    const bool kind = base::StartsWith(token, mig ? kMigPrefix : kGpuPrefix);
    const auto named = !kind ? std::nullopt
                       : mig ? FindMig(gpus, token)
                             : FindByPrefix(gpus, token);
    if (!named) {
      EndList("CUDA_VISIBLE_DEVICES", token, &out);
      break;
    }
    if (!seen.insert(mig ? named->mig : gpus[named->gpu].uuid).second) {
      return {.restricted = true,
              .gpus = {},
              .mig = {},
              .note = "CUDA_VISIBLE_DEVICES names a device twice, so none is visible"};
    }
    if (mig) out.mig.push_back(named->mig);
    const bool known = std::find(out.gpus.begin(), out.gpus.end(), named->gpu) != out.gpus.end();
    if (!known) out.gpus.push_back(named->gpu);
    if (mig && driver_branch > 0 && driver_branch < kSeveralMigBranch) break;
  }
  return out;
}

VisibleGpus ByCuda(const VisibleVariables& variables, std::span<const GpuIdentity> gpus,
                   int driver_branch) {
  const std::string_view list = *variables.cuda;
  if (base::Trim(list).empty()) {
    return {.restricted = true,
            .gpus = {},
            .mig = {},
            .note = "CUDA_VISIBLE_DEVICES is empty, so no GPU is visible"};
  }
  const std::string_view start = base::Trim(list);
  if (base::StartsWith(start, kGpuPrefix) || base::StartsWith(start, kMigPrefix)) {
    return ByName(list, gpus, driver_branch);
  }
  return ByNumber(list, gpus);
}

// The runtime has applied its list already, unless more devices than it names are here: a
// privileged container, or a host. Then the list says which of them were meant.
VisibleGpus ByRuntime(std::string_view list, std::span<const GpuIdentity> gpus) {
  const std::string_view word = base::Trim(list);
  if (word.empty() || word == "all" || word == "void") return All(gpus);
  if (word == "none") {
    return {.restricted = true, .gpus = {}, .mig = {}, .note = "NVIDIA_VISIBLE_DEVICES is none"};
  }
  const std::vector<std::string_view> tokens = base::Split(word, ',');
  std::set<size_t> places;
  const std::vector<size_t> order = PciOrder(gpus);
  for (const std::string_view raw : tokens) {
    const std::string_view token = base::Trim(raw);
    // "0:1" is a MIG device of GPU 0.
    const auto number = base::ParseUint(token.substr(0, token.find(':')));
    std::optional<Named> named;
    if (number && *number < gpus.size()) named = Named{.gpu = order[*number], .mig = {}};
    if (base::StartsWith(token, kGpuPrefix)) named = FindByPrefix(gpus, token);
    if (base::StartsWith(token, kMigPrefix)) named = FindMig(gpus, token);
    if (!named) return All(gpus);  // applied already, or not a form that is known
    places.insert(named->gpu);
  }
  if (places.size() == gpus.size()) return All(gpus);
  return {.restricted = true, .gpus = {places.begin(), places.end()}, .mig = {}, .note = {}};
}

// Paddle's numbers count inside what CUDA shows.
VisibleGpus Select(std::string_view list, VisibleGpus visible) {
  std::vector<size_t> chosen;
  for (const std::string_view token : base::Split(list, ',')) {
    const auto number = base::ParseUint(base::Trim(token));
    if (!number || *number >= visible.gpus.size()) {
      visible.note = "FLAGS_selected_gpus: '" + std::string(token) + "' is no visible GPU";
      return visible;
    }
    const size_t place = visible.gpus[*number];
    if (std::find(chosen.begin(), chosen.end(), place) == chosen.end()) chosen.push_back(place);
  }
  visible.gpus = std::move(chosen);
  visible.restricted = true;
  return visible;
}

bool CountsFrom(const std::optional<std::string>& list) {
  return list && LeadingNumber(base::Split(*list, ',').front()).has_value();
}

}  // namespace

VisibleVariables VisibleVariablesOf(std::string_view environ_text) {
  return {.cuda = Variable(environ_text, "CUDA_VISIBLE_DEVICES"),
          .nvidia = Variable(environ_text, "NVIDIA_VISIBLE_DEVICES"),
          .selected = Variable(environ_text, "FLAGS_selected_gpus"),
          .order = Variable(environ_text, "CUDA_DEVICE_ORDER")};
}

VisibleGpus ResolveVisibleGpus(const VisibleVariables& variables, std::span<const GpuIdentity> gpus,
                               int driver_branch) {
  if (gpus.empty()) return {};
  const bool selects = variables.selected && !base::Trim(*variables.selected).empty();
  if (!variables.cuda && !selects) {
    return variables.nvidia ? ByRuntime(*variables.nvidia, gpus) : All(gpus);
  }
  VisibleGpus visible = variables.cuda ? ByCuda(variables, gpus, driver_branch) : All(gpus);
  // Names alone say which; numbers need the order that CUDA counts in.
  const bool counted = CountsFrom(variables.cuda) || (selects && !variables.cuda);
  if (selects && (visible.restricted || !variables.cuda)) {
    visible = Select(*variables.selected, std::move(visible));
  }
  const bool bus_order =
      variables.order && base::ToLowerAscii(base::Trim(*variables.order)) == "pci_bus_id";
  if (counted && !bus_order && !SameModel(gpus) && !visible.gpus.empty() &&
      visible.gpus.size() < gpus.size()) {
    return All(gpus,
               "the GPUs are of several models and CUDA counts them fastest first, so numbers do "
               "not tell which are meant: set CUDA_DEVICE_ORDER=PCI_BUS_ID or name UUIDs");
  }
  return visible;
}

}  // namespace epochmeter::collect
