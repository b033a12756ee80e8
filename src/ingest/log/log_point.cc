// SPDX-License-Identifier: Apache-2.0
#include "ingest/log/log_point.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <string>

#include "base/strings.h"
#include "ingest/log/event_kinds.h"

namespace epochmeter::ingest::log {
namespace {

uint64_t HashOf(const LogRecord& record) {
  auto hash = static_cast<uint64_t>(record.kind) + 1;
  for (const LogValue& value : record.values) {
    // Ends and length of a key tell the shapes of one log apart, and cost nothing.
    const std::string_view key = value.key;
    const uint64_t ends = key.empty() ? 0 : static_cast<uint64_t>(key.front()) << 8 | key.back();
    hash = (hash ^ (key.size() << 16 | ends)) * 0x9E37'79B9'7F4A'7C15U;
  }
  return hash;
}

// As printed; a number in letters has no text of its own.
std::string TextOf(const LogValue& value) {
  if (!value.text.empty() || std::isfinite(value.number)) return std::string(value.text);
  return std::isnan(value.number) ? "nan" : value.number < 0 ? "-inf" : "inf";
}

}  // namespace

std::string_view RecordKindName(RecordKind kind) {
  constexpr std::array<std::string_view, 4> kNames = {"train", "eval", "summary", "inference"};
  return kNames[static_cast<size_t>(kind)];
}

bool IsBad(std::string_view event_kind) {
  const EventKind* kind = FindEventKind(event_kind);
  return kind == nullptr || kind->role != EventRole::kNote;
}

model::LogPoint CopyOf(const LogRecord& record) {
  model::LogPoint point{.kind = std::string(RecordKindName(record.kind)),
                        .file = record.place.file,
                        .line = record.place.line,
                        .last_line = std::max(record.place.line, record.last_line),
                        .start = record.start,
                        .rank = record.place.rank,
                        .wall_ns = record.place.wall_ns,
                        .stamp = std::string(record.stamp),
                        .header_epoch = record.header_epoch,
                        .fields = {}};
  point.fields.reserve(record.values.size());
  for (const LogValue& value : record.values) {
    if (value.key.empty() && value.role == Role::kOther) continue;  // nothing says what it is
    const std::string_view key = value.key.empty() ? RoleName(value.role) : value.key;
    point.fields.push_back({.key = std::string(key),
                            .text = TextOf(value),
                            .unit = std::string(value.unit),
                            .role = std::string(RoleName(value.role)),
                            .number = value.number,
                            .value = value.value});
  }
  return point;
}

void KeptRecord::Keep(const LogRecord& record) {
  any_ = true;
  record_ = record;
  values_.assign(record.values.begin(), record.values.end());
  texts_.assign(record.text);
  // Texts are nearly always part of the line, which is held already.
  const auto begin = reinterpret_cast<uintptr_t>(record.text.data());
  const auto inside = [&record, begin](const LogValue& value) {
    const size_t at = reinterpret_cast<uintptr_t>(value.text.data()) - begin;
    return at <= record.text.size() && value.text.size() <= record.text.size() - at;
  };
  size_t elsewhere = record.stamp.size();
  bool all = true;
  for (const LogValue& value : values_) {
    if (inside(value)) continue;
    all = false;
    elsewhere += value.text.size();
  }
  if (texts_.capacity() < record.text.size() + elsewhere) {
    texts_.reserve(record.text.size() + elsewhere);  // so that views into it stay
  }
  record_.text = texts_;
  record_.stamp = Hold(record.stamp);
  for (LogValue& value : values_) {
    const size_t at = reinterpret_cast<uintptr_t>(value.text.data()) - begin;
    value.text = all || inside(value) ? std::string_view(texts_.data() + at, value.text.size())
                                      : Hold(value.text);
  }
  record_.values = values_;
  record_.places = nullptr;
}

std::string_view KeptRecord::Hold(std::string_view text) {
  const size_t at = texts_.size();
  texts_ += text;
  return std::string_view(texts_).substr(at);
}

void KeptRecord::SetStepMeaning(bool in_epoch) {
  for (LogValue& value : values_) {
    if (value.role == Role::kStep || value.role == Role::kStepInEpoch) {
      value.role = in_epoch ? Role::kStepInEpoch : Role::kStep;
    }
    if (value.role == Role::kTotalSteps || value.role == Role::kStepsPerEpoch) {
      value.role = in_epoch ? Role::kStepsPerEpoch : Role::kTotalSteps;
    }
  }
}

std::optional<model::LogPoint> KeptRecord::Take() const {
  return any_ ? std::optional(CopyOf(record_)) : std::nullopt;
}

void ShapeTable::Add(const LogRecord& record) {
  const uint64_t hash = HashOf(record);
  if (last_ != nullptr && hash == last_hash_) {
    ++last_->records;
    return;
  }
  const auto found = shapes_.find(hash);
  if (found == shapes_.end() && shapes_.size() >= kMostShapes) return;
  model::LogShape& shape = shapes_[hash];
  last_hash_ = hash;
  last_ = &shape;
  if (shape.records++ > 0) return;
  shape.first = CopyOf(record);
  constexpr size_t kMostSample = 400;
  shape.sample = base::ToValidUtf8(record.text.substr(0, kMostSample));
}

std::vector<model::LogShape> ShapeTable::Take(size_t most) const {
  std::vector<model::LogShape> shapes;
  for (const auto& [hash, shape] : shapes_) shapes.push_back(shape);
  std::sort(shapes.begin(), shapes.end(), [](const model::LogShape& a, const model::LogShape& b) {
    return a.records != b.records
               ? a.records > b.records
               : std::pair(a.first.file, a.first.line) < std::pair(b.first.file, b.first.line);
  });
  if (shapes.size() > most) shapes.resize(most);
  return shapes;
}

}  // namespace epochmeter::ingest::log
