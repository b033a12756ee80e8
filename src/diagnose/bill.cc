// SPDX-License-Identifier: Apache-2.0
#include "diagnose/bill.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "base/clock.h"
#include "diagnose/bill_notes.h"
#include "diagnose/bill_sums.h"
#include "diagnose/device_time.h"
#include "diagnose/own_gpus.h"
#include "diagnose/series_walk.h"

namespace epochmeter::diagnose {
namespace {

using model::Bill;
using model::BillLine;
using model::EntityDef;
using model::Interval;
using model::TimeUse;

struct Device {
  std::optional<int32_t> gpu;
  const EntityDef* entity = nullptr;  // null when it is a rank
  std::string name;
  RanksOnDevice on;
};

const EntityDef* EntityOf(const model::Run& run, const model::GpuStats& gpu) {
  const EntityDef* same_index = nullptr;
  for (const EntityDef* entity : run.EntitiesOf(model::Scope::kGpu)) {
    if (GpuIndex(*entity) != gpu.gpu) continue;
    if (Find(entity->labels, "uuid") == gpu.uuid) return entity;
    if (same_index == nullptr) same_index = entity;
  }
  return same_index;
}

RanksOnDevice RanksOn(const Facts& facts, int32_t gpu, bool seen_in_use) {
  RanksOnDevice on;
  std::vector<uint32_t> unknown;
  for (size_t i = 0; i < facts.ranks().size(); ++i) {
    const std::vector<int32_t>& gpus = facts.ranks()[i].gpus;
    const auto rank = static_cast<uint32_t>(i);
    if (gpus.empty()) unknown.push_back(rank);
    if (std::find(gpus.begin(), gpus.end(), gpu) != gpus.end()) on.ranks.push_back(rank);
  }
  if (!on.ranks.empty()) return on;
  // One that a process of the job was seen on is not unused, whoever's it is.
  if (unknown.empty()) return {.ranks = {}, .certain = !facts.ranks().empty() && !seen_in_use};
  return {.ranks = std::move(unknown), .certain = false};
}

// What the driver calls it, under the keys that recordings and imports have; empty when not known.
std::string NameOf(const EntityDef* gpu) {
  if (gpu == nullptr) return {};
  for (const std::string_view key : {"model_name", "model", "name"}) {
    const std::string_view name = Find(gpu->attributes, key);
    if (!name.empty()) return std::string(name);
  }
  return {};
}

std::vector<Device> DevicesOf(const Facts& facts) {
  std::vector<Device> devices;
  const std::set<int32_t> used = UsedGpus(facts.run());
  for (const model::GpuStats& gpu : facts.report().gpus) {
    if (!gpu.of_job.value_or(true)) continue;
    Device device{.gpu = gpu.gpu, .entity = EntityOf(facts.run(), gpu)};
    device.name = NameOf(device.entity);
    device.on = RanksOn(facts, gpu.gpu, used.contains(gpu.gpu));
    devices.push_back(std::move(device));
  }
  if (!devices.empty()) return devices;
  for (size_t i = 0; i < facts.ranks().size(); ++i) {
    devices.push_back({.gpu = {}, .name = {}, .on = {.ranks = {static_cast<uint32_t>(i)}}});
  }
  return devices;
}

// What a GPU is measured by, walked along its timeline.
struct Walks {
  SeriesWalk counter, power, activity, throttle;
  bool by_counter = false;
};

Walks WalksOf(const Facts& facts, const EntityDef* gpu, const Timeline& timeline, BillFacts* told) {
  if (gpu == nullptr) return {SeriesWalk({}), SeriesWalk({}), SeriesWalk({}), SeriesWalk({})};
  std::vector<Piece> counter = PowerOfCounter(facts.Read(gpu->id, "energy_j"));
  std::vector<Piece> power;
  for (const std::string_view field : {"power_w", "power_average_w", "power_instant_w"}) {
    if (!power.empty()) break;
    const auto id = facts.run().FindSeries(gpu->id, field);
    if (!id) continue;
    power = PowerOfSamples(facts.Read(gpu->id, field), facts.run().series[*id].period_ns);
  }
  Activity activity = ActivityOf(facts, *gpu);
  Throttling throttling = ThrottlingOf(facts, *gpu, timeline);
  told->activity_sources.push_back(std::move(activity.source));
  told->unknown_throttling += throttling.unknown ? 1 : 0;
  const int64_t begin_ns = timeline.cuts.empty() ? 0 : timeline.cuts.front().begin_ns;
  const int64_t by_counter = SeriesWalk(counter).Take(begin_ns, timeline.end_ns).covered_ns;
  const int64_t by_power = SeriesWalk(power).Take(begin_ns, timeline.end_ns).covered_ns;
  return {SeriesWalk(std::move(counter)), SeriesWalk(std::move(power)),
          SeriesWalk(std::move(activity.pieces)), SeriesWalk(std::move(throttling.pieces)),
          by_counter > 0 && by_counter >= by_power};
}

class Builder {
 public:
  Builder(const Facts& facts, const model::Rates& rates)
      : facts_(facts), rates_(rates), wall_(facts.run().Recorded()) {
    wall_.end_ns = std::max(wall_.end_ns, wall_.begin_ns);
  }

  Bill Make() {
    for (const RankFacts& rank : facts_.ranks()) {
      ranks_.push_back(MakeRankTimeline(facts_, rank, wall_, &names_));
      told_.restarts += ranks_.back().restarts;
      told_.untold_ranks += ranks_.back().told_steps ? 0 : 1;
    }
    const std::vector<Device> devices = DevicesOf(facts_);
    Bill bill;
    const bool gpus = !devices.empty() && devices.front().gpu;
    bill.basis = gpus || facts_.ranks().empty() ? "gpu" : "rank";
    bill.wall_ns = wall_.end_ns - wall_.begin_ns;
    bill.devices = static_cast<int64_t>(devices.size());
    bill.rates = rates_;
    for (const Device& device : devices) AddDevice(device, &bill);
    Close(&bill);
    return bill;
  }

 private:
  void AddDevice(const Device& device, Bill* bill) {
    told_.shared += device.on.certain && device.on.ranks.size() > 1 ? 1 : 0;
    told_.uncertain += device.on.certain ? 0 : 1;
    DeviceTime time = TimeOfDevice(ranks_, device.on, wall_);
    Walks walks = WalksOf(facts_, device.entity, time.timeline, &told_);
    const model::GpuPrice* price = device.gpu ? FindPrice(rates_, device.name) : nullptr;
    LineSums own;
    own.line.gpu = device.gpu;
    own.line.name = device.name;
    const std::vector<Cut>& cuts = time.timeline.cuts;
    for (size_t i = 0; i < cuts.size(); ++i) {
      const int64_t end_ns = i + 1 < cuts.size() ? cuts[i + 1].begin_ns : time.timeline.end_ns;
      const Measured part = Measure(cuts[i], end_ns, price, &walks);
      own.Add(part);
      total_.Add(part);
      LineOf(cuts[i].epoch, &epochs_)->Add(part);
      LineOf(cuts[i].phase, &phases_)->Add(part);
      ShareOut(part, time.RanksOf(i));
    }
    if (device.gpu) bill->gpus.push_back(own.Finish(rates_));
  }

  static Measured Measure(const Cut& cut, int64_t end_ns, const model::GpuPrice* price,
                          Walks* walks) {
    Measured part{.use = cut.use, .ns = end_ns - cut.begin_ns, .price = price};
    const Integral counter = walks->counter.Take(cut.begin_ns, end_ns);
    const Integral power = walks->power.Take(cut.begin_ns, end_ns);
    part.counter_j = counter.value_s;
    part.counter_ns = static_cast<double>(counter.covered_ns);
    part.integral_j = power.value_s;
    part.integral_ns = static_cast<double>(power.covered_ns);
    part.by_counter = walks->by_counter;
    if (cut.use != TimeUse::kProductive) return part;
    const Integral active = walks->activity.Take(cut.begin_ns, end_ns);
    part.active_s = active.value_s;
    part.activity_ns = static_cast<double>(active.covered_ns);
    const Integral lost = walks->throttle.Take(cut.begin_ns, end_ns);
    part.throttled_ns = std::clamp<int64_t>(std::llround(lost.value_s * 1e9), 0, part.ns);
    return part;
  }

  template <typename Key>
  static LineSums* LineOf(Key key, std::map<Key, LineSums>* lines) {
    return &(*lines)[key];
  }

  void ShareOut(const Measured& part, std::span<const uint32_t> ranks) {
    constexpr uint32_t kNobody = UINT32_MAX;
    if (ranks.empty()) LineOf(kNobody, &of_ranks_)->Add(part);
    for (size_t i = 0; i < ranks.size(); ++i) {
      LineOf(ranks[i], &of_ranks_)->Add(part.Share(i, ranks.size()));
    }
  }

  void Close(Bill* bill) {
    bill->total = total_.Finish(rates_);
    for (auto& [epoch, sums] : epochs_) {
      if (epoch != model::kNotKnown) sums.line.epoch = epoch;
      if (sums.HasTime()) bill->epochs.push_back(sums.Finish(rates_));
    }
    // Outside of epochs (the smallest number) comes last.
    if (!bill->epochs.empty() && !bill->epochs.front().epoch) {
      std::rotate(bill->epochs.begin(), bill->epochs.begin() + 1, bill->epochs.end());
    }
    for (auto& [phase, sums] : phases_) {
      sums.line.name = names_.names()[phase];
      if (sums.HasTime()) bill->phases.push_back(sums.Finish(rates_));
    }
    for (auto& [rank, sums] : of_ranks_) {
      if (rank < facts_.ranks().size()) {
        sums.line.rank = facts_.ranks()[rank].rank;
        sums.line.pid = facts_.ranks()[rank].pid;
        sums.line.name = facts_.ranks()[rank].name;
      }
      if (sums.HasTime()) bill->ranks.push_back(sums.Finish(rates_));
    }
    SetSources(told_, bill);
    bill->notes = BillNotes(facts_, told_, *bill);
  }

  const Facts& facts_;
  const model::Rates& rates_;
  Interval wall_;
  PhaseNames names_;
  std::vector<RankTimeline> ranks_;
  BillFacts told_;
  LineSums total_;
  std::map<int64_t, LineSums> epochs_;
  std::map<uint32_t, LineSums> phases_;
  std::map<uint32_t, LineSums> of_ranks_;
};

// Whether `text` matches a pattern of '*', '?' and letters of either case.
bool Matches(std::string_view pattern, std::string_view text) {
  size_t p = 0;
  size_t t = 0;
  size_t star = std::string_view::npos;
  size_t from = 0;
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      from = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || lower(pattern[p]) == lower(text[t]))) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++from;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace

const model::GpuPrice* FindPrice(const model::Rates& rates, std::string_view gpu_name) {
  for (const model::GpuPrice& price : rates.gpus) {
    if (Matches(price.name, gpu_name)) return &price;
  }
  return nullptr;
}

BillLine SumOfBills(const std::vector<const Bill*>& bills) {
  BillLine sum;
  sum.effective_ns = 0;
  double counter_ns = 0;
  double integral_ns = 0;
  double energy_ns = 0;
  double priced_ns = 0;
  const auto add = [](const std::optional<double>& part, std::optional<double>* whole) {
    if (part) *whole = whole->value_or(0) + *part;
  };
  for (const Bill* bill : bills) {
    const BillLine& line = bill->total;
    if (bill->basis != "gpu" || line.total_ns == 0) continue;
    for (size_t i = 0; i < model::kTimeUseCount; ++i) {
      sum.uses[i].ns += line.uses[i].ns;
      sum.uses[i].energy_j += line.uses[i].energy_j;
      sum.uses[i].cost += line.uses[i].cost;
    }
    const auto ns = static_cast<double>(line.total_ns);
    sum.total_ns += line.total_ns;
    counter_ns += line.counter_coverage_ratio * ns;
    integral_ns += line.integral_coverage_ratio * ns;
    energy_ns += line.energy_coverage_ratio * ns;
    priced_ns += line.cost_coverage_ratio * ns;
    const bool known = line.effective_ns || line.Of(TimeUse::kProductive).ns == 0;
    if (!known) sum.effective_ns.reset();
    if (sum.effective_ns) *sum.effective_ns += line.effective_ns.value_or(0);
    add(line.counter_j, &sum.counter_j);
    add(line.integral_j, &sum.integral_j);
    add(line.energy_j, &sum.energy_j);
    add(line.cost, &sum.cost);
    add(line.electricity_cost, &sum.electricity_cost);
    add(line.carbon_g, &sum.carbon_g);
  }
  if (sum.total_ns == 0) return {};
  const auto total_ns = static_cast<double>(sum.total_ns);
  sum.counter_coverage_ratio = counter_ns / total_ns;
  sum.integral_coverage_ratio = integral_ns / total_ns;
  sum.energy_coverage_ratio = energy_ns / total_ns;
  sum.cost_coverage_ratio = priced_ns / total_ns;
  return sum;
}

Bill MakeBill(const Facts& facts, const model::Rates& rates) {
  return Builder(facts, rates).Make();
}

}  // namespace epochmeter::diagnose
