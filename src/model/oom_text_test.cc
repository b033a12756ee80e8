// SPDX-License-Identifier: Apache-2.0
#include "model/oom_text.h"

#include <gtest/gtest.h>

namespace epochmeter::model {
namespace {

constexpr double kMiB = 1048576, kGiB = 1024 * kMiB;

TEST(OomText, ReadsTheNewSentenceOfPyTorch) {
  const auto oom = ParseOomText(
      "CUDA out of memory. Tried to allocate 50.00 MiB. GPU 1 has a total capacity of 139.80 GiB "
      "of which 7.12 MiB is free. Process 4711 has 20.50 GiB memory in use. Including non-PyTorch "
      "memory, this process has 119.29 GiB memory in use. Of the allocated memory 100.00 GiB is "
      "allocated by PyTorch, and 18.25 GiB is reserved by PyTorch but unallocated. If reserved but "
      "unallocated memory is large try setting ...");
  ASSERT_TRUE(oom);
  EXPECT_FALSE(oom->host);
  EXPECT_EQ(oom->asked_bytes, 50 * kMiB);
  EXPECT_EQ(oom->gpu, 1);
  EXPECT_NEAR(*oom->total_bytes, 139.80 * kGiB, 1);
  EXPECT_NEAR(*oom->free_bytes, 7.12 * kMiB, 1);
  EXPECT_NEAR(*oom->process_bytes, 119.29 * kGiB, 1);
  EXPECT_NEAR(*oom->allocated_bytes, 100 * kGiB, 1);
  EXPECT_NEAR(*oom->unallocated_bytes, 18.25 * kGiB, 1);
  ASSERT_EQ(oom->others.size(), 1U);
  EXPECT_EQ(oom->others[0].first, 4711);
  EXPECT_NEAR(oom->others[0].second, 20.5 * kGiB, 1);
}

TEST(OomText, ReadsTheOldSentencesOfPyTorch) {
  const auto oom = ParseOomText(
      "RuntimeError: CUDA out of memory. Tried to allocate 304.00 MiB (GPU 0; 8.00 GiB total "
      "capacity; 5.32 GiB already allocated; 26.00 MiB free; 7.10 GiB reserved in total by "
      "PyTorch)");
  ASSERT_TRUE(oom);
  EXPECT_EQ(oom->asked_bytes, 304 * kMiB);
  EXPECT_EQ(oom->gpu, 0);
  EXPECT_NEAR(*oom->total_bytes, 8 * kGiB, 1);
  EXPECT_NEAR(*oom->free_bytes, 26 * kMiB, 1);
  EXPECT_NEAR(*oom->unallocated_bytes, 1.78 * kGiB, 1e5);
  const auto older = ParseOomText(
      "CUDA out of memory. Tried to allocate 2.00 GiB (GPU 3; 7.93 GiB total capacity; 4.00 GiB "
      "already allocated; 22.38 MiB free; 3.50 GiB cached)");
  ASSERT_TRUE(older);
  EXPECT_EQ(older->gpu, 3);
  EXPECT_EQ(older->asked_bytes, 2 * kGiB);
}

TEST(OomText, ReadsPaddle) {
  const auto oom = ParseOomText(
      "ResourceExhaustedError: \n\nOut of memory error on GPU 2. Cannot allocate 5.500000GB memory "
      "on GPU 2, 31.250000GB memory has been allocated and available memory is only 100.500000MB.");
  ASSERT_TRUE(oom);
  EXPECT_FALSE(oom->host);
  EXPECT_EQ(oom->gpu, 2);
  EXPECT_EQ(oom->asked_bytes, 5.5 * kGiB);
  EXPECT_EQ(oom->allocated_bytes, 31.25 * kGiB);
  EXPECT_EQ(oom->free_bytes, 100.5 * kMiB);
  const auto older = ParseOomText(
      "Out of memory error on GPU 0. Cannot allocate 5.300939GB memory on GPU 0, available memory "
      "is only 4.233276GB.");
  ASSERT_TRUE(older);
  EXPECT_NEAR(*older->free_bytes, 4.233276 * kGiB, 1);
}

TEST(OomText, ReadsTensorFlowJaxAndCuda) {
  const auto tensor = ParseOomText(
      "OOM when allocating tensor with shape[64,112,112,64] and type float on "
      "/job:localhost/replica:0/task:0/device:GPU:1 by allocator GPU_1_bfc");
  ASSERT_TRUE(tensor);
  EXPECT_EQ(tensor->asked_bytes, 64.0 * 112 * 112 * 64 * 4);
  EXPECT_EQ(tensor->gpu, 1);
  const auto jax =
      ParseOomText("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 2147483648 bytes.");
  ASSERT_TRUE(jax);
  EXPECT_EQ(jax->asked_bytes, 2 * kGiB);
  EXPECT_TRUE(ParseOomText("failed to alloc: CUDA_ERROR_OUT_OF_MEMORY: out of memory"));
  EXPECT_TRUE(ParseOomText("CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate(handle)"));
}

TEST(OomText, TellsTheHostsMemoryFromTheDevices) {
  const auto oom = ParseOomText(
      "[enforce fail at alloc_cpu.cpp:75] . DefaultCPUAllocator: not enough memory: you tried to "
      "allocate 1073741824 bytes.");
  ASSERT_TRUE(oom);
  EXPECT_TRUE(oom->host);
  EXPECT_EQ(oom->asked_bytes, kGiB);
  EXPECT_TRUE(ParseOomText("numpy.core._exceptions._ArrayMemoryError: Unable to allocate 7.45 GiB "
                           "for an array")
                  ->host);
  EXPECT_TRUE(ParseOomText("slurmstepd: error: Detected 1 oom_kill event in StepId=1.0.")->host);
  EXPECT_TRUE(ParseOomText("OOM when allocating tensor with shape[8] and type float on "
                           "/job:localhost/device:CPU:0 by allocator cpu")
                  ->host);
}

TEST(OomText, OtherTextIsNone) {
  EXPECT_FALSE(ParseOomText(""));
  EXPECT_FALSE(ParseOomText("epoch 3 loss 0.2 memory 12 GiB"));
  EXPECT_FALSE(
      ParseOomText("Allocator (GPU_0_bfc) ran out of memory trying to allocate 2.00GiB. "
                   "The caller indicates that this is not a failure, but this may mean "
                   "that there could be performance gains if more memory was available."));
}

TEST(OomText, BrokenFiguresAreAbsent) {
  const auto oom = ParseOomText(
      "CUDA out of memory. Tried to allocate lots. GPU x has a total "
      "capacity of ");
  ASSERT_TRUE(oom);
  EXPECT_FALSE(oom->asked_bytes);
  EXPECT_FALSE(oom->gpu);
  EXPECT_FALSE(oom->total_bytes);
  const auto shape = ParseOomText("OOM when allocating tensor with shape[64,x] and type float");
  ASSERT_TRUE(shape);
  EXPECT_FALSE(shape->asked_bytes);
}

}  // namespace
}  // namespace epochmeter::model
