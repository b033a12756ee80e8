// SPDX-License-Identifier: Apache-2.0
#include "player.h"

#include <time.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace nvml_replay {
namespace {

int64_t ClockNs(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<int64_t>(now.tv_sec) * 1000000000 + now.tv_nsec;
}

void SleepNs(int64_t ns) {
  timespec left{static_cast<time_t>(ns / 1000000000), static_cast<long>(ns % 1000000000)};
  while (nanosleep(&left, &left) != 0) {
  }
}

void SpinNs(int64_t ns) {
  const int64_t end_ns = ClockNs(CLOCK_MONOTONIC) + ns;
  while (ClockNs(CLOCK_MONOTONIC) < end_ns) {
  }
}

// Median cost of the calls on an H200 with driver 580; everything else costs about a microsecond.
struct Cost {
  std::string_view function;
  int64_t us;
};
constexpr std::array<Cost, 16> kCosts = {{
    {"nvmlDeviceGetMemoryInfo", 9},
    {"nvmlDeviceGetMemoryInfo_v2", 11},
    {"nvmlDeviceGetComputeRunningProcesses_v3", 9},
    {"nvmlDeviceGetTotalEnergyConsumption", 3300},
    {"nvmlDeviceGetSamples", 550},
    {"nvmlGpmSampleGet", 38},
    {"nvmlGpmMetricsGet", 1900},
    {"nvmlDeviceGetClockInfo", 2},
    {"nvmlDeviceGetPowerUsage", 2},
    {"field:75", 900},
    {"field:83", 3300},
    {"field:94", 370},
    {"field:138", 1400},
    {"field:139", 1400},
    {"field:197", 370},
    {"field:198", 370},
}};

void SpendLatency(std::string_view function) {
  // This one waits for a 20 ms window inside the driver; the others keep a core busy.
  if (function == "nvmlDeviceGetPcieThroughput") return SleepNs(20800000);
  int64_t us = 1;
  for (const Cost& cost : kCosts) {
    if (cost.function == function) us = cost.us;
  }
  SpinNs(us * 1000);
}

const char* Env(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : nullptr;
}

}  // namespace

uint64_t ToU64(double value) {
  if (!(value > 0)) return 0;
  return value >= 18446744073709551615.0 ? UINT64_MAX : static_cast<uint64_t>(value);
}

int64_t WallMicros() { return ClockNs(CLOCK_REALTIME) / 1000; }

Player& Player::Get() {
  static Player player;
  return player;
}

bool Player::LoadOnce() {
  // Not unloaded by every dlclose (sanitizers keep libraries), so a new wish means a new scenario.
  std::string wish;
  for (const char* name : {"EPOCHMETER_REPLAY", "EPOCHMETER_REPLAY_T0_NS",
                           "EPOCHMETER_REPLAY_SPEED", "EPOCHMETER_REPLAY_LATENCY"}) {
    wish += std::string(Env(name) != nullptr ? Env(name) : "") + "\n";
  }
  if (references_ > 0 || (loaded_ && wish == wish_)) return true;
  loaded_ = false;
  wish_ = wish;
  std::string error = "EPOCHMETER_REPLAY is not set; name a recording folder or a script file";
  std::optional<Scenario> scenario;
  if (const char* path = Env("EPOCHMETER_REPLAY")) scenario = LoadScenario(path, &error);
  if (!scenario) {
    std::fprintf(stderr, "nvml-replay: %s\n", error.c_str());
    return false;
  }
  scenario_ = std::move(*scenario);
  handle_slots_.assign(scenario_.devices.size() + 1, 0);
  speed_ = 1.0;
  if (const char* speed = Env("EPOCHMETER_REPLAY_SPEED")) speed_ = std::strtod(speed, nullptr);
  if (!(speed_ > 0)) speed_ = 1.0;
  const char* t0 = Env("EPOCHMETER_REPLAY_T0_NS");
  t0_ns_ = t0 != nullptr ? std::strtoll(t0, nullptr, 10) : ClockNs(CLOCK_MONOTONIC);
  const char* latency = Env("EPOCHMETER_REPLAY_LATENCY");
  latency_ = latency != nullptr && std::string_view(latency) != "0";
  loaded_ = true;
  return true;
}

NvmlReturn Player::Init() {
  if (!LoadOnce()) return kNvmlDriverNotLoaded;
  ++references_;
  return kNvmlSuccess;
}

NvmlReturn Player::Shutdown() {
  if (references_ == 0) return kNvmlUninitialized;
  --references_;
  return kNvmlSuccess;
}

std::optional<size_t> Player::IndexOf(NvmlDevice device) const {
  const auto* slot = reinterpret_cast<const char*>(device);
  for (size_t i = 0; i < scenario_.devices.size(); ++i) {
    if (slot == &handle_slots_[i]) return i;
  }
  return std::nullopt;
}

NvmlDevice Player::HandleOf(size_t index) const {
  return reinterpret_cast<NvmlDevice>(const_cast<char*>(&handle_slots_[index]));
}

int64_t Player::PlayNs() const {
  return static_cast<int64_t>(static_cast<double>(ClockNs(CLOCK_MONOTONIC) - t0_ns_) * speed_);
}

const double* Player::FaultValue(size_t index, std::string_view key, int64_t play_ns) const {
  for (const Fault& fault : scenario_.faults) {
    if (fault.device >= 0 && static_cast<size_t>(fault.device) != index) continue;
    if (play_ns < fault.at_ns || play_ns - fault.at_ns >= fault.for_ns) continue;
    const auto it = fault.values.find(key);
    if (it != fault.values.end()) return &it->second;
  }
  return nullptr;
}

std::optional<double> Player::ValueAt(size_t index, std::string_view key, int64_t play_ns) const {
  if (const double* faulty = FaultValue(index, key, play_ns)) return *faulty;
  const DeviceModel& device = model(index);
  const auto it = device.tracks.find(key);
  if (it == device.tracks.end()) return std::nullopt;
  return it->second.At(std::clamp<int64_t>(play_ns, 0, scenario_.last_ns));
}

std::optional<double> Player::GpmMean(size_t index, std::string_view key, int64_t from_ns,
                                      int64_t to_ns) const {
  if (const double* faulty = FaultValue(index, key, to_ns)) return *faulty;
  const DeviceModel& device = model(index);
  const auto it = device.tracks.find(key);
  if (it == device.tracks.end()) return std::nullopt;
  if (to_ns - from_ns < scenario_.gpm_nan_under_ns) return std::nan("");
  return it->second.MeanBetween(from_ns, std::clamp<int64_t>(to_ns, 0, scenario_.last_ns));
}

std::optional<double> Player::Value(size_t index, std::string_view key) const {
  return ValueAt(index, key, PlayNs());
}

std::vector<ProcessEntry> Player::Processes(size_t index) const {
  const int64_t now_ns = std::clamp<int64_t>(PlayNs(), 0, scenario_.last_ns);
  std::vector<ProcessEntry> current;
  for (const auto& [t_ns, list] : model(index).processes) {
    if (t_ns > now_ns) break;
    current = list;
  }
  return current;
}

void Player::Spend(std::string_view function) const {
  if (latency_) SpendLatency(function);
}

std::optional<Fault> Player::TakeFault(std::string_view function, int device) {
  const int64_t now_ns = PlayNs();
  for (Fault& fault : scenario_.faults) {
    const bool acts = fault.crash || fault.hang_s > 0 || fault.return_code != 0;
    if (!acts || fault.times <= 0) continue;
    if (fault.function != "*" && fault.function != function) continue;
    if (fault.device >= 0 && fault.device != device) continue;
    if (now_ns < fault.at_ns || now_ns - fault.at_ns >= fault.for_ns) continue;
    --fault.times;
    return fault;
  }
  return std::nullopt;
}

Call::Call(std::string_view function) : player_(Player::Get()), lock_(player_.mutex()) {
  Check(function, -1);
}

Call::Call(std::string_view function, NvmlDevice device)
    : player_(Player::Get()), lock_(player_.mutex()) {
  const std::optional<size_t> index = player_.IndexOf(device);
  index_ = index.value_or(0);
  Check(function, index ? static_cast<int>(*index) : -1);
  if (rc_ == kNvmlSuccess && !index) rc_ = kNvmlInvalidArgument;
}

void Call::Check(std::string_view function, int device) {
  if (!player_.initialised()) {
    rc_ = kNvmlUninitialized;
    return;
  }
  player_.Spend(function);
  const std::optional<Fault> fault = player_.TakeFault(function, device);
  if (!fault) return;
  if (fault->crash) {
    std::signal(SIGSEGV, SIG_DFL);
    std::raise(SIGSEGV);
  }
  if (fault->hang_s > 0) SleepNs(static_cast<int64_t>(fault->hang_s * 1e9));
  rc_ = fault->return_code;
}

std::optional<uint64_t> Call::U64(std::string_view key) const {
  const std::optional<double> value = player_.Value(index_, key);
  if (!value || std::isnan(*value)) return std::nullopt;
  return ToU64(*value);
}

NvmlReturn Call::Put(std::string_view key, uint32_t* out) const {
  if (out == nullptr) return kNvmlInvalidArgument;
  const std::optional<uint64_t> value = U64(key);
  if (!value) return kNvmlNotSupported;
  *out = static_cast<uint32_t>(std::min<uint64_t>(*value, UINT32_MAX));
  return kNvmlSuccess;
}

}  // namespace nvml_replay
