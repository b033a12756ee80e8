// SPDX-License-Identifier: Apache-2.0
#include "collect/tree_roles.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "base/clock.h"
#include "base/strings.h"
#include "collect/proc_file.h"

namespace epochmeter::collect {

namespace {

constexpr int64_t kLookAgainNs = 5 * base::kNsPerSecond;
// A launcher starts its ranks within this time; a process without ranks is taken for the training
// itself only then.
constexpr int64_t kUnrankedNs = 10 * base::kNsPerSecond;
constexpr size_t kEnvironLimit = size_t{256} << 10;
constexpr size_t kCommandLimit = 4096;

std::string_view LastPart(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// Python's own helpers run the same program as their parent.
bool IsService(std::string_view command) {
  for (const std::string_view word :
       {"multiprocessing.resource_tracker", "multiprocessing.semaphore_tracker",
        "multiprocessing.forkserver", "compile_worker", "multiprocessing.managers"}) {
    if (command.find(word) != std::string_view::npos) return true;
  }
  return false;
}

}  // namespace

TreeRoles::Facts TreeRoles::Look(int proc_fd, int32_t pid) const {
  Facts facts;
  std::string text;
  if (ReadAt(proc_fd, fmt::format("{}/environ", pid).c_str(), text, kEnvironLimit) == 0) {
    facts.rank = RankOfEnviron(text);
  }
  std::string command;
  ReadAt(proc_fd, fmt::format("{}/cmdline", pid).c_str(), command, kCommandLimit);
  facts.service = IsService(command);
  char target[4096];
  const ssize_t size =
      ::readlinkat(proc_fd, fmt::format("{}/exe", pid).c_str(), target, sizeof target);
  facts.program = size > 0 ? std::string(target, static_cast<size_t>(size))
                           : command.substr(0, command.find('\0'));
  facts.wrapper = IsWrapperProgram(LastPart(facts.program));
  return facts;
}

void TreeRoles::LookAtAll(int64_t t_ns, int proc_fd, const std::vector<ProcStat>& members) {
  for (const ProcStat& stat : members) {
    auto [found, is_new] = known_.try_emplace(stat.key);
    Facts& facts = found->second;
    const bool again = facts.look_again_ns != 0 && t_ns >= facts.look_again_ns;
    if ((is_new || again) && !stat.ended()) {
      facts = Look(proc_fd, stat.key.pid);
      facts.look_again_ns = is_new ? t_ns + kLookAgainNs : 0;
    }
    facts.seen = true;
  }
  std::erase_if(known_, [](const auto& item) { return !item.second.seen; });
  for (auto& [key, facts] : known_) facts.seen = false;
}

bool TreeRoles::IsSameRank(const ProcStat& stat, const RankFacts& rank) const {
  const auto& own = Of(stat).rank;
  return own && own->order == rank.order && own->rank == rank.rank &&
         own->local_rank.has_value() == rank.local_rank.has_value();
}

// One for each rank. A launcher may have a rank of its own, by the batch system's names
// or without a local rank: then what it gives to its children counts.
std::map<int32_t, RankFacts> TreeRoles::BestRanks(const std::vector<ProcStat>& members) const {
  std::map<int32_t, RankFacts> ranks;
  std::optional<size_t> best_order;
  for (const ProcStat& stat : members) {
    const auto& rank = Of(stat).rank;
    if (rank && !stat.ended()) best_order = std::min(best_order.value_or(rank->order), rank->order);
  }
  for (const ProcStat& stat : members) {
    const auto& rank = Of(stat).rank;
    if (!rank || rank->order != best_order) continue;
    auto [found, is_new] = ranks.try_emplace(rank->rank, *rank);
    if (rank->local_rank && !found->second.local_rank) found->second = *rank;
  }
  return ranks;
}

// Of each rank the oldest process whose parent is not of it.
std::map<int32_t, const ProcStat*> TreeRoles::FindHeads(
    const std::map<int32_t, RankFacts>& ranks, const std::vector<ProcStat>& members) const {
  std::map<int32_t, const ProcStat*> by_pid, heads;
  for (const ProcStat& stat : members) by_pid[stat.key.pid] = &stat;
  for (const ProcStat& stat : members) {
    const auto& own = Of(stat).rank;
    const auto rank = own ? ranks.find(own->rank) : ranks.end();
    if (rank == ranks.end() || !IsSameRank(stat, rank->second)) continue;
    const auto parent = by_pid.find(stat.parent);
    if (parent != by_pid.end() && IsSameRank(*parent->second, rank->second)) continue;
    const ProcStat*& head = heads[rank->first];
    if (head == nullptr || stat.key.start_ticks < head->key.start_ticks) head = &stat;
  }
  return heads;
}

const ProcStat* TreeRoles::BelowWrappers(const ProcStat* head, const Children& children) const {
  while (head != nullptr && Of(*head).wrapper) {
    const auto below = children.find(head->key.pid);
    if (below == children.end()) return nullptr;
    head = *std::min_element(below->second.begin(), below->second.end(),
                             [](const ProcStat* a, const ProcStat* b) {
                               return a->key.start_ticks < b->key.start_ticks;
                             });
  }
  return head;
}

void TreeRoles::AddWorkers(const Children& children, RankProcesses& processes) const {
  const std::string& program = Of(*processes.main).program;
  std::vector<const ProcStat*> open = {processes.main};
  while (!open.empty()) {
    const auto below = children.find(open.back()->key.pid);
    open.pop_back();
    if (below == children.end()) continue;
    for (const ProcStat* child : below->second) {
      open.push_back(child);
      const Facts& facts = Of(*child);
      if (!facts.service && facts.program == program) processes.workers.push_back(child);
    }
  }
}

std::vector<RankProcesses> TreeRoles::Assign(int64_t t_ns, int proc_fd, int32_t root_pid,
                                             const std::vector<ProcStat>& members) {
  if (!began_ns_) began_ns_ = t_ns;
  LookAtAll(t_ns, proc_fd, members);
  Children children;
  for (const ProcStat& stat : members) {
    if (stat.parent != stat.key.pid) children[stat.parent].push_back(&stat);
  }
  std::vector<RankProcesses> all;
  const auto add = [&](const ProcStat* head, RankProcesses processes) {
    processes.main = BelowWrappers(head, children);
    if (processes.main == nullptr) return;
    AddWorkers(children, processes);
    all.push_back(std::move(processes));
  };
  const auto ranks = BestRanks(members);
  for (const auto& [number, head] : FindHeads(ranks, members)) {
    add(head, {.rank = number,
               .local_rank = ranks.at(number).local_rank,
               .main = nullptr,
               .workers = {}});
  }
  if (!ranks.empty() || t_ns - *began_ns_ < kUnrankedNs) return all;
  for (const ProcStat& stat : members) {
    if (stat.key.pid == root_pid) add(&stat, {});
  }
  return all;
}

}  // namespace epochmeter::collect
