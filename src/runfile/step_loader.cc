// SPDX-License-Identifier: Apache-2.0
#include "runfile/step_loader.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace epochmeter::runfile {
namespace {

using model::StepTable;

// Whether a field before this one has the same key: an event tells only the first one's number.
bool IsRepeated(const model::Event& shape, size_t field) {
  const auto end = shape.fields.begin() + static_cast<std::ptrdiff_t>(field);
  return std::any_of(shape.fields.begin(), end, [&](const model::EventField& before) {
    return before.key == shape.fields[field].key;
  });
}

class StepLoader {
 public:
  StepLoader(const EventTable& events, uint64_t expected, model::RunBuilder& builder)
      : events_(events),
        expected_(expected),
        builder_(builder),
        table_of_(events.t_ns.size(), kNoTable) {}

  void Load() {
    for (const EventGroup& group : events_.groups) {
      if (group.shape.kind == model::EventKind::kStep) FindTables(group);
    }
    if (tables_.empty()) return;
    AddRows();
    for (const EventGroup& group : events_.groups) {
      if (group.shape.kind == model::EventKind::kStep) Fill(group);
    }
  }

 private:
  static constexpr size_t kNoTable = SIZE_MAX;
  static constexpr uint64_t kMostExpected = uint64_t{1} << 24;
  struct Table {
    StepTable* steps = nullptr;
    size_t rows = 0;  // with the new ones
    size_t room = 0;  // rows to make room for; 0 for a table that is there already
  };

  size_t TableOf(const model::ProcessKey& process) {
    const auto [found, is_new] = index_of_.emplace(process, tables_.size());
    if (is_new) {
      StepTable& steps = builder_.StepsOf(process);
      tables_.push_back({.steps = &steps, .rows = steps.size()});
    }
    return found->second;
  }

  // The numbers that tell processes without a rank apart; null when the steps have none.
  static const EventGroup::Field* PidOf(const EventGroup& group) {
    const auto& fields = group.shape.fields;
    const auto pid = std::find_if(fields.begin(), fields.end(),
                                  [](const model::EventField& f) { return f.key == "pid"; });
    return pid == fields.end() ? nullptr : &group.fields[static_cast<size_t>(pid - fields.begin())];
  }

  static bool OfSameProcess(const EventGroup& group, const EventGroup::Field* pid, size_t member) {
    const auto same = [member](const auto& column) {
      return column.empty() || column[member] == column[member - 1];
    };
    if (!group.ranks.empty()) return same(group.ranks);
    return pid == nullptr || (same(pid->integers) && same(pid->numbers));
  }

  // Most groups are of one process: its table is looked up once.
  void FindTables(const EventGroup& group) {
    const EventGroup::Field* const pid = PidOf(group);
    size_t table = kNoTable;
    for (size_t member = 0; member < group.members.size(); ++member) {
      if (member == 0 || !OfSameProcess(group, pid, member)) {
        table = TableOf(model::ProcessOf(EventOf(events_, group, member)));
      }
      table_of_[group.members[member]] = table;
    }
  }

  // Every step gets its row, in the order of arrival.
  void AddRows() {
    row_of_.resize(table_of_.size());
    for (size_t i = 0; i < table_of_.size(); ++i) {
      if (table_of_[i] == kNoTable) continue;
      row_of_[i] = tables_[table_of_[i]].rows++;
      builder_.Widen(events_.t_ns[i]);
    }
    for (Table& table : tables_) {
      if (table.steps->size() == 0) table.room = RoomFor(table.rows);
      table.steps->t_ns.reserve(table.room);
      table.steps->epoch.reserve(table.room);
      table.steps->step.reserve(table.room);
      table.steps->t_ns.resize(table.rows);
      table.steps->epoch.resize(table.rows, model::kNotKnown);
      table.steps->step.resize(table.rows, model::kNotKnown);
      for (auto& [key, column] : table.steps->columns) {
        column.resize(table.rows, model::kAbsentNumber);
      }
    }
  }

  // When the other events are like these.
  size_t RoomFor(size_t rows) const {
    const double part = static_cast<double>(rows) / static_cast<double>(events_.t_ns.size());
    return static_cast<size_t>(static_cast<double>(std::min(expected_, kMostExpected)) * part) + 1;
  }

  void Fill(const EventGroup& group) {
    for (size_t member = 0; member < group.members.size(); ++member) {
      const size_t at = group.members[member];
      StepTable& steps = *tables_[table_of_[at]].steps;
      steps.t_ns[row_of_[at]] = events_.t_ns[at];
      if (!group.epochs.empty()) steps.epoch[row_of_[at]] = group.epochs[member];
      if (!group.steps.empty()) steps.step[row_of_[at]] = group.steps[member];
    }
    for (size_t i = 0; i < group.fields.size(); ++i) {
      if (IsRepeated(group.shape, i)) continue;
      const std::string& key = group.shape.fields[i].key;
      FillColumn(group, key, group.fields[i].integers);
      FillColumn(group, key, group.fields[i].numbers);
    }
  }

  template <typename Number>
  void FillColumn(const EventGroup& group, const std::string& key,
                  const std::vector<Number>& numbers) {
    size_t table = kNoTable;
    double* column = nullptr;
    for (size_t member = 0; member < numbers.size(); ++member) {
      const size_t at = group.members[member];
      if (table_of_[at] != table) {
        table = table_of_[at];
        std::vector<double>& values = tables_[table].steps->columns[key];
        if (values.empty()) values.reserve(tables_[table].room);
        values.resize(tables_[table].rows, model::kAbsentNumber);
        column = values.data();
      }
      column[row_of_[at]] = static_cast<double>(numbers[member]);
    }
  }

  const EventTable& events_;
  const uint64_t expected_;
  model::RunBuilder& builder_;
  std::vector<Table> tables_;
  std::map<model::ProcessKey, size_t> index_of_;
  std::vector<size_t> table_of_, row_of_;  // of each event
};

}  // namespace

void WriteEvents(const EventTable& events, uint64_t expected, model::RunBuilder& builder) {
  StepLoader(events, expected, builder).Load();
  std::vector<std::pair<size_t, std::pair<const EventGroup*, size_t>>> others;
  for (const EventGroup& group : events.groups) {
    if (group.shape.kind == model::EventKind::kStep) continue;
    for (size_t member = 0; member < group.members.size(); ++member) {
      others.push_back({group.members[member], {&group, member}});
    }
  }
  std::sort(others.begin(), others.end());
  for (const auto& [at, place] : others) {
    builder.Write(EventOf(events, *place.first, place.second));
  }
}

}  // namespace epochmeter::runfile
