// SPDX-License-Identifier: Apache-2.0
// Damage costs what it hits, never a wrong value, and never silently.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <utility>
#include <vector>

#include "runfile/crash_recording.h"
#include "runfile/run_reader.h"

namespace epochmeter::runfile {
namespace {

class Damaged : public testing::Test {
 protected:
  // Two chunk sets and a tail with some frames.
  void SetUp() override {
    auto writer = RunWriter::Create(kPath, OptionsFor(good_, 5));
    Recording recording(11, 14);
    recording.WriteAll(**writer);
    const auto run = OpenRun(kPath, &good_);
    ASSERT_TRUE(run.ok());
    expected_ = recording.Expected(recording.written());
    ASSERT_EQ(Fingerprint(*run), expected_);
  }

  void TearDown() override { std::printf("%d images opened\n", images_); }

  // Opens with one file replaced: what is read must be true, and what is missing reported.
  void Check(const char* path, std::string bytes, const std::string& what, bool must_open) {
    MemoryFileSystem files;
    files.CopyFrom(good_);
    files.SetBytes(path, std::move(bytes));
    ++images_;
    const auto run = OpenRun(kPath, &files);
    const auto verified = VerifyRun(kPath, &files);
    ASSERT_EQ(run.ok(), verified.ok());
    ASSERT_TRUE(run.ok() || !must_open) << what << run.error().Message();
    if (!run.ok()) return;
    EXPECT_FALSE(verified->losses.empty()) << what;
    const std::string text = Fingerprint(*run);
    ASSERT_TRUE(IsPartOf(text, expected_)) << what;
    if (text != expected_) {
      EXPECT_TRUE(std::any_of(verified->losses.begin(), verified->losses.end(),
                              [](const auto& loss) { return loss.kind.starts_with("file."); }))
          << what;
    }
  }

  MemoryFileSystem good_;
  std::string expected_;
  int images_ = 0;
};

TEST_F(Damaged, EveryFlippedByteIsReportedAndNothingElseChanges) {
  const auto before = VerifyRun(kPath, &good_);
  ASSERT_TRUE(before.ok() && before->Intact());
  for (const char* path : {kPath, kTail}) {
    const std::string good = good_.Bytes(path);
    for (size_t at = 0; at < good.size(); ++at) {
      std::string bytes = good;
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << (at % 8)));
      Check(path, std::move(bytes), std::string(path) + " byte " + std::to_string(at), true);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_F(Damaged, ZerosAnywhereAreReported) {
  const size_t step = SoakFactor() > 1 ? 1 : 97;
  for (const char* path : {kPath, kTail}) {
    const std::string good = good_.Bytes(path);
    for (size_t at = 0; at < good.size(); at += step) {
      std::string bytes = good;
      const size_t size = std::min<size_t>(4096, good.size() - at);
      bytes.replace(at, size, size, '\0');
      Check(path, std::move(bytes), std::string(path) + " zeros at " + std::to_string(at), false);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_F(Damaged, EveryCutGivesAnExactPrefixAndNamesIt) {
  for (const char* path : {kPath, kTail}) {
    const std::string good = good_.Bytes(path);
    for (size_t size = 0; size < good.size(); ++size) {
      MemoryFileSystem files;
      files.CopyFrom(good_);
      files.SetBytes(path, good.substr(0, size));
      ++images_;
      const auto run = OpenRun(kPath, &files);
      if (!run.ok()) {
        EXPECT_FALSE(run.error().Message().empty());
        continue;
      }
      ASSERT_TRUE(IsPartOf(Fingerprint(*run), expected_)) << path << " cut at " << size;
    }
  }
}

// A tail, and how many records were acknowledged at which of its sizes.
class TornTail : public testing::Test {
 protected:
  void SetUp() override {
    recording_.after_flush = [this] {
      flushes_.emplace_back(files_.Bytes(kTail).size(), recording_.acknowledged());
    };
    writer_ = RunWriter::Create(kPath, OptionsFor(files_, 600)).value();
    recording_.WriteAll(*writer_);
    tail_ = files_.Bytes(kTail);
  }

  base::Result<model::Run> OpenWith(std::string tail) {
    MemoryFileSystem files;
    files.CopyFrom(files_);
    files.SetBytes(kTail, std::move(tail));
    return OpenRun(kPath, &files);
  }
  // What whole flushes in the first `size` bytes hold.
  const std::string& ExpectedOf(size_t size) {
    size_t records = 0;
    for (const auto& [bytes, count] : flushes_) {
      if (bytes <= size) records = count;
    }
    return recording_.Expected(records);
  }
  bool IsFlush(size_t size) const {
    return std::any_of(flushes_.begin(), flushes_.end(),
                       [size](const auto& flush) { return flush.first == size; });
  }

  MemoryFileSystem files_;
  Recording recording_{12, 12};
  std::vector<std::pair<size_t, size_t>> flushes_;  // tail bytes, records
  std::unique_ptr<RunWriter> writer_;
  std::string tail_;
};

TEST_F(TornTail, IsReadUpToTheLastWholeFlush) {
  for (size_t size = 0; size <= tail_.size(); ++size) {
    const auto run = OpenWith(tail_.substr(0, size));
    ASSERT_TRUE(run.ok());
    ASSERT_EQ(Fingerprint(*run), ExpectedOf(size)) << "cut at " << size;
    ASSERT_TRUE(IsFlush(size) || size <= 300 || !run->losses.empty()) << "cut at " << size;
  }
}

TEST_F(TornTail, EndsBeforeZerosOrGarbageThatWereNeverAcknowledged) {
  RandomRecords random(12);
  const int rounds = 200 * SoakFactor();
  for (int round = 0; round < rounds; ++round) {
    const size_t size = 64 + random.Below(tail_.size() - 64 + 1);  // its header was synced
    std::string rest(random.Below(8192), '\0');
    if (round % 2 == 0) {
      for (char& c : rest) c = static_cast<char>(random.Below(256));
    }
    const auto run = OpenWith(tail_.substr(0, size) + rest);
    ASSERT_TRUE(run.ok());
    ASSERT_EQ(Fingerprint(*run), ExpectedOf(size)) << "round " << round;
  }
  std::printf("%d torn tails: each opens at its last whole flush\n", rounds);
}

TEST_F(TornTail, GarbageInsideCostsWhatItHitsAndIsReported) {
  RandomRecords random(13);
  const std::string whole = recording_.Expected(recording_.written());
  const int rounds = 200 * SoakFactor();
  for (int round = 0; round < rounds; ++round) {
    const size_t at = random.Below(tail_.size());
    std::string bytes = tail_;
    for (size_t i = at; i < std::min(at + 4096, bytes.size()); ++i) {
      bytes[i] = static_cast<char>(random.Below(256));
    }
    const auto run = OpenWith(std::move(bytes));
    ASSERT_TRUE(run.ok());
    const std::string text = Fingerprint(*run);
    ASSERT_TRUE(IsPartOf(ExpectedOf(at), text)) << "round " << round;
    ASSERT_TRUE(IsPartOf(text, whole)) << "round " << round;
    ASSERT_FALSE(run->losses.empty()) << "round " << round;
  }
  std::printf("%d tails with garbage inside: each reported, the rest read\n", rounds);
}

}  // namespace
}  // namespace epochmeter::runfile
