// SPDX-License-Identifier: Apache-2.0
#include <sys/resource.h>

#include "collect/checks/check_list.h"
#include "collect/checks/look.h"

namespace epochmeter::collect {
namespace {

// DataLoader workers of torch pass descriptors around; 1024 are soon spent.
constexpr rlim_t kFewFiles = 1024;

model::CheckFacts Run(const CheckContext&) {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return {};
  const std::string count = std::to_string(files.rlim_cur);
  if (files.rlim_cur == RLIM_INFINITY || files.rlim_cur > kFewFiles) {
    return {Ok("open files: no tight limit")};
  }
  const bool too_few = files.rlim_cur < kFewFiles;
  const std::string why = "ulimit -n is " + count + "; many DataLoader workers need more";
  const std::string fix =
      "`ulimit -n " +
      std::to_string(files.rlim_max == RLIM_INFINITY ? rlim_t{65536} : files.rlim_max) +
      "` before the training";
  return {too_few ? Limited("few files may be open", why, fix)
                  : Info("at most " + count + " files may be open", why, fix)};
}

}  // namespace

const CheckDef kLimitsCheck = {.id = "host.limits", .summary = "limits of processes", .Run = Run};

}  // namespace epochmeter::collect
