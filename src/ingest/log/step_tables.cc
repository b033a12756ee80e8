// SPDX-License-Identifier: Apache-2.0
#include "ingest/log/step_tables.h"

#include <cmath>
#include <string>
#include <string_view>

namespace epochmeter::ingest::log {
namespace {

// The value that a joined row has in a column.
double Joined(std::string_view column, double earlier, double later) {
  if (column == "ends_epoch") return later;
  const bool sum =
      column == "duration_s" || column == "data_wait_s" || column == "steps" || column == "epoch_s";
  if (sum) {
    const bool known = !model::IsAbsent(earlier) && !model::IsAbsent(later);
    return known ? earlier + later : model::kAbsentNumber;
  }
  const bool worse =
      column == "scalar.loss" && !std::isfinite(earlier) && !model::IsAbsent(earlier);
  return worse || model::IsAbsent(later) ? earlier : later;
}

constexpr std::string_view kScalar = "scalar.";

}  // namespace

std::string_view StepColumnName(StepColumn column) {
  constexpr std::array<std::string_view, kStepColumnCount> kNames = {"line",
                                                                     "file",
                                                                     "step_in_epoch",
                                                                     "batch_size",
                                                                     "scalar.loss",
                                                                     "scalar.lr",
                                                                     "scalar.throughput_per_s",
                                                                     "pid",
                                                                     "steps",
                                                                     "duration_s",
                                                                     "data_wait_s",
                                                                     "epoch_s",
                                                                     "ends_epoch"};
  return kNames[static_cast<size_t>(column)];
}

void StepAppender::Begin(model::StepTable* table, int64_t t_ns, std::optional<int64_t> epoch,
                         std::optional<int64_t> step) {
  if (table != table_) {
    table_ = table;
    known_.fill(nullptr);
    scalars_.assign(kSlots, nullptr);
  }
  table->t_ns.push_back(t_ns);
  table->epoch.push_back(epoch.value_or(model::kNotKnown));
  table->step.push_back(step.value_or(model::kNotKnown));
}

void StepAppender::Append(std::vector<double>* column, double number) const {
  const size_t before = table_->size() - 1;
  if (column->size() > before) return;
  if (column->size() < before) column->resize(before, model::kAbsentNumber);
  column->push_back(number);
}

void StepAppender::Add(StepColumn column, double number) {
  std::vector<double>*& known = known_[static_cast<size_t>(column)];
  if (known == nullptr) known = &table_->columns[std::string(StepColumnName(column))];
  Append(known, number);
}

void StepAppender::AddScalar(std::string_view key, double number) {
  const auto place = reinterpret_cast<uintptr_t>(key.data());
  Columns::value_type*& found = scalars_[(place >> 4U ^ place >> 10U) % kSlots];
  // Another key may have the same slot, or stand now where that one stood.
  if (found == nullptr || std::string_view(found->first).substr(kScalar.size()) != key) {
    found = &*table_->columns.try_emplace(std::string(kScalar) + std::string(key)).first;
  }
  Append(&found->second, number);
}

void StepAppender::Level(model::StepTable* table) {
  for (auto& [name, column] : table->columns) {
    if (column.size() < table->size()) column.resize(table->size(), model::kAbsentNumber);
  }
}

void JoinNeighbours(model::StepTable* table) {
  const size_t pairs = table->size() / 2;
  const bool odd = table->size() % 2 != 0;
  const auto shorten = [pairs, odd](auto& values, const auto& join) {
    for (size_t i = 0; i < pairs; ++i) values[i] = join(values[2 * i], values[2 * i + 1]);
    if (odd) values[pairs] = values[2 * pairs];
    values.resize(pairs + (odd ? 1 : 0));
  };
  const auto later = [](int64_t /*earlier*/, int64_t last) { return last; };
  shorten(table->t_ns, later);
  shorten(table->epoch, later);
  shorten(table->step, later);
  for (auto& [name, column] : table->columns) {
    shorten(column, [&name = name](double a, double b) { return Joined(name, a, b); });
  }
}

}  // namespace epochmeter::ingest::log
