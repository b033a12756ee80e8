// SPDX-License-Identifier: Apache-2.0
// Records made of a fuzzer's bytes: small ids, names that reports look for, and now and then any
// number or text at all.
#pragma once

#include <string>

#include "fuzz/input.h"
#include "model/record.h"

namespace epochmeter::fuzz {

inline constexpr uint32_t kEntities = 6;
inline constexpr uint32_t kSeries = 12;

int64_t MakeTime(Input& in, int64_t* now_ns);
model::RunInfo MakeRunInfo(Input& in);
model::EntityDef MakeEntity(Input& in, model::EntityId id);
// Of a metric that a source of ours has, or of one that nobody knows.
model::SeriesDef MakeSeries(Input& in, model::SeriesId id);
model::Samples MakeSamples(Input& in, int64_t* now_ns);
model::SeriesState MakeState(Input& in, int64_t* now_ns);
model::Event MakeEvent(Input& in, int64_t* now_ns);
model::LogText MakeLog(Input& in, int64_t* now_ns);
model::Loss MakeLoss(Input& in, int64_t* now_ns);
model::RunEnd MakeEnd(Input& in, int64_t* now_ns);

// The bytes of a record, by which two are compared.
std::string Encoded(const model::Record& record);

}  // namespace epochmeter::fuzz
