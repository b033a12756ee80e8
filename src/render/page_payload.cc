// SPDX-License-Identifier: Apache-2.0
#include "render/page_payload.h"

#include <fmt/format.h>

#include <set>

#include "base/json_writer.h"
#include "base/redact.h"
#include "render/page_parts.h"

namespace epochmeter::render {
namespace {

using base::JsonWriter;

constexpr int kPayloadVersion = 1;

void WriteMessage(std::string_view key, const model::Message& message, JsonWriter* json) {
  json->Key(key).BeginObject().Field("en", message.en).Field("zh", message.zh).EndObject();
}

// How the lines of the page came to be.
model::Message ThinningOf(const PageLimits& limits, bool curves_whole, bool steps_whole) {
  if (curves_whole && steps_whole) {
    return {.en =
                "Every sample and every step is in this page; values are rounded to less than can "
                "be seen.",
            .zh = "本页包含全部采样和全部步；数值按肉眼不可见的精度取整。"};
  }
  // Buckets are put together by whole numbers of them.
  const int64_t merged = (model::kCurveBuckets + limits.curve_buckets - 1) / limits.curve_buckets;
  const int64_t buckets = model::kCurveBuckets / merged;
  return {
      .en = fmt::format(
          "Long curves are thinned to {} parts of the run, of each of which the first, lowest, "
          "highest and last sample are kept (M4), so that spikes and gaps survive; steps are "
          "thinned likewise, and values rounded to less than can be seen. Every sample: "
          "epochmeter export.",
          buckets),
      .zh = fmt::format(
          "较长的曲线被抽稀为 {} 段，每段保留首、最低、最高和末尾的采样（M4），因此尖峰和缺口都会"
          "保留；步也按同样方式抽稀，数值按肉眼不可见的精度取整。全部采样可用 epochmeter export "
          "导出。",
          buckets)};
}

}  // namespace

std::string PagePayload(const model::Run& run, const model::Report& report,
                        const PageOptions& options, const PageLimits& limits) {
  JsonWriter json;
  json.BeginObject().Field("payload_version", kPayloadVersion);
  json.Field("lang", options.language == Language::kChinese ? "zh" : "en");
  json.Key("report");
  options.report_json.empty() ? json.Null() : json.Raw(options.report_json);
  const model::Interval recorded = run.Recorded();
  json.Key("t0_ms");
  const std::optional<int64_t> begin_ns = run.WallNs(recorded.begin_ns);
  begin_ns ? json.Int(*begin_ns / base::kNsPerMs) : json.Null();
  json.Field("duration_ms", (recorded.end_ns - recorded.begin_ns) / base::kNsPerMs);
  const bool curves_whole = WriteCurves(run, report, limits.curve_buckets, &json);
  const bool steps_whole = WriteRanks(run, report, limits.step_buckets, &json);
  WriteHappenings(run, report, limits, &json);
  WriteMessage("thinning", ThinningOf(limits, curves_whole, steps_whole), &json);
  json.EndObject();
  std::string payload = json.Take();
  base::Redactor redactor;
  if (options.redact) payload = redactor.Json(payload);
  // Known only now, so it comes last.
  JsonWriter redacted;
  redacted.BeginArray();
  for (const std::string& what : redactor.found()) redacted.String(what);
  payload.back() = ',';
  return payload + "\"redacted\":" + redacted.EndArray().text() + "}";
}

}  // namespace epochmeter::render
