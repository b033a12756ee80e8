// SPDX-License-Identifier: Apache-2.0
#include "render/live_line.h"

#include <fmt/format.h>

#include <cmath>

#include "base/clock.h"
#include "render/columns.h"

namespace epochmeter::render {
namespace {

// Collects "name=value" parts; a part that is not known leaves no trace.
class Parts {
 public:
  void Percent(const char* name, const std::optional<double>& ratio) {
    if (IsKnown(ratio)) Add(name, fmt::format("{:.0f}%", *ratio * 100));
  }
  void Gigabytes(const char* name, const std::optional<double>& bytes) {
    if (IsKnown(bytes)) Add(name, fmt::format("{:.1f}GB", *bytes / 1e9));
  }
  void Number(const char* name, const std::optional<double>& value, const char* unit,
              int decimals) {
    if (IsKnown(value)) Add(name, fmt::format("{:.{}f}{}", *value, decimals, unit));
  }
  void Add(std::string_view name, std::string_view value) {
    text_ += text_.empty() ? " " : ", ";
    text_ += fmt::format("{}={}", name, value);
  }
  const std::string& text() const { return text_; }

 private:
  static bool IsKnown(const std::optional<double>& value) { return value && std::isfinite(*value); }
  std::string text_;
};

}  // namespace

std::string LiveGpuLine(int64_t wall_ns, const LiveGpu& gpu) {
  Parts parts;
  parts.Percent("util", gpu.utilization_ratio);
  parts.Gigabytes("mem_used", gpu.memory_used_bytes);
  parts.Gigabytes("mem_total", gpu.memory_total_bytes);
  parts.Number("power", gpu.power_w, "W", 0);
  parts.Number("temp", gpu.temperature_c, "C", 0);
  parts.Percent("sm_active", gpu.sm_active_ratio);
  return fmt::format("[{}] GPU-{}:{}", base::FormatLocalTime(wall_ns), gpu.gpu, parts.text());
}

std::string LiveEpochLine(int64_t wall_ns, const LiveEpoch& epoch) {
  Parts parts;
  if (epoch.many_ranks && epoch.rank) parts.Add("rank", std::to_string(*epoch.rank));
  parts.Number("duration", epoch.duration_s, "s", 1);
  if (epoch.steps) parts.Add("steps", std::to_string(*epoch.steps));
  parts.Percent("cpu", epoch.cpu_ratio);
  parts.Gigabytes("ram", epoch.memory_used_bytes);
  parts.Percent("gpu_util", epoch.gpu_utilization_ratio);
  parts.Gigabytes("gpu_mem", epoch.gpu_memory_bytes);
  parts.Number("temp", epoch.temperature_c, "C", 0);
  for (const auto& [name, value] : epoch.scalars) {
    parts.Add(Plain(name), fmt::format("{:.5g}", value));
  }
  return fmt::format("[{}] Epoch {}:{}", base::FormatLocalTime(wall_ns), epoch.epoch, parts.text());
}

}  // namespace epochmeter::render
