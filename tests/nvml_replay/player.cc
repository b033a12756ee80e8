// SPDX-License-Identifier: Apache-2.0
#include "player.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "clock.h"
#include "latency.h"
#include "misbehave.h"

namespace nvml_replay {
namespace {

const char* Env(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : nullptr;
}

bool Matches(const std::string& pattern, std::string_view function) {
  if (pattern.back() != '*') return pattern == function;
  const size_t size = pattern.size() - 1;
  return function.substr(0, size) == std::string_view(pattern).substr(0, size);
}

bool AbsentAt(const DeviceModel& model, int64_t t_ns) {
  return std::any_of(model.absent.begin(), model.absent.end(),
                     [&](const Span& span) { return span.Has(t_ns); });
}

}  // namespace

uint64_t ToU64(double value) {
  if (!(value > 0)) return 0;
  return value >= 18446744073709551615.0 ? UINT64_MAX : static_cast<uint64_t>(value);
}

Player& Player::Get() {
  static Player player;
  return player;
}

bool Player::LoadOnce() {
  // Not unloaded by every dlclose (sanitizers keep libraries), so a new wish means a new scenario.
  std::string wish;
  for (const char* name :
       {"EPOCHMETER_REPLAY", "EPOCHMETER_REPLAY_T0_NS", "EPOCHMETER_REPLAY_SPEED",
        "EPOCHMETER_REPLAY_LATENCY", "EPOCHMETER_REPLAY_LOG"}) {
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
  slots_.clear();
  inits_ = 0;
  ReadSettings();
  loaded_ = true;
  return true;
}

void Player::ReadSettings() {
  speed_ = 1.0;
  if (const char* speed = Env("EPOCHMETER_REPLAY_SPEED")) speed_ = std::strtod(speed, nullptr);
  if (!(speed_ > 0)) speed_ = 1.0;
  const char* t0 = Env("EPOCHMETER_REPLAY_T0_NS");
  t0_ns_ = t0 != nullptr ? std::strtoll(t0, nullptr, 10) : MonotonicNs();
  const char* latency = Env("EPOCHMETER_REPLAY_LATENCY");
  latency_ = latency != nullptr && std::string_view(latency) != "0";
  const char* log = Env("EPOCHMETER_REPLAY_LOG");
  log_path_ = log != nullptr ? log : "";
}

NvmlReturn Player::Init() {
  if (!LoadOnce()) return kNvmlDriverNotLoaded;
  if (references_++ == 0) {
    ++inits_;
    init_play_ns_ = PlayNs();
  }
  return kNvmlSuccess;
}

NvmlReturn Player::Shutdown() {
  if (references_ == 0) return kNvmlUninitialized;
  --references_;
  return kNvmlSuccess;
}

int64_t Player::PlayNs() const {
  return static_cast<int64_t>(static_cast<double>(MonotonicNs() - t0_ns_) * speed_);
}

int64_t Player::SampleClockMicros() const {
  switch (scenario_.sample_clock) {
    case SampleClock::kMonotonic:
      return MonotonicNs() / 1000 + scenario_.sample_clock_offset_us;
    case SampleClock::kBoottime:
      return BoottimeMicros() + scenario_.sample_clock_offset_us;
    default:
      return WallMicros() + scenario_.sample_clock_offset_us;
  }
}

int64_t Player::PresenceNs() const {
  return scenario_.enumerate_at_init ? init_play_ns_ : PlayNs();
}

std::vector<size_t> Player::Enumerated() const {
  const int64_t now_ns = PresenceNs();
  std::vector<std::pair<double, size_t>> order;
  for (size_t i = 0; i < scenario_.devices.size(); ++i) {
    if (AbsentAt(scenario_.devices[i], now_ns)) continue;
    const Reading place = ReadAt({i}, "index", now_ns);
    order.emplace_back(place.code == 0 ? place.value : static_cast<double>(i), i);
  }
  std::sort(order.begin(), order.end());
  std::vector<size_t> out;
  for (const auto& [place, device] : order) out.push_back(device);
  return out;
}

// Grows when the handles of a device become stale: it was away, or NVML was initialised anew.
int64_t Player::EpochOf(size_t device) const {
  const int64_t now_ns = PlayNs();
  const DeviceModel& model = scenario_.devices[device];
  int64_t epoch = scenario_.new_handles_on_init ? inits_ : 0;
  for (const Span& span : model.absent) epoch += now_ns >= span.to_ns ? 1 : 0;
  for (const LostSpan& lost : model.lost) {
    epoch += lost.new_handle && now_ns >= lost.when.to_ns ? 1 : 0;
  }
  return epoch;
}

NvmlDevice Player::HandleOf(Unit unit) {
  const int64_t epoch = EpochOf(unit.device);
  auto slot = std::find_if(slots_.begin(), slots_.end(), [&](const Slot& known) {
    return known.unit == unit && known.epoch == epoch;
  });
  if (slot == slots_.end()) slot = slots_.insert(slots_.end(), Slot{unit, epoch});
  return reinterpret_cast<NvmlDevice>(&*slot);
}

NvmlReturn Player::Resolve(NvmlDevice handle, Unit* unit) const {
  const auto slot = std::find_if(slots_.begin(), slots_.end(), [&](const Slot& known) {
    return reinterpret_cast<NvmlDevice>(const_cast<Slot*>(&known)) == handle;
  });
  if (slot == slots_.end()) return kNvmlInvalidArgument;
  *unit = slot->unit;
  const NvmlReturn state = StateOf(slot->unit);
  if (state != kNvmlSuccess || slot->epoch == EpochOf(slot->unit.device)) return state;
  if (scenario_.stale_handle == StaleHandle::kCrash) {
    Die("segv");
  }
  const bool invalid = scenario_.stale_handle == StaleHandle::kInvalid;
  return invalid ? kNvmlInvalidArgument : kNvmlGpuIsLost;
}

NvmlReturn Player::StateOf(Unit unit) const {
  const int64_t now_ns = PlayNs();
  const DeviceModel& device = scenario_.devices[unit.device];
  if (AbsentAt(device, now_ns)) return kNvmlGpuIsLost;
  for (const LostSpan& lost : device.lost) {
    if (lost.when.Has(now_ns)) return lost.code;
  }
  // The handle of a destroyed instance.
  if (unit.instance >= 0 && AbsentAt(model(unit), now_ns)) return kNvmlInvalidArgument;
  return kNvmlSuccess;
}

const DeviceModel& Player::model(Unit unit) const {
  const DeviceModel& device = scenario_.devices[unit.device];
  return unit.instance < 0 ? device : device.instances[static_cast<size_t>(unit.instance)];
}

const Reading* Player::FaultValue(size_t device, std::string_view key, int64_t play_ns) const {
  for (const Fault& fault : scenario_.faults) {
    if (fault.device >= 0 && static_cast<size_t>(fault.device) != device) continue;
    if (play_ns < fault.at_ns || play_ns - fault.at_ns >= fault.for_ns) continue;
    const auto it = fault.values.find(key);
    if (it != fault.values.end()) return &it->second;
  }
  return nullptr;
}

Reading Player::ReadAt(Unit unit, std::string_view key, int64_t play_ns) const {
  if (const Reading* faulty = FaultValue(unit.device, key, play_ns)) return *faulty;
  const DeviceModel& shown = model(unit);
  const auto it = shown.tracks.find(key);
  if (it == shown.tracks.end()) return {0, kNvmlNotSupported};
  return it->second.At(std::clamp<int64_t>(play_ns, 0, scenario_.last_ns));
}

bool Player::HasKey(Unit unit, std::string_view key) const {
  return model(unit).tracks.find(key) != model(unit).tracks.end() ||
         FaultValue(unit.device, key, PlayNs()) != nullptr;
}

Reading Player::GpmMean(Unit unit, std::string_view key, int64_t from_ns, int64_t to_ns) const {
  if (const Reading* faulty = FaultValue(unit.device, key, to_ns)) return *faulty;
  const DeviceModel& shown = model(unit);
  const auto it = shown.tracks.find(key);
  if (it == shown.tracks.end()) return {0, kNvmlNotSupported};
  if (to_ns - from_ns < scenario_.gpm_nan_under_ns) return {std::nan(""), 0};
  return it->second.MeanBetween(from_ns, std::clamp<int64_t>(to_ns, 0, scenario_.last_ns));
}

std::vector<ProcessEntry> Player::Processes(Unit unit) const {
  const int64_t now_ns = std::clamp<int64_t>(PlayNs(), 0, scenario_.last_ns);
  const DeviceModel& shown = model(unit);
  std::vector<ProcessEntry> current;
  for (const auto& [t_ns, list] : shown.processes) {
    if (t_ns > now_ns) break;
    current = list;
  }
  current.erase(std::remove_if(current.begin(), current.end(),
                               [&](const ProcessEntry& p) { return !p.alive.Has(now_ns); }),
                current.end());
  for (ProcessEntry& process : current) {
    if (!process.used.points.empty()) process.used_bytes = ToU64(process.used.At(now_ns).value);
    if (unit.instance < 0) continue;
    process.gpu_instance = shown.gpu_instance;
    process.compute_instance = shown.compute_instance;
  }
  // A GPU lists the processes of its instances unless the script gave it a list of its own.
  if (unit.instance >= 0 || !shown.processes.empty()) return current;
  for (size_t i = 0; i < shown.instances.size(); ++i) {
    const auto own = Processes({unit.device, static_cast<int>(i)});
    current.insert(current.end(), own.begin(), own.end());
  }
  return current;
}

bool Player::MigEnabled(size_t device) const {
  const Reading mode = Read({device}, "mig_mode");
  return mode.code == 0 && mode.value != 0;
}

void Player::Spend(std::string_view function) const {
  const auto own = scenario_.latency_us.find(function);
  if (own != scenario_.latency_us.end()) return SpinNs(own->second * 1000);
  const auto any = scenario_.latency_us.find("*");
  const bool whole = function.substr(0, 4) == "nvml";
  if (any != scenario_.latency_us.end() && whole) return SpinNs(any->second * 1000);
  if (latency_) SpendMeasured(function);
}

std::optional<Fault> Player::TakeFault(std::string_view function, int device) {
  const int64_t now_ns = PlayNs();
  for (Fault& fault : scenario_.faults) {
    if (!fault.Acts() || fault.times <= 0 || !Matches(fault.function, function)) continue;
    if (fault.device >= 0 && fault.device != device) continue;
    if (now_ns < fault.at_ns || now_ns - fault.at_ns >= fault.for_ns) continue;
    if (fault.after > 0) {
      --fault.after;
      continue;
    }
    --fault.times;
    return fault;
  }
  return std::nullopt;
}

// Opened for each line, so that the lines of several processes stay whole and nothing is held open
// across a fork.
void Player::Log(std::string_view function, int device) const {
  if (log_path_.empty()) return;
  std::FILE* file = std::fopen(log_path_.c_str(), "ae");
  if (file == nullptr) return;
  std::fprintf(file, "%.6f %.*s %d\n", static_cast<double>(PlayNs()) / 1e9,
               static_cast<int>(function.size()), function.data(), device);
  std::fclose(file);
}

NvmlReturn Player::Enter(std::string_view function, int device) {
  Log(function, device);
  Spend(function);
  const std::optional<Fault> fault = TakeFault(function, device);
  corrupt_ = fault && fault->corrupt;
  if (!fault) return kNvmlSuccess;
  if (fault->garbage > 0) SendGarbage(fault->garbage);
  Die(fault->crash);
  if (std::isinf(fault->hang_s)) {
    while (fault->for_ns == INT64_MAX || PlayNs() - fault->at_ns < fault->for_ns) SleepNs(5000000);
  } else if (fault->hang_s > 0) {
    SleepNs(static_cast<int64_t>(fault->hang_s * 1e9));
  }
  return fault->return_code;
}

}  // namespace nvml_replay
