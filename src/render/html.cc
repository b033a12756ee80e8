// SPDX-License-Identifier: Apache-2.0
#include "render/html.h"

#include <algorithm>

#include "render/packed.h"

namespace epochmeter::render {
namespace {

constexpr std::string_view kPlace = "<!--EPOCHMETER_PAYLOAD-->";
constexpr std::string_view kBegin = R"(<script id="epm-payload" type="application/octet-stream">)";
constexpr std::string_view kEnd = "</script>";

// With less of the run, for a page that came out `ratio` times too large; false when there is
// nothing more to leave out.
bool Reduce(double ratio, PageLimits* limits) {
  constexpr int64_t kLeastCurveBuckets = 20;
  const double by = std::clamp(1.15 * ratio, 1.3, 8.0);
  if (limits->curve_buckets <= kLeastCurveBuckets && limits->log_tail == 0) return false;
  const auto less = [by](size_t number) {
    return static_cast<size_t>(static_cast<double>(number) / by);
  };
  limits->curve_buckets = std::max(
      kLeastCurveBuckets, static_cast<int64_t>(less(static_cast<size_t>(limits->curve_buckets))));
  limits->step_buckets = less(limits->step_buckets);
  limits->log_head = less(limits->log_head);
  limits->log_tail = less(limits->log_tail);
  limits->line_bytes = std::max<size_t>(less(limits->line_bytes), 200);
  limits->events = less(limits->events);
  return true;
}

// About how large a large payload will be at least, in a fifth of the time that packing it takes;
// 0 for a small one.
base::Result<double> GuessPacked(const std::string& payload) {
  constexpr size_t kLarge = 2'000'000;
  constexpr double kLeastByQuick = 0.75;
  if (payload.size() < kLarge) return 0.0;
  EPM_ASSIGN(const std::string quick, Gzip(payload, true));
  return kLeastByQuick * static_cast<double>(quick.size());
}

}  // namespace

base::Result<std::string> RenderHtml(const model::Run& run, const model::Report& report,
                                     const PageOptions& options, uint64_t max_bytes) {
  const std::string_view page = PageTemplate();
  const size_t place = page.find(kPlace);
  EPM_CHECK(place != std::string_view::npos) << "the template has no place for the payload";
  PageLimits limits;
  const auto size_with = [&](size_t packed) {
    return page.size() + kBegin.size() + (packed + 2) / 3 * 4 + kEnd.size();
  };
  while (true) {
    const std::string payload = PagePayload(run, report, options, limits);
    EPM_ASSIGN(const double guess, GuessPacked(payload));
    const double ratio =
        static_cast<double>(size_with(static_cast<size_t>(guess))) / static_cast<double>(max_bytes);
    if (ratio > 1 && Reduce(ratio, &limits)) continue;
    EPM_ASSIGN(const std::string packed, Gzip(payload));
    const size_t size = size_with(packed.size());
    if (size <= max_bytes) {
      std::string html(page.substr(0, place));
      html.reserve(size);
      html.append(kBegin).append(Base64(packed)).append(kEnd);
      html.append(page.substr(place + kPlace.size()));
      return html;
    }
    if (!Reduce(static_cast<double>(size) / static_cast<double>(max_bytes), &limits)) {
      return base::Error{.what = "the page is larger than " + std::to_string(max_bytes) + " bytes",
                         .where = "",
                         .why = "the tables of this run alone are",
                         .what_to_do = "give a larger --max-size"};
    }
  }
}

}  // namespace epochmeter::render
