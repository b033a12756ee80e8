// SPDX-License-Identifier: Apache-2.0
// Days of a recording at full speed: memory stays flat, the file grows by the same each day, and a
// reader reads what it needs. bench/week_bench --soak is the long form.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>

#include "runfile/no_sync_file_system.h"
#include "runfile/run_reader.h"
#include "runfile/run_writer.h"

namespace epochmeter::runfile {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int kTicksPerDay = 86'400, kDays = 3, kSeries = 4;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kMemoryIsOurs = false;  // the sanitizer keeps freed memory
#else
constexpr bool kMemoryIsOurs = true;
#endif

int64_t RssKib() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    int64_t kib = 0;
    if (word == "VmRSS:" && status >> kib) return kib;
  }
  return 0;
}

class Endurance : public testing::Test {
 protected:
  Endurance()
      : path_(std::filesystem::temp_directory_path() /
              ("endurance_" + std::to_string(::getpid()) + ".emr")) {}
  ~Endurance() override { std::filesystem::remove(path_); }

  void Define(RunWriter& writer) {
    writer.Write(model::EntityDef{.id = 0, .name = "gpu"});
    for (uint32_t id = 0; id < kSeries; ++id) {
      model::SeriesDef def{.id = id, .entity = 0, .period_ns = kSecond};
      def.metric.resolution = id == 3 ? 1e-4 : 1;
      writer.Write(def);
    }
  }

  void WriteDay(RunWriter& writer, int day) {
    for (int tick = 0; tick < kTicksPerDay; ++tick) {
      const int64_t at = int64_t{day} * kTicksPerDay + tick;
      model::Samples samples{.t_ns = at * kSecond, .values = {}};
      const double noise = static_cast<double>(at * 2654435761 % 4294967296) / 4294967296;
      samples.values = {{.series = 0, .value = 7},
                        {.series = 1, .value = std::round(1000 * noise)},
                        {.series = 2, .value = static_cast<double>(at * 100) + noise},
                        {.series = 3, .value = noise}};
      writer.Write(samples);
      if (tick % 20 == 0) {
        writer.Write(model::Event{.t_ns = at * kSecond,
                                  .kind = model::EventKind::kStep,
                                  .rank = 0,
                                  .step = at,
                                  .fields = {{.key = "duration_s", .value = 20 + noise}}});
      }
      ASSERT_TRUE(writer.Flush().ok());
    }
  }

  std::string path_;
  NoSyncFileSystem files_;
};

TEST_F(Endurance, DaysCostNoMemoryAndTheSameSizeEach) {
  auto writer = RunWriter::Create(path_, {.file_system = &files_});
  ASSERT_TRUE(writer.ok()) << writer.error().Message();
  Define(**writer);
  std::vector<int64_t> rss_kib;
  std::vector<uintmax_t> bytes;
  for (int day = 0; day < kDays; ++day) {
    WriteDay(**writer, day);
    rss_kib.push_back(RssKib());
    bytes.push_back(std::filesystem::file_size(path_));
  }
  ASSERT_TRUE((*writer)->Finish({.t_ns = int64_t{kDays} * kTicksPerDay * kSecond}).ok());
  if (kMemoryIsOurs) {
    EXPECT_LE(rss_kib.back(), rss_kib.front() + 1024);
  }
  const auto model = static_cast<double>(bytes.front()) * kDays;
  EXPECT_NEAR(static_cast<double>(bytes.back()), model, 0.1 * model);

  const auto run = OpenRunWithoutEvents(path_, &files_);
  ASSERT_TRUE(run.ok()) << run.error().Message();
  EXPECT_TRUE(run->steps.empty());
  const uint64_t before = files_.read_bytes();
  const model::Interval day{kTicksPerDay * kSecond, 2 * kTicksPerDay * kSecond - 1};
  const auto column = run->store->Read(1, day);
  ASSERT_TRUE(column.ok());
  EXPECT_EQ(column->value.size(), size_t{kTicksPerDay});
  EXPECT_LT(files_.read_bytes() - before, bytes.back() / 3);
  const auto whole = OpenRun(path_, &files_);
  ASSERT_TRUE(whole.ok());
  EXPECT_EQ(whole->steps.at(0).size(), size_t{kDays} * kTicksPerDay / 20);
}

}  // namespace
}  // namespace epochmeter::runfile
