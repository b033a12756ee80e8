// SPDX-License-Identifier: Apache-2.0
// For tests of sources: a context over a /proc and /sys of their own, and what came of a reading.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collect/source.h"
#include "model/registry.h"

namespace epochmeter::collect {

// The folder of a fixture of the repository.
inline std::string Fixture(const std::string& name) {
  const char* root = std::getenv("EPOCHMETER_SOURCE_DIR");
  return std::string(root != nullptr ? root : ".") + "/tests/fixtures/" + name;
}

// A folder that goes with the object.
class TempFolder {
 public:
  TempFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "epochmeter-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  ~TempFolder() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }
  // Makes the folders above it too.
  void Write(const std::string& name, const std::string& text) const {
    const std::filesystem::path file = std::filesystem::path(path_) / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << text;
  }
  void Remove(const std::string& name) const {
    std::filesystem::remove_all(std::filesystem::path(path_) / name);
  }

 private:
  std::string path_;
};

// One source over a proc and sys root.
class SourceBench {
 public:
  explicit SourceBench(const std::string& proc_root, const std::string& sys_root = "/nowhere",
                       JobScope scope = {})
      : env{.proc_root = proc_root, .sys_root = sys_root}, job(std::move(scope)) {}

  SourceContext context() {
    return {
        .env = env, .registry = registry, .sink = sink, .tick_ns = base::kNsPerSecond, .job = job};
  }
  base::Result<> Make(const SourceDef& def) {
    EPM_ASSIGN(source, def.Make(context()));
    return {};
  }
  // Reads at `t_s` and remembers the values.
  base::Result<> Sample(double t_s) {
    last = {.t_ns = static_cast<int64_t>(t_s * 1e9), .values = {}};
    return source->Sample(last);
  }

  // The value of the last reading, by entity name and field.
  std::optional<double> Value(const std::string& entity, const std::string& field) const {
    for (const model::SampleValue& value : last.values) {
      const model::SeriesDef& series = registry.series(value.series);
      if (series.metric.field == field && registry.entity(series.entity).name == entity) {
        return value.value;
      }
    }
    return std::nullopt;
  }
  // The condition last told of a field's series.
  std::optional<model::SeriesState> State(const std::string& field) const {
    std::optional<model::SeriesState> found;
    for (const model::Record& record : sink.records) {
      const auto* state = std::get_if<model::SeriesState>(&record);
      if (state && registry.series(state->series).metric.field == field) found = *state;
    }
    return found;
  }

  model::Env env;
  JobScope job;
  model::MemorySink sink;
  model::Registry registry{sink};
  std::unique_ptr<Source> source;
  model::Samples last;
};

}  // namespace epochmeter::collect
