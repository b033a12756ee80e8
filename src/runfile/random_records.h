// SPDX-License-Identifier: Apache-2.0
// Random but repeatable records for tests.
#pragma once

#include <random>
#include <string>

#include "model/record.h"

namespace epochmeter::runfile {

class RandomRecords {
 public:
  explicit RandomRecords(uint64_t seed) : engine_(seed) {}

  // 0 <= result < bound.
  uint64_t Below(uint64_t bound) { return engine_() % bound; }
  bool Chance(double p) { return std::uniform_real_distribution<>(0, 1)(engine_) < p; }
  double Real(double from, double to) {
    return std::uniform_real_distribution<>(from, to)(engine_);
  }
  int64_t Time() { return static_cast<int64_t>(engine_() >> Below(60)); }

  std::string Text() {
    std::string text(Below(4) == 0 ? Below(200) : Below(12), ' ');
    for (char& c : text) c = static_cast<char>(Chance(0.9) ? 'a' + Below(26) : Below(256));
    return text;
  }
  model::Labels Labels() {
    model::Labels labels(Below(4));
    for (auto& [key, value] : labels) key = Text(), value = Text();
    return labels;
  }
  double Number() {
    switch (Below(4)) {
      case 0:
        return static_cast<double>(Below(100000));
      case 1:
        return static_cast<double>(Below(100000)) / 1e4;
      case 2:
        return Real(-1e12, 1e12);
      default:
        return Real(0, 1);
    }
  }
  model::FieldValue Value() {
    if (Chance(0.3)) return static_cast<int64_t>(engine_());
    if (Chance(0.6)) return Number();
    return Text();
  }

  model::Event Event(int64_t t_ns);
  model::Loss Loss(int64_t t_ns) {
    return {.t_ns = t_ns,
            .severity = static_cast<model::LossSeverity>(Below(3)),
            .kind = Text(),
            .count = engine_() >> Below(64),
            .detail = Text(),
            .help = Text()};
  }
  model::SeriesDef Series(model::SeriesId id, model::EntityId entity);
  model::EntityDef Entity(model::EntityId id);
  model::Record Any();

 private:
  std::mt19937_64 engine_;
};

}  // namespace epochmeter::runfile
