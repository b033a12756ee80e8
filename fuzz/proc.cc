// SPDX-License-Identifier: Apache-2.0
// Texts of an odd kernel, each reader over the same bytes: names with spaces and parentheses,
// cut short, empty, huge. What is read is in the text, and a list of CPUs counts what it names.
#include <algorithm>
#include <string>

#include "base/check.h"
#include "base/strings.h"
#include "collect/cpu_affinity.h"
#include "collect/nvml/identity.h"
#include "collect/nvml/kernel_log.h"
#include "collect/pressure_file.h"
#include "collect/proc_file.h"
#include "collect/proc_pid.h"
#include "fuzz/input.h"
#include "fuzz/target.h"

namespace epochmeter::fuzz {
namespace {

void CheckInside(std::string_view part, std::string_view text) {
  const bool inside =
      part.data() >= text.data() && part.data() + part.size() <= text.data() + text.size();
  EPM_CHECK(inside) << "a view that leaves its text";
}

void CheckCpus(std::string_view text) {
  constexpr uint64_t kMost = 1 << 16;
  if (const auto ranges = collect::ParseCpuRanges(text, kMost)) {
    for (const auto& range : *ranges) EPM_CHECK(range.first <= range.last && range.last < kMost);
  }
  if (const auto count = collect::CountCpuList(text)) EPM_CHECK(*count >= 0);
  const auto set = collect::ParseCpuList(text);
  if (!set) return;
  EPM_CHECK(collect::ParseCpuList(collect::FormatCpuList(*set)) == set);
}

void CheckWalk(std::string_view text) {
  std::string_view rest = text, line, word;
  size_t lines = 0;
  while (collect::NextLine(rest, line)) {
    CheckInside(line, text);
    EPM_CHECK(++lines <= text.size() + 1);
    std::string_view words = line;
    while (collect::NextWord(words, word)) CheckInside(word, text);
    std::string_view numbers = line;
    for (int i = 0; i < 64 && !numbers.empty(); ++i) (void)collect::NextUint(numbers);
  }
}

}  // namespace

void FeedProc(std::string_view bytes) {
  if (const auto stat = collect::ParseProcStat(bytes)) {
    EPM_CHECK(bytes.find(std::to_string(stat->key.pid)) != std::string_view::npos);
    EPM_CHECK(stat->key.pid >= 0 && stat->parent >= 0);
  }
  (void)collect::ParseProcIo(bytes);
  for (const char* key : {"Pss:", "voluntary_ctxt_switches:", "MemTotal:", ""}) {
    (void)collect::NumberOfKey(bytes, key);
    if (const auto text = collect::TextOfKey(bytes, key)) CheckInside(*text, bytes);
  }
  for (const char* which : {"some", "full", ""}) (void)collect::PressureTotalUs(bytes, which);
  for (const char* name : {"RANK", "A", ""}) {
    if (const auto value = collect::EnvironValue(bytes, name)) CheckInside(*value, bytes);
  }
  CheckCpus(bytes);
  CheckWalk(bytes);
  if (const auto xid = collect::nvml::ParseKernelXid(bytes)) {
    EPM_CHECK(xid->text.size() <= 3 * bytes.size());
  }
  (void)collect::nvml::KernelModuleVersion(std::string(bytes));
  (void)collect::nvml::CudaVersionOf(std::string(bytes));
  (void)collect::nvml::SysfsBusId(std::string(bytes));
  (void)base::FormatBytes(static_cast<double>(bytes.size()));
}

}  // namespace epochmeter::fuzz
