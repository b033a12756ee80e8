// SPDX-License-Identifier: Apache-2.0
// Device memory of synthetic runs, for the tests of rules.
#pragma once

#include <functional>
#include <string>

#include "diagnose/test_run.h"

namespace epochmeter::diagnose {

// An allocator that tells its figures each `period_s`, in the time of TestRun; an empty function
// stands for a figure that is never told.
struct TestAllocator {
  double period_s = 0.1;
  std::function<double(double t_s)> held = [](double) { return 4e8; };
  std::function<double(double t_s)> reserved, peak, retries;
};
void AddAllocator(TestRun& run, int32_t rank, const TestAllocator& allocator);

// A GPU whose driver tells total and reserved memory and `used`.
void AddDevice(TestRun& run, int32_t gpu, double total_bytes,
               const std::function<double(double t_s)>& used);

// A value of the finding's evidence, NaN when it is not there.
double ValueOf(const model::Finding& finding, std::string_view name, size_t evidence = 0);

}  // namespace epochmeter::diagnose
