// SPDX-License-Identifier: Apache-2.0
#include "runfile/dump.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "runfile/memory_file_system.h"
#include "runfile/record_text.h"
#include "runfile/run_writer.h"
#include "runfile/test_run.h"

namespace epochmeter::runfile {
namespace {

constexpr char kPath[] = "a.emr";

void WriteRun(MemoryFileSystem& files, uint64_t seed, int ticks, bool finish) {
  RunWriter::Options options;
  options.file_system = &files;
  options.ticks_per_seal = 40;
  auto writer = RunWriter::Create(kPath, options);
  ASSERT_TRUE(writer.ok());
  for (const model::Record& record : MakeRun(seed, ticks)) {
    (*writer)->Write(record);
    if (!std::holds_alternative<model::Samples>(record)) continue;
    ASSERT_TRUE((*writer)->Flush().ok());
  }
  if (!finish) return;
  ASSERT_TRUE((*writer)->Finish({.t_ns = 5, .reason = "exited"}).ok());
}

void ExpectIdentity(const std::string& bytes) {
  const std::string text = Dump(bytes);
  const auto back = Assemble(text);
  ASSERT_TRUE(back.ok()) << back.error().Message();
  EXPECT_TRUE(*back == bytes) << text.substr(0, 2000);
}

TEST(RecordText, GivesBackEveryRecord) {
  RandomRecords random(5);
  for (int i = 0; i < 5000; ++i) {
    const model::Record record = random.Any();
    const std::string line = RecordToText(record);
    EXPECT_EQ(line.find('\n'), std::string::npos);
    model::Record back;
    ASSERT_TRUE(RecordFromText(line, &back)) << line;
    ASSERT_EQ(back, record) << line;
  }
}

TEST(RecordText, IsReadable) {
  model::Event event{.t_ns = 5, .kind = model::EventKind::kMark, .name = "a \"b\"\n\xC3\xA9"};
  event.rank = -1;
  event.fields = {{.key = "i", .value = int64_t{5}}, {.key = "f", .value = std::nan("")}};
  EXPECT_EQ(RecordToText(event),
            "event t_ns=5 kind=mark rank=-1 epoch=- step=- name=\"a \\\"b\\\"\\n\xC3\xA9\" "
            "fields={\"i\"=i5,\"f\"=fbits:7ff8000000000000,}");
}

TEST(RecordText, RefusesWhatItWouldNotWrite) {
  model::Record record;
  for (const char* line : {"", "nothing", "log t_ns=1", "log t_ns=1 stream=1 text=\"a", "anchor x",
                           "log t_ns=1 stream=300 text=\"\"", "state t_ns=1 series=-1"}) {
    EXPECT_FALSE(RecordFromText(line, &record)) << line;
  }
}

TEST(Dump, AssemblesToTheSameBytesMainAndTailLiveAndFinished) {
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    MemoryFileSystem files;
    WriteRun(files, seed, 100, seed % 2 == 0);
    ExpectIdentity(files.Bytes(kPath));
    ExpectIdentity(files.Bytes(std::string(kPath) + ".tail"));
  }
}

TEST(Dump, ShowsChunkSetsAsRecordsAndNotAsHex) {
  MemoryFileSystem files;
  WriteRun(files, 9, 100, true);
  const std::string text = Dump(files.Bytes(kPath));
  EXPECT_EQ(text.find("hex="), std::string::npos);
  EXPECT_NE(text.find("\nchunk series=0 "), std::string::npos);
  EXPECT_NE(text.find("\nevent "), std::string::npos);
  EXPECT_NE(text.find("\nfooter sets=3"), std::string::npos);
}

TEST(Dump, AssemblesDamagedFilesToTheSameBytes) {
  MemoryFileSystem files;
  WriteRun(files, 10, 50, false);
  RandomRecords random(10);
  for (const char* path : {"a.emr", "a.emr.tail"}) {
    const std::string good = files.Bytes(path);
    for (int i = 0; i < 300; ++i) {
      std::string bytes =
          good.substr(0, random.Chance(0.3) ? random.Below(good.size()) : good.size());
      for (uint64_t flips = random.Below(4); flips > 0 && !bytes.empty(); --flips) {
        bytes[random.Below(bytes.size())] ^= static_cast<char>(1 << random.Below(8));
      }
      ExpectIdentity(bytes);
    }
  }
  ExpectIdentity("");
  ExpectIdentity("hello\nworld");
}

TEST(Assemble, NamesTheLineItCanNotRead) {
  MemoryFileSystem files;
  WriteRun(files, 11, 5, true);
  std::string text = Dump(files.Bytes(kPath));
  EXPECT_EQ(Assemble(text + "what is this\n").error().where,
            "line " + std::to_string(std::count(text.begin(), text.end(), '\n') + 1));
  EXPECT_FALSE(Assemble("emr-text 1 zstd=1\n").ok());
  EXPECT_FALSE(Assemble("").ok());
}

}  // namespace
}  // namespace epochmeter::runfile
