// SPDX-License-Identifier: Apache-2.0
// For tests: a file is written, imported and becomes a run.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "ingest/importers.h"
#include "model/run_builder.h"

namespace epochmeter::ingest {

using model::Scope;
using model::SeriesCondition;

inline constexpr int64_t kSecond = 1'000'000'000;
// 2026-08-24T10:11:12Z
inline constexpr int64_t kWall = 1787566272 * kSecond;

class ForeignImport : public testing::Test {
 protected:
  void SetUp() override { SetZone("UTC"); }
  void TearDown() override {
    std::filesystem::remove(path_);
    SetZone("UTC");
  }
  static void SetZone(const char* zone) {
    setenv("TZ", zone, 1);
    tzset();
  }

  // Writes the text as a file that was last changed at `modified`.
  void Write(const std::string& text, int64_t modified_s = 1787566300) {
    std::ofstream(path_, std::ios::binary) << text;
    const timespec times[2] = {{.tv_sec = modified_s, .tv_nsec = 0},
                               {.tv_sec = modified_s, .tv_nsec = 0}};
    utimensat(AT_FDCWD, path_.c_str(), times, 0);
  }
  void Import(const std::string& text, const ImportOptions& options = {}) {
    Write(text);
    const auto head = ReadSourceHead(path_);
    ASSERT_TRUE(head.ok());
    const auto found = RecogniseSource(*head);
    ASSERT_EQ(found.size(), 1U);
    format_ = found[0]->name;
    Import(*found[0], options);
  }
  void ImportAs(std::string_view format, const std::string& text,
                const ImportOptions& options = {}) {
    Write(text);
    Import(*FindImporter(format), options);
  }
  void Import(const ImporterDef& importer, const ImportOptions& options) {
    model::MemorySink sink;
    const auto summary = importer.Import(path_, options, sink);
    ASSERT_TRUE(summary.ok()) << summary.error().Message();
    summary_ = *summary;
    model::RunBuilder builder;
    for (const auto& record : sink.records) builder.Write(record);
    run_ = builder.Finish();
  }

  const model::EntityDef* Entity(Scope scope, std::string_view name) const {
    for (const auto& entity : run_.entities) {
      if (entity.scope == scope && entity.name == name) return &entity;
    }
    return nullptr;
  }
  std::optional<model::SeriesId> Series(std::string_view name, std::string_view field) const {
    for (const auto& entity : run_.entities) {
      if (entity.name == name) return run_.FindSeries(entity.id, field);
    }
    return std::nullopt;
  }
  std::vector<double> Values(std::string_view name, std::string_view field) const {
    const auto series = Series(name, field);
    return series ? run_.store->Read(*series, {}).value().value : std::vector<double>{};
  }
  std::vector<int64_t> Times(std::string_view name, std::string_view field) const {
    const auto series = Series(name, field);
    return series ? run_.store->Read(*series, {}).value().t_ns : std::vector<int64_t>{};
  }
  const model::Loss* Loss(std::string_view kind) const {
    for (const auto& loss : run_.losses) {
      if (loss.kind == kind) return &loss;
    }
    return nullptr;
  }
  std::optional<SeriesCondition> LastCondition(std::string_view name,
                                               std::string_view field) const {
    const auto series = Series(name, field);
    std::optional<SeriesCondition> last;
    for (const auto& state : run_.states) {
      if (series && state.series == *series) last = state.condition;
    }
    return last;
  }

  const std::string path_ = testing::TempDir() + "/foreign_import_" + std::to_string(getpid());
  std::string_view format_;
  ImportSummary summary_;
  model::Run run_;
};

using Doubles = std::vector<double>;

}  // namespace epochmeter::ingest
