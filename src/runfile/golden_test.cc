// SPDX-License-Identifier: Apache-2.0
// Files of released versions of the format are read by this version with exactly their content.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "runfile/dump.h"
#include "runfile/golden_run.h"
#include "runfile/memory_file_system.h"
#include "runfile/recover.h"
#include "runfile/run_reader.h"
#include "runfile/test_run.h"

namespace epochmeter::runfile {
namespace {

constexpr char kPath[] = "run.emr";

std::string Fixture(const std::string& name) {
  const char* const source = std::getenv("EPOCHMETER_SOURCE_DIR");
  std::ifstream in(std::string(source != nullptr ? source : ".") + "/tests/fixtures/" + name,
                   std::ios::binary);
  std::ostringstream bytes;
  bytes << in.rdbuf();
  EXPECT_FALSE(bytes.str().empty()) << name;
  return bytes.str();
}

void ExpectContent(const model::Run& run, const model::Run& expected) {
  ExpectSameRecords(run, expected);
  ExpectSameValues(run, expected);
  RandomRecords random(3);
  ExpectSameSummaries(run, expected, random, 100);
  EXPECT_EQ(run.losses, expected.losses);
  EXPECT_EQ(run.end, expected.end);
}

TEST(GoldenFiles, AFinishedFileOfVersion10HasItsContent) {
  MemoryFileSystem files;
  files.SetBytes(kPath, Fixture("run_v1_0.emr"));
  std::vector<model::Record> records = GoldenRecords(50);
  records.emplace_back(GoldenEnd());
  const auto run = OpenRun(kPath, &files);
  ASSERT_TRUE(run.ok()) << run.error().Message();
  ExpectContent(*run, BuildRun(records));
  const auto verified = VerifyRun(kPath, &files);
  ASSERT_TRUE(verified.ok());
  EXPECT_TRUE(verified->Intact());
  EXPECT_TRUE(verified->finished);
  EXPECT_EQ(verified->chunk_sets, 3u);
}

TEST(GoldenFiles, ALiveFileOfVersion10IsReadAndClosed) {
  MemoryFileSystem files;
  files.SetBytes(kPath, Fixture("run_v1_0_live.emr"));
  files.SetBytes(std::string(kPath) + ".tail", Fixture("run_v1_0_live.emr.tail"));
  const model::Run expected = BuildRun(GoldenRecords(65));
  const auto run = OpenRun(kPath, &files);
  ASSERT_TRUE(run.ok()) << run.error().Message();
  ExpectContent(*run, expected);
  const auto recovered = RecoverRun(kPath, &files);
  ASSERT_TRUE(recovered.ok()) << recovered.error().Message();
  const auto closed = OpenRun(kPath, &files);
  ASSERT_TRUE(closed.ok());
  ExpectSameValues(*closed, expected);
}

TEST(GoldenFiles, OfVersion10ArePrintedAndPutTogetherAgain) {
  for (const char* const name : {"run_v1_0.emr", "run_v1_0_live.emr", "run_v1_0_live.emr.tail"}) {
    const std::string bytes = Fixture(name);
    const auto back = Assemble(Dump(bytes));
    ASSERT_TRUE(back.ok()) << back.error().Message();
    EXPECT_EQ(*back, bytes) << name;
  }
}

}  // namespace
}  // namespace epochmeter::runfile
