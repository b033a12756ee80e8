// SPDX-License-Identifier: Apache-2.0
#include "ingest/log/skeleton.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace epochmeter::ingest::log {
namespace {

// From memory that ends where the text does.
Skeleton Read(const std::string& text) {
  const std::unique_ptr<char[]> exact(new char[text.size() + 1]);
  std::memcpy(exact.get(), text.data(), text.size());
  Skeleton skeleton;
  ReadSkeleton(std::string_view(exact.get(), text.size()), &skeleton);
  return skeleton;
}

std::vector<uint32_t> Places(const std::string& text) {
  const Skeleton skeleton = Read(text);
  return {skeleton.begin.begin(), skeleton.begin.begin() + skeleton.numbers};
}

TEST(Skeleton, LinesThatDifferInNumbersAndPaddingAreAlike) {
  const uint64_t hash = Read("Epoch [1][ 20/500] lr: 0.001 loss: 2.5 top5 x").hash;
  EXPECT_EQ(Read("Epoch [12][ 100/500] lr: 1e-05 loss: -0.25 top5 x").hash, hash);
  EXPECT_EQ(Read("Epoch [1][    20/500] lr:   0.001 loss: 2.5 top5 x").hash, hash);
  EXPECT_NE(Read("Epoch [1][ 20/500] lr: 0.001 loss: 2.5 top1 x").hash, hash);
  EXPECT_NE(Read("Epoch [1][ 20/500] lr: 0.001 Loss: 2.5 top5 x").hash, hash);
}

TEST(Skeleton, WhereANumberIsMissingIsSeen) {
  EXPECT_NE(Read("1,,3").hash, Read("1,3,").hash);
  EXPECT_NE(Read("1,,3").hash, Read(",1,3").hash);
  EXPECT_NE(Read("a: 1").hash, Read("a: ").hash);
}

TEST(Skeleton, EachNumberHasItsPlace) {
  EXPECT_EQ(Places("step 12/300, lr=-1.5e-05"), (std::vector<uint32_t>{5, 8, 16}));
  EXPECT_EQ(Places("top5 a_1 b@2: 7"), (std::vector<uint32_t>{14}));
  EXPECT_TRUE(Places("no number").empty());
}

// Blocks of 64 bytes are looked at at once.
TEST(Skeleton, ANumberOverTheEndOfABlockIsOne) {
  const std::string tail = " step";
  for (size_t begin = 40; begin < 90; ++begin) {
    const std::string words(begin, 'w');
    const std::string text = words + ": 1234567.891" + tail;
    EXPECT_EQ(Places(text), std::vector<uint32_t>{static_cast<uint32_t>(begin + 2)}) << begin;
    EXPECT_EQ(Read(text).hash, Read(words + ": 7" + tail).hash) << begin;
  }
}

TEST(Skeleton, LongLinesAreReadToTheirEnd) {
  std::string text;
  for (int i = 0; i < 2000; ++i)
    text += "key" + std::string(1, static_cast<char>('a' + i % 26)) + "=1 ";
  const Skeleton whole = Read(text);
  EXPECT_EQ(whole.numbers, Skeleton::kMostNumbers);
  EXPECT_NE(Read(text + "x").hash, whole.hash);
  std::string other = text;
  other[other.size() - 5] = '_';
  EXPECT_NE(Read(other).hash, whole.hash);
}

}  // namespace
}  // namespace epochmeter::ingest::log
