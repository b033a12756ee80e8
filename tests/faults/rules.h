// SPDX-License-Identifier: Apache-2.0
// Which call is to fail and how. A rule is a line
//
//   CALL SUFFIX FIRST COUNT FAULT
//
// CALL    write, sync, truncate, create, open, rename, remove, lock, statfs; or `change`, which is
//         the first seven but open; or hold, magic (see FAULT).
// SUFFIX  of the path, such as .tail; * is any.
// FIRST   number of the first call that is hit, counted from 0 for this CALL in this process.
// COUNT   so many calls; or 700ms, from the first one hit on; or *, as long as the rule stands.
// FAULT   the name of an errno; short (half is written); delay=MS; rate=BYTES a second;
//         hold (of `hold`: writes reach the file with its next sync); magic=HEX (of `magic`: what
//         statfs gives as type).
// A line that is none of these is ignored.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace epochmeter::faults {

enum class CallKind {
  kWrite,
  kSync,
  kTruncate,
  kCreate,
  kRename,
  kRemove,
  kOpen,
  kLock,
  kStatfs,
  kHold,
  kMagic,
  kChange  // any of the first six
};

const char* NameOf(CallKind kind);

struct Fault {
  int error = 0;
  bool halve = false;
  bool hold = false;
  int64_t delay_ns = 0;
  int64_t bytes_per_s = 0;
  uint64_t magic = 0;
  bool any() const {
    return error != 0 || halve || hold || delay_ns > 0 || bytes_per_s > 0 || magic != 0;
  }
};

struct Rule {
  std::string line;
  CallKind kind = CallKind::kWrite;
  std::string suffix;
  uint64_t first = 0;
  uint64_t count = UINT64_MAX;
  int64_t lasts_ns = 0;  // 0: for `count` calls
  Fault fault;
};

// Calls so far.
class Counts {
 public:
  // Gives the number of this call among those of its kind.
  uint64_t Count(CallKind kind);
  // Number of the call that was counted last, as a rule for `kind` sees it.
  uint64_t Last(CallKind kind) const { return of_[static_cast<size_t>(kind)] - 1; }

 private:
  std::array<uint64_t, 12> of_{};
};

// What rules have hit so far, by their text.
struct Hits {
  uint64_t calls = 0;
  int64_t first_ns = 0;
};
using Memory = std::map<std::string, Hits>;

std::vector<Rule> ParseRules(std::string_view text);
// What happens to the call that was counted last.
Fault Choose(const std::vector<Rule>& rules, CallKind kind, const std::string& path,
             const Counts& counts, int64_t now_ns, Memory& memory);

}  // namespace epochmeter::faults
