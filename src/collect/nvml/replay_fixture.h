// SPDX-License-Identifier: Apache-2.0
// For tests: GPU sources over the replay library, with the records they write.
#pragma once

#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "collect/nvml/nvml_sources.h"
#include "collect/nvml/session.h"

namespace epochmeter::collect::nvml {

inline std::string EnvOr(const char* name, const std::string& fallback) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : fallback;
}

inline std::string SharedRecording(const std::string& name) {
  return EnvOr("EPOCHMETER_SHARED", "../shared") + "/recordings/" + name;
}

inline std::string ReplayFolder(const std::string& variant = "") {
  return EnvOr("EPOCHMETER_BUILD_DIR", ".") + "/nvml-replay" + variant;
}

// Stands for a source that could not be made, so that its test fails and goes on.
class FailedSource final : public Source {
 public:
  explicit FailedSource(base::Error error) : error_(std::move(error)) {}
  base::Result<> Sample(model::Samples&) override { return error_; }

 private:
  base::Error error_;
};

class ReplayTest : public testing::Test {
 protected:
  // `what` is a recording folder or the text of a script; playing begins at its second `at_s`.
  // Sources of an earlier call must be gone: their session ends here.
  void Play(const std::string& what, double at_s = 0, const std::string& variant = "") {
    std::string path = what;
    if (what.front() == '{') {
      path = testing::TempDir() + "/script-" + std::to_string(getpid()) + ".json";
      std::ofstream(path) << what;
    }
    setenv("EPOCHMETER_REPLAY", path.c_str(), 1);
    const int64_t t0_ns = base::MonotonicNs() - static_cast<int64_t>(at_s * 1e9);
    setenv("EPOCHMETER_REPLAY_T0_NS", std::to_string(t0_ns).c_str(), 1);
    session_ = std::make_unique<Session>(
        LibraryOptions{.library = ReplayFolder(variant), .root = "/nonexistent"});
    context_.emplace(SourceContext{.env = env_,
                                   .registry = registry_,
                                   .sink = sink_,
                                   .tick_ns = base::kNsPerSecond,
                                   .job = job_,
                                   .nvml = session_.get()});
  }

  std::unique_ptr<Source> MakeSource(const SourceDef& def) {
    auto made = def.Make(*context_);
    if (made.ok()) return std::move(made).value();
    ADD_FAILURE() << made.error().Message();
    return std::make_unique<FailedSource>(made.error());
  }

  // One reading at second `t_s` of the test's own clock.
  model::Samples Sample(Source& source, double t_s) {
    model::Samples out{.t_ns = kBeginNs + static_cast<int64_t>(t_s * 1e9), .values = {}};
    const auto result = source.Sample(out);
    EXPECT_TRUE(result.ok());
    return out;
  }

  // The value by "name" or "name label" on the n-th device; nothing when it was not read.
  std::optional<double> Value(const model::Samples& samples, const std::string& metric,
                              size_t device = 0) const {
    if (device >= session_->devices().size()) return std::nullopt;
    for (const model::SampleValue& sample : samples.values) {
      const model::SeriesDef& series = registry_.series(sample.series);
      if (series.entity == session_->devices()[device].entity && KeyOf(series) == metric) {
        return sample.value;
      }
    }
    return std::nullopt;
  }

  static std::string KeyOf(const model::SeriesDef& series) {
    return series.metric.name + (series.metric.label.empty() ? "" : " " + series.metric.label);
  }

  // "condition: detail" of each SeriesState written for the metric on the device, in order.
  std::vector<std::string> States(const std::string& metric, size_t device = 0) const {
    std::vector<std::string> out;
    if (device >= session_->devices().size()) return out;
    for (const auto& state : Records<model::SeriesState>()) {
      const model::SeriesDef& series = registry_.series(state.series);
      if (series.entity != session_->devices()[device].entity || KeyOf(series) != metric) continue;
      out.push_back(std::string(model::SeriesConditionName(state.condition)) + ": " + state.detail);
    }
    return out;
  }

  template <typename T>
  std::vector<T> Records() const {
    std::vector<T> out;
    for (const model::Record& record : sink_.records) {
      if (const auto* wanted = std::get_if<T>(&record)) out.push_back(*wanted);
    }
    return out;
  }

  static constexpr int64_t kBeginNs = 1000 * base::kNsPerSecond;
  model::Env env_;
  JobScope job_;
  model::MemorySink sink_;
  model::Registry registry_{sink_};
  std::unique_ptr<Session> session_;
  std::optional<SourceContext> context_;
};

#define SKIP_WITHOUT(path)                                                     \
  if (!std::filesystem::exists(path)) {                                        \
    GTEST_SKIP() << "no recording at " << (path) << "; set EPOCHMETER_SHARED"; \
  }

}  // namespace epochmeter::collect::nvml
