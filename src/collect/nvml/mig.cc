// SPDX-License-Identifier: Apache-2.0
// MIG instances: memory and GPM of each GPU instance. Power, temperature and energy are the board's
// and stay with the GPU; utilisation is not counted for instances, and the GPU's would be wrong
// for them. Looked for each 30 s, because instances come and go.
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "collect/nvml/gpm_reader.h"
#include "collect/nvml/mig_instances.h"
#include "collect/nvml/nvml_sources.h"

namespace epochmeter::collect::nvml {
namespace {

using model::MetricDef;

consteval MetricDef OfInstance(MetricDef def) {
  def.scope = model::Scope::kMig;
  return model::Metric(def);
}

enum MetricIndex : size_t { kTotal, kFree, kUsed, kReserved, kUtilization, kFirstGpm };
constexpr auto kMetrics = [] {
  std::array<MetricDef, kFirstGpm + kGpmCount> metrics{};
  metrics[kTotal] = OfInstance(model::gpu::kMemoryTotal);
  metrics[kFree] = OfInstance(model::gpu::kMemoryFree);
  metrics[kUsed] = OfInstance(model::gpu::kMemoryUsed);
  metrics[kReserved] = OfInstance(model::gpu::kMemoryReserved);
  metrics[kUtilization] = OfInstance(model::gpu::kUtilization);
  for (size_t i = 0; i < kGpmCount; ++i) {
    metrics[kFirstGpm + i] = kGpmMetrics[i];
    metrics[kFirstGpm + i].scope = model::Scope::kMig;
  }
  return metrics;
}();

enum Call : size_t { kMemoryCall, kReservedCall, kUtilizationCall, kGpmCall };
constexpr auto kCalls = [] {
  std::array<CallDef, kGpmCall + 1 + kGpmCount> calls{};
  calls[kMemoryCall] = {"nvmlDeviceGetMemoryInfo of the MIG handle", kTotal, 3};
  calls[kReservedCall] = {"nvmlDeviceGetMemoryInfo_v2 of the MIG handle", kReserved, 1};
  calls[kUtilizationCall] = {"nvmlDeviceGetUtilizationRates", kUtilization, 1};
  FillGpmCalls(calls.data() + kGpmCall, kFirstGpm);
  return calls;
}();

constexpr int64_t kLookNs = 30 * base::kNsPerSecond;

// "1g.18gb" of "NVIDIA H200 MIG 1g.18gb": as the driver says it, never computed from sizes.
std::string ProfileOf(const std::string& name) {
  constexpr std::string_view kMark = "MIG ";
  const size_t at = name.rfind(kMark);
  return at == std::string::npos ? std::string() : name.substr(at + kMark.size());
}

class MigSource final : public Source {
 public:
  explicit MigSource(const SourceContext& context)
      : session_(*context.nvml),
        registry_(context.registry),
        monotonic_ns_(context.env.monotonic_ns),
        group_(context, {.metrics = kMetrics,
                         .calls = kCalls,
                         .period_ns = std::max(context.tick_ns, kGpmLeastPeriodNs),
                         .devices = &instances_,
                         .lazy = true}),
        request_(std::make_unique<NvmlGpmMetricsGet>()) {}

  ~MigSource() override {
    for (About& about : about_) about.reader.Free(session_.api());
  }

  base::Result<> Sample(model::Samples& out) override {
    session_.Maintain(out.t_ns);
    if (!session_.usable()) {
      for (About& about : about_) about.seen = false;
      LoseUnseen("NVML is released, or waits to be initialised again", out.t_ns);
      return {};
    }
    if (initialisation_ != session_.initialisation() || out.t_ns >= look_at_ns_) {
      initialisation_ = session_.initialisation();
      look_at_ns_ = out.t_ns + kLookNs;
      Look(out.t_ns);
    }
    for (size_t i = 0; i < instances_.size(); ++i) SampleInstance(i, out);
    return {};
  }

 private:
  struct About {
    size_t parent = 0;  // the GPU's place in the session
    uint32_t gpu_instance = 0;
    uint32_t prepared = 0;  // generation for which the fixed reasons were told
    bool seen = false;
    GpmReader reader;
  };

  void Look(int64_t t_ns) {
    for (About& about : about_) about.seen = false;
    for (size_t place = 0; place < session_.devices().size(); ++place) {
      Device& parent = session_.devices()[place];
      if (parent.lost || parent.excluded) continue;
      parent.mig = IsMigOn(session_.api(), parent.handle).value_or(parent.mig);
      const auto instances = ListMigInstances(session_.api(), parent.handle);
      if (!instances) continue;
      for (const MigInstance& found : *instances) Identify(place, found);
    }
    LoseUnseen("the MIG instance is gone, or its GPU is", t_ns);
  }

  // `seen` is of the last look; instances keep their place and may come back.
  void LoseUnseen(const char* why, int64_t t_ns) {
    for (size_t i = 0; i < instances_.size(); ++i) {
      if (about_[i].seen || instances_[i].lost) continue;
      instances_[i].lost = true;
      instances_[i].lost_condition = model::SeriesCondition::kSourceGone;
      instances_[i].lost_detail = why;
      group_.TellLost(instances_[i], t_ns);
    }
  }

  void Identify(size_t place, const MigInstance& found) {
    const Device& parent = session_.devices()[place];
    std::string uuid = found.uuid;
    if (uuid.empty()) {
      uuid = parent.uuid + "/" + std::to_string(found.gpu_instance) + "/" +
             std::to_string(found.compute_instance);
    }
    size_t i = 0;
    while (i < instances_.size() && instances_[i].uuid != uuid) ++i;
    if (i == instances_.size()) {
      instances_.emplace_back().uuid = uuid;
      about_.push_back({.reader = GpmReader(monotonic_ns_, kGpmCall, kFirstGpm)});
      Describe(instances_[i], parent, found);
    }
    Device& instance = instances_[i];
    About& about = about_[i];
    // Handles are used again for other instances: the UUID has said which this is.
    if (instance.generation == 0 || instance.lost || instance.handle != found.handle) {
      ++instance.generation;
    }
    instance.handle = found.handle;
    instance.index = parent.index;
    instance.lost = false;
    instance.mig = true;
    about.parent = place;
    about.gpu_instance = found.gpu_instance;
    about.seen = true;
  }

  void Describe(Device& instance, const Device& parent, const MigInstance& found) {
    const Api& api = session_.api();
    const std::string name = ReadName(api, found.handle);
    instance.attributes = {{"name", name}, {"parent_uuid", parent.uuid}};
    NvmlDeviceAttributes sizes{};
    if (api.attributes != nullptr && api.attributes(found.handle, &sizes) == kNvmlSuccess) {
      instance.attributes.emplace_back("multiprocessors", std::to_string(sizes.multiprocessors));
      instance.attributes.emplace_back("gpu_slices", std::to_string(sizes.gpu_instance_slices));
      instance.attributes.emplace_back("compute_slices",
                                       std::to_string(sizes.compute_instance_slices));
    }
    instance.entity = registry_.AddEntity(
        {.scope = model::Scope::kMig,
         .name = instance.uuid,
         .labels = {{"gpu", std::to_string(parent.index)},
                    {"uuid", instance.uuid},
                    {"gpu_instance_id", std::to_string(found.gpu_instance)},
                    {"compute_instance_id", std::to_string(found.compute_instance)},
                    {"profile", ProfileOf(name)}},
         .attributes = instance.attributes});
  }

  void SampleInstance(size_t i, model::Samples& out) {
    Device& instance = instances_[i];
    About& about = about_[i];
    if (instance.lost) return group_.TellLost(instance, out.t_ns);
    const Reading reading{session_.api(), session_, group_, instance, out};
    if (about.prepared != instance.generation) {
      about.prepared = instance.generation;
      TellFixed(i, out.t_ns);
    }
    ReadMemory(reading);
    about.reader.Sample(
        reading,
        {.parent = session_.devices()[about.parent].handle, .gpu_instance = about.gpu_instance},
        *request_);
  }

  // What can't be for this instance.
  void TellFixed(size_t i, int64_t t_ns) {
    const Device& instance = instances_[i];
    group_.Unsupported(instance, kUtilizationCall,
                       "the driver has no utilisation of MIG instances, and the GPU's is not the "
                       "instance's: see gpu.sm.active",
                       t_ns);
    for (size_t other = 0; other < i; ++other) {
      const bool same = about_[other].parent == about_[i].parent &&
                        about_[other].gpu_instance == about_[i].gpu_instance;
      if (!same || instances_[other].lost) continue;
      const std::string reason = "shares memory and counters with " + instances_[other].uuid +
                                 ", where they are: both are parts of one GPU instance";
      group_.Unsupported(instance, kMemoryCall, reason, t_ns);
      group_.Unsupported(instance, kReservedCall, reason, t_ns);
      group_.Unsupported(instance, kGpmCall, reason, t_ns);
      return;
    }
  }

  static void ReadMemory(const Reading& reading) {
    const int64_t t_ns = reading.out.t_ns;
    if (!reading.group.Due(reading.device, kMemoryCall, t_ns)) return;
    const Api& api = reading.api;
    const NvmlDevice handle = reading.device.handle;
    NvmlMemoryV2 memory{};
    memory.version = kNvmlMemoryV2Version;
    NvmlReturn rc = api.memory_v2 != nullptr ? api.memory_v2(handle, &memory)
                                             : NvmlReturn{kNvmlFunctionNotFound};
    const bool older = rc == kNvmlFunctionNotFound || rc == kNvmlArgumentVersionMismatch;
    if (older && api.memory != nullptr) {
      NvmlMemory first{};
      rc = api.memory(handle, &first);
      memory = {.version = 1,
                .total = first.total,
                .reserved = 0,
                .free = first.free,
                .used = first.used};
    }
    if (!reading.group.Took(reading.device, kMemoryCall, rc, t_ns)) return;
    constexpr double kMostBytes = 1125899906842624.0;
    const auto total = static_cast<double>(memory.total);
    reading.PutInRange(kTotal, total, 1, kMostBytes);
    reading.PutInRange(kFree, static_cast<double>(memory.free), 0, total);
    reading.PutInRange(kUsed, static_cast<double>(memory.used), 0, total);
    if (!older) reading.PutInRange(kReserved, static_cast<double>(memory.reserved), 0, total);
  }

  Session& session_;
  model::Registry& registry_;
  int64_t (*monotonic_ns_)();
  std::vector<Device> instances_;  // only grows
  std::vector<About> about_;       // of the same place
  SeriesGroup group_;
  std::unique_ptr<NvmlGpmMetricsGet> request_;
  uint32_t initialisation_ = 0;
  int64_t look_at_ns_ = 0;
};

base::Result<std::unique_ptr<Source>> Make(const SourceContext& context) {
  EPM_TRY(OpenSession(context));
  return std::unique_ptr<Source>(std::make_unique<MigSource>(context));
}

}  // namespace

const SourceDef kGpuMig{.name = "gpu.mig",
                        .summary = "memory and busy shares of MIG instances",
                        .metrics = kMetrics,
                        .tier = Tier::kTick,
                        .Make = &Make};

}  // namespace epochmeter::collect::nvml
