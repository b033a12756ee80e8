// SPDX-License-Identifier: Apache-2.0
#include "ingest/recording_log.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <limits>

#include "base/clock.h"
#include "base/strings.h"
#include "ingest/wall_time.h"

namespace epochmeter::ingest {
namespace {

constexpr int64_t kQuarterHourNs = 900 * base::kNsPerSecond;
constexpr int kMostQuarterHours = 14 * 4;  // the zones of the world
// The log may begin before the first sample and end after the last.
constexpr int64_t kSlackNs = 300 * base::kNsPerSecond;
constexpr size_t kGlogSearch = 16;

std::optional<int64_t> Combine(std::optional<int64_t> day_ns, std::optional<int64_t> time_ns) {
  if (!day_ns || !time_ns) return std::nullopt;
  return *day_ns + *time_ns;
}

std::optional<int64_t> IsoStampNs(std::string_view line) {
  const auto year = Digits(line, 0, 4);
  const auto month = Digits(line, 5, 2);
  const auto day = Digits(line, 8, 2);
  if (!year || !month || !day || line[4] != '-' || line[7] != '-') return std::nullopt;
  if (line.size() < 11 || (line[10] != ' ' && line[10] != 'T')) return std::nullopt;
  return Combine(DayNs(*year, *month, *day), TimeOfDayNs(line, 11));
}

std::optional<int64_t> GlogStampNs(std::string_view line, int year) {
  for (size_t at = 0; at < std::min(line.size(), kGlogSearch); ++at) {
    if (std::string_view("IWEF").find(line[at]) == std::string_view::npos) continue;
    if (at > 0 && line[at - 1] != '[' && line[at - 1] != ' ') continue;
    const auto month = Digits(line, at + 1, 2);
    const auto day = Digits(line, at + 3, 2);
    if (!month || !day || at + 6 > line.size() || line[at + 5] != ' ') continue;
    const auto stamp = Combine(DayNs(year, *month, *day), TimeOfDayNs(line, at + 6));
    if (stamp) return stamp;
  }
  return std::nullopt;
}

// The zone, as ns to subtract from a stamp, in which the most stamps fall into the recording.
std::optional<int64_t> FindZone(const std::vector<std::optional<int64_t>>& stamps, int64_t begin,
                                int64_t end) {
  std::optional<int64_t> best;
  int64_t most = 0;
  // From UTC outwards, so that the nearest of equals is taken.
  for (int step = 0; step <= 2 * kMostQuarterHours; ++step) {
    const int quarters = step % 2 == 0 ? step / 2 : -(step + 1) / 2;
    const int64_t zone = quarters * kQuarterHourNs;
    const auto fits = std::count_if(stamps.begin(), stamps.end(), [&](const auto& stamp) {
      return stamp && *stamp - zone >= begin && *stamp - zone <= end;
    });
    if (fits > most) {
      most = fits;
      best = zone;
    }
  }
  return best;
}

int YearOf(int64_t wall_ns) {
  const std::chrono::sys_days days(std::chrono::days(wall_ns / (86400LL * base::kNsPerSecond)));
  return static_cast<int>(std::chrono::year_month_day(days).year());
}

}  // namespace

std::optional<int64_t> LogStampNs(std::string_view line, int year) {
  const auto iso = IsoStampNs(line);
  return iso ? iso : GlogStampNs(line, year);
}

std::vector<LogLine> PlaceLog(const std::vector<std::string>& lines, int64_t offset_ns,
                              int64_t begin_ns, int64_t end_ns) {
  const int year = YearOf(begin_ns + offset_ns);
  std::vector<std::optional<int64_t>> stamps;
  stamps.reserve(lines.size());
  for (const std::string& line : lines) stamps.push_back(LogStampNs(line, year));
  const int64_t from = begin_ns + offset_ns - kSlackNs;
  const int64_t to = end_ns + offset_ns + kSlackNs;
  const auto zone = FindZone(stamps, from, to);

  std::vector<LogLine> placed;
  placed.reserve(lines.size());
  std::optional<int64_t> last;
  for (size_t i = 0; i < lines.size(); ++i) {
    const bool fits = zone && stamps[i] && *stamps[i] - *zone >= from && *stamps[i] - *zone <= to;
    if (fits) {
      const int64_t t_ns = *stamps[i] - *zone - offset_ns;
      last = last ? std::max(*last, t_ns) : t_ns;
    }
    placed.push_back({.t_ns = last, .text = lines[i]});
  }
  // What stands before the first stamp was written before it.
  const auto first = std::find_if(placed.begin(), placed.end(),
                                  [](const LogLine& line) { return line.t_ns.has_value(); });
  if (first == placed.end()) return placed;
  for (auto line = placed.begin(); line != first; ++line) line->t_ns = first->t_ns;
  return placed;
}

}  // namespace epochmeter::ingest
