// SPDX-License-Identifier: Apache-2.0
// Writing and reading back, without faults.
#include <gtest/gtest.h>

#include <cerrno>
#include <cmath>

#include "runfile/chunk_set.h"
#include "runfile/memory_file_system.h"
#include "runfile/record_codec.h"
#include "runfile/recover.h"
#include "runfile/run_files.h"
#include "runfile/run_reader.h"
#include "runfile/run_writer.h"
#include "runfile/test_run.h"

namespace epochmeter::runfile {
namespace {

constexpr char kPath[] = "a.emr";
constexpr char kTail[] = "a.emr.tail";

model::RunEnd EndAt(int64_t t_ns) {
  return {.t_ns = t_ns, .reason = "exited", .exit_code = 0, .signal = {}};
}

std::unique_ptr<RunWriter> Create(MemoryFileSystem& files, uint32_t ticks_per_seal = 600) {
  RunWriter::Options options;
  options.file_system = &files;
  options.ticks_per_seal = ticks_per_seal;
  auto writer = RunWriter::Create(kPath, options);
  EXPECT_TRUE(writer.ok()) << writer.error().Message();
  return std::move(writer).value();
}

bool IsTick(const model::Record& record) { return std::holds_alternative<model::Samples>(record); }

class RoundTrip : public testing::TestWithParam<int> {};

TEST_P(RoundTrip, GivesBackEveryRecordWhileLiveAndWhenFinished) {
  const auto seed = static_cast<uint64_t>(GetParam());
  RandomRecords random(seed);
  MemoryFileSystem files;
  const std::vector<model::Record> records = MakeRun(seed, 300);
  auto writer = Create(files, static_cast<uint32_t>(10 + random.Below(100)));
  for (const model::Record& record : records) {
    if (IsTick(record) && random.Chance(0.7)) {
      ASSERT_TRUE(writer->Flush().ok());
    }
    writer->Write(record);
  }
  ASSERT_TRUE(writer->Flush().ok());
  const model::Run expected = BuildRun(records);
  {
    const auto live = OpenRun(kPath, &files);
    ASSERT_TRUE(live.ok()) << live.error().Message();
    ExpectSameRecords(*live, expected);
    ExpectSameValues(*live, expected);
    ExpectSameSummaries(*live, expected, random, 300);
    EXPECT_EQ(live->losses, expected.losses);
    EXPECT_FALSE(live->end);
  }
  ASSERT_TRUE(writer->Finish(EndAt(expected.span.end_ns)).ok());
  const auto run = OpenRun(kPath, &files);
  ASSERT_TRUE(run.ok()) << run.error().Message();
  ExpectSameRecords(*run, expected);
  ExpectSameValues(*run, expected);
  ExpectSameSummaries(*run, expected, random, 300);
  EXPECT_EQ(run->end, EndAt(expected.span.end_ns));
  EXPECT_FALSE(files.Exists(kTail));
  const auto verified = VerifyRun(kPath, &files);
  ASSERT_TRUE(verified.ok());
  EXPECT_TRUE(verified->Intact());
  EXPECT_TRUE(verified->finished);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RoundTrip, testing::Range(1, 25));

TEST(RunFile, RoundsValuesToTheirResolutionBeforeAndAfterSealing) {
  MemoryFileSystem files;
  auto writer = Create(files);
  writer->Write(model::EntityDef{.id = 0, .name = "gpu", .labels = {}, .attributes = {}});
  model::SeriesDef def{.id = 0, .entity = 0, .period_ns = 1, .metric = {}};
  def.metric.resolution = 0.1;
  writer->Write(def);
  writer->Write(model::Samples{.t_ns = 5, .values = {{.series = 0, .value = 702.4321}}});
  ASSERT_TRUE(writer->Flush().ok());
  for (int pass = 0; pass < 2; ++pass) {
    const auto run = OpenRun(kPath, &files);
    ASSERT_TRUE(run.ok());
    EXPECT_EQ(run->store->Read(0, {})->value, std::vector<double>{702.4});
    ASSERT_TRUE(writer->Seal().ok());
  }
}

TEST(RunFile, CountsValuesThatItCanNotStoreInsteadOfInventingThem) {
  MemoryFileSystem files;
  auto writer = Create(files);
  model::SeriesDef def{.id = 0, .entity = 0, .period_ns = 1, .metric = {}};
  def.metric.resolution = 1;
  writer->Write(def);
  writer->Write(model::Samples{.t_ns = 5,
                               .values = {{.series = 0, .value = std::nan("")},
                                          {.series = 0, .value = 1e300},
                                          {.series = 9, .value = 1},
                                          {.series = 0, .value = 7}}});
  ASSERT_TRUE(writer->Finish(EndAt(6)).ok());
  const auto run = OpenRun(kPath, &files);
  ASSERT_TRUE(run.ok());
  EXPECT_EQ(run->store->Read(0, {})->value, std::vector<double>{7});
  ASSERT_EQ(run->losses.size(), 1u);
  EXPECT_EQ(run->losses[0].kind, "value.out_of_range");
  EXPECT_EQ(run->losses[0].count, 3u);
}

TEST(RunFile, CreateRefusesAnExistingFileAndKeepsAStrayTail) {
  MemoryFileSystem files;
  RunWriter::Options options;
  options.file_system = &files;
  files.SetBytes(kPath, "something");
  auto refused = RunWriter::Create(kPath, options);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, EEXIST);
  EXPECT_EQ(files.Bytes(kPath), "something");

  MemoryFileSystem with_tail;
  options.file_system = &with_tail;
  with_tail.SetBytes(kTail, "a tail");
  with_tail.SetBytes(std::string(kTail) + ".old", "an older one");
  {
    auto writer = RunWriter::Create(kPath, options);
    ASSERT_TRUE(writer.ok());
    EXPECT_EQ((*writer)->kept_tail(), std::string(kTail) + ".old.1");
    ASSERT_TRUE((*writer)->Finish(EndAt(1)).ok());
  }
  EXPECT_EQ(with_tail.Bytes(std::string(kTail) + ".old"), "an older one");
  EXPECT_EQ(with_tail.Bytes(std::string(kTail) + ".old.1"), "a tail");
  // With the main file there the tail is its own.
  with_tail.SetBytes(kTail, "its tail");
  EXPECT_FALSE(RunWriter::Create(kPath, options).ok());
  EXPECT_EQ(with_tail.Bytes(kTail), "its tail");
  options.force = true;
  auto forced = RunWriter::Create(kPath, options);
  ASSERT_TRUE(forced.ok());
  EXPECT_EQ((*forced)->kept_tail(), "");
}

TEST(RunFile, AFailedOrUnusedCreateLeavesNothingBehind) {
  for (uint64_t at = 0; at < 8; ++at) {  // what Create takes
    MemoryFileSystem files;
    RunWriter::Options options;
    options.file_system = &files;
    bool failing = false;
    files.on_operation = [&](uint64_t n) -> std::optional<MemoryFileSystem::Fault> {
      if (n != at) return {};
      failing = true;
      return MemoryFileSystem::Fault{.error = ENOSPC, .written_bytes = 10};
    };
    const bool created = RunWriter::Create(kPath, options).ok();
    EXPECT_TRUE(failing);
    EXPECT_FALSE(created) << "operation " << at;
    EXPECT_FALSE(files.Exists(kPath) || files.Exists(kTail)) << "operation " << at;
    EXPECT_FALSE(files.Exists(std::string(kTail) + ".new")) << "operation " << at;
    EXPECT_TRUE(RunWriter::Create(kPath, options).ok());
  }
  MemoryFileSystem files;
  auto writer = Create(files);
  writer->Write(MakeRun(1, 0)[0]);
  ASSERT_TRUE(writer->Flush().ok());
  writer.reset();
  EXPECT_TRUE(files.Exists(kPath) && files.Exists(kTail));
}

TEST(RunFile, DiscardRemovesWhatCreateMadeButNeverWhatAnotherRecorderWrote) {
  MemoryFileSystem files;
  auto writer = Create(files);
  for (const auto& record : MakeRun(1, 5)) writer->Write(record);
  ASSERT_TRUE(writer->Seal().ok());
  ASSERT_TRUE(writer->Discard().ok());
  writer.reset();
  EXPECT_FALSE(files.Exists(kPath) || files.Exists(kTail));
  writer = Create(files);
  for (const auto& record : MakeRun(1, 5)) writer->Write(record);
  ASSERT_TRUE(writer->Flush().ok());
  writer.reset();
  RunWriter::Options options;
  options.file_system = &files;
  auto resumed = RunWriter::Resume(kPath, options);
  ASSERT_TRUE(resumed.ok());
  EXPECT_FALSE((*resumed)->Discard().ok());
  EXPECT_TRUE(files.Exists(kPath) && files.Exists(kTail));
}

TEST(RunFile, WithoutMemoryDefinitionsAndTheEndAreStillKept) {
  MemoryFileSystem files;
  RunWriter::Options options;
  options.file_system = &files;
  options.memory_limit_bytes = 1;
  auto writer = RunWriter::Create(kPath, options);
  ASSERT_TRUE(writer.ok());
  const auto records = MakeRun(5, 20);
  for (const auto& record : records) (*writer)->Write(record);
  EXPECT_GT((*writer)->stats().dropped_records, 0u);
  ASSERT_TRUE((*writer)->Finish(EndAt(6)).ok());
  const auto run = OpenRun(kPath, &files);
  ASSERT_TRUE(run.ok());
  const model::Run expected = BuildRun(records);
  EXPECT_EQ(run->info, expected.info);
  EXPECT_EQ(run->entities, expected.entities);
  EXPECT_EQ(run->series, expected.series);
  EXPECT_EQ(run->end, EndAt(6));
  ASSERT_FALSE(run->losses.empty());
  EXPECT_NE(run->losses[0].detail.find("faster than the disk took them"), std::string::npos);
}

TEST(RunFile, ASecondWriterIsRefusedAndWritesNothing) {
  MemoryFileSystem files;
  auto writer = Create(files);
  writer->Write(MakeRun(1, 0)[0]);
  ASSERT_TRUE(writer->Flush().ok());
  const std::string main = files.Bytes(kPath), tail = files.Bytes(kTail);
  RunWriter::Options options;
  options.file_system = &files;
  options.force = true;
  EXPECT_FALSE(RunWriter::Create(kPath, options).ok());
  EXPECT_FALSE(RunWriter::Resume(kPath, options).ok());
  EXPECT_FALSE(RecoverRun(kPath, &files).ok());
  EXPECT_EQ(files.Bytes(kPath), main);
  EXPECT_EQ(files.Bytes(kTail), tail);
}

TEST(RunFile, TheTailOfAnotherRunIsReportedAndIgnored) {
  MemoryFileSystem one, two;
  auto first = Create(one);
  auto second = Create(two);
  for (const auto& record : MakeRun(1, 5)) first->Write(record);
  for (const auto& record : MakeRun(2, 5)) second->Write(record);
  ASSERT_TRUE(first->Seal().ok());
  ASSERT_TRUE(second->Flush().ok());
  one.SetBytes(kTail, two.Bytes(kTail));
  const auto run = OpenRun(kPath, &one);
  ASSERT_TRUE(run.ok());
  EXPECT_EQ(run->info->run_id, "run 1");
  EXPECT_EQ(run->losses.back().kind, "file.foreign_tail");
  ExpectSameValues(*run, BuildRun(MakeRun(1, 5)));
}

TEST(RunFile, ARunFilePastedIntoItsOwnLogIsNeverReadAsFrames) {
  MemoryFileSystem files;
  auto writer = Create(files);
  const auto records = MakeRun(3, 20);
  for (const auto& record : records) writer->Write(record);
  ASSERT_TRUE(writer->Flush().ok());
  writer->Write(model::LogText{.t_ns = 1, .stream = 1, .text = files.Bytes(kTail)});
  ASSERT_TRUE(writer->Flush().ok());
  // The header of the frame that holds the text is damaged: the search goes through the text.
  std::string tail = files.Bytes(kTail);
  const size_t last = tail.find("\xE7\xC5\x9A\xF3", files.Bytes(kTail).size() / 2 - 100);
  ASSERT_NE(last, std::string::npos);
  tail[last + 8] ^= 1;
  files.SetBytes(kTail, tail);
  const auto run = OpenRun(kPath, &files);
  ASSERT_TRUE(run.ok());
  ExpectSameValues(*run, BuildRun(records));
  EXPECT_EQ(run->events.size(), BuildRun(records).events.size());
}

TEST(RunFile, SaysWhyAPathIsNoRunFile) {
  MemoryFileSystem files;
  EXPECT_EQ(OpenRun("absent", &files).error().code, ENOENT);
  files.SetBytes("empty", "");
  EXPECT_EQ(OpenRun("empty", &files).error().why, "it is empty");
  files.SetBytes("text", std::string(100000, 'x'));
  EXPECT_EQ(OpenRun("text", &files).error().what, "not a run file");
  auto writer = Create(files);
  EXPECT_NE(OpenRun(kTail, &files).error().why.find("tail"), std::string::npos);
}

// In a section of other records too, where no definition belongs.
TEST(RunFile, DefinitionWithAnIdBeyondAnyRunIsALossAndNoTable) {
  const FileId id{1};
  base::ByteWriter other;
  EncodeRecord(model::EntityDef{.id = UINT32_MAX, .name = "x"}, other);
  EncodeRecord(model::SeriesDef{.id = UINT32_MAX - 1}, other);
  const std::string payload = EncodeChunkSet(id, {.other = other.bytes()});
  std::string file = EncodeFileHeader({.id = id});
  file += EncodeFrame({.type = FrameType::kChunkSet, .id = id}, file.size(), payload);
  MemoryFileSystem files;
  files.SetBytes(kPath, file);
  const auto run = OpenRun(kPath, &files);
  ASSERT_TRUE(run.ok());
  EXPECT_TRUE(run->entities.empty() && run->series.empty());
  EXPECT_EQ(run->losses.back().kind, "file.damaged_record");
}

// What is appended behind it would be taken for its rest.
TEST(RunFile, UnfinishedFrameBehindDamageIsCutBeforeARecoveryAppends) {
  MemoryFileSystem files;
  auto writer = Create(files);
  const auto records = MakeRun(4, 10);
  for (const auto& record : records) writer->Write(record);
  ASSERT_TRUE(writer->Seal().ok());
  writer->Write(model::LogText{.t_ns = 99, .stream = 1, .text = "in the tail"});
  ASSERT_TRUE(writer->Flush().ok());
  writer.reset();
  std::string main = files.Bytes(kPath);
  main[3] ^= 1;  // of the file header
  main.resize(main.size() - 5);
  files.SetBytes(kPath, main);
  ASSERT_TRUE(RecoverRun(kPath, &files).ok());
  const auto verified = VerifyRun(kPath, &files);
  ASSERT_TRUE(verified.ok());
  EXPECT_TRUE(verified->finished);
  const auto run = OpenRun(kPath, &files);
  ASSERT_TRUE(run.ok());
  ASSERT_FALSE(run->log.empty());
  EXPECT_EQ(run->log.back().text, "in the tail");
}

std::string Encoded(const std::vector<model::Record>& records) {
  base::ByteWriter out;
  for (const model::Record& record : records) EncodeRecord(record, out);
  return out.Take();
}

// A run that was never sealed, whose tail has these frames in this order.
void SetTail(const std::vector<std::pair<FrameHeader, std::string>>& frames,
             MemoryFileSystem* files) {
  const FileId id{1};
  files->SetBytes(kPath, EncodeFileHeader({.id = id}));
  std::string tail = EncodeFileHeader({.kind = FileKind::kTail, .id = id, .generation = 1});
  for (auto [header, payload] : frames) {
    header.id = id;
    header.generation = 1;
    tail += EncodeFrame(header, tail.size(), payload);
  }
  files->SetBytes(kTail, tail);
}

// The values and log lines before and after a recovery.
void ExpectRecoveryKeeps(size_t values, size_t log_lines, MemoryFileSystem* files) {
  for (const bool recovered : {false, true}) {
    if (recovered) {
      ASSERT_TRUE(RecoverRun(kPath, files).ok());
    }
    const auto run = OpenRun(kPath, files);
    ASSERT_TRUE(run.ok());
    EXPECT_EQ(run->log.size(), log_lines) << recovered;
    EXPECT_FALSE(run->losses.empty()) << recovered;
    size_t read = 0;
    for (const model::SeriesDef& series : run->series) {
      read += run->store->Read(series.id, {}).value().t_ns.size();
    }
    EXPECT_EQ(read, values) << recovered;
  }
}

TEST(RunFile, AFrameWithTheLastSequenceNumberIsNoSealedOne) {
  MemoryFileSystem files;
  const std::string log =
      Encoded({model::LogText{.t_ns = 1, .stream = 1, .text = "a"},
               model::Loss{.t_ns = 1, .kind = "test", .count = 1, .detail = "", .help = ""}});
  SetTail({{{.type = FrameType::kRecords, .sequence = UINT32_MAX}, log}}, &files);
  ExpectRecoveryKeeps(0, 1, &files);
}

TEST(RunFile, ASchemaFrameDefinesAndDoesNothingElse) {
  MemoryFileSystem files;
  const std::string mixed = Encoded({model::SeriesDef{.id = 0, .metric = {.resolution = 1}},
                                     model::LogText{.t_ns = 1, .stream = 1, .text = "a"},
                                     model::Samples{.t_ns = 1, .values = {{0, 5.0}}}});
  SetTail({{{.type = FrameType::kSchema}, EncodeSchemaFrame(mixed)}}, &files);
  ExpectRecoveryKeeps(0, 0, &files);
}

TEST(RunFile, ValuesBeforeTheirDefinitionOrOutOfStepsAreLossesBeforeARecoveryToo) {
  MemoryFileSystem files;
  const std::string records = Encoded({model::Samples{.t_ns = 1, .values = {{0, 5.0}}},
                                       model::SeriesDef{.id = 0, .metric = {.resolution = 1}},
                                       model::Samples{.t_ns = 2, .values = {{0, HUGE_VAL}}},
                                       model::Samples{.t_ns = 3, .values = {{0, 6.0}}}});
  SetTail({{{.type = FrameType::kRecords}, records}}, &files);
  ExpectRecoveryKeeps(1, 0, &files);
}

TEST(RunFile, OpensATailWithoutItsMainFile) {
  MemoryFileSystem files;
  auto writer = Create(files);
  const auto records = MakeRun(4, 10);
  for (const auto& record : records) writer->Write(record);
  ASSERT_TRUE(writer->Flush().ok());
  ASSERT_TRUE(files.Remove(kPath).ok());
  const auto run = OpenRun(kPath, &files);
  ASSERT_TRUE(run.ok());
  EXPECT_EQ(run->losses.back().kind, "file.missing_main");
  ExpectSameValues(*run, BuildRun(records));
}

}  // namespace
}  // namespace epochmeter::runfile
