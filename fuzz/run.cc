// SPDX-License-Identifier: Apache-2.0
// Any records as a run, up to every report and export: the output is UTF-8 without control
// characters, JSON parses, every CSV row has the same number of cells.
#include "fuzz/make_record.h"
#include "fuzz/output.h"
#include "fuzz/target.h"
#include "model/run_builder.h"
#include "runfile/chunk_set.h"

namespace epochmeter::fuzz {
namespace {

// Ids far from the others would only fill memory with empty definitions.
bool HasSmallIds(const model::Record& record) {
  constexpr uint32_t kMost = 256;
  if (const auto* entity = std::get_if<model::EntityDef>(&record)) return entity->id < kMost;
  if (const auto* series = std::get_if<model::SeriesDef>(&record)) return series->id < kMost;
  return true;
}

model::Record MakeRecord(Input& in, int64_t* now_ns) {
  switch (in.Below(11)) {
    case 0:
      return MakeRunInfo(in);
    case 1:
      return model::Anchor{.clocks = MakeRunInfo(in).anchor};
    case 2:
      return MakeEntity(in, static_cast<model::EntityId>(in.Below(kEntities)));
    case 3:
      return MakeSeries(in, static_cast<model::SeriesId>(in.Below(kSeries)));
    case 4:
      return MakeState(in, now_ns);
    case 5:
      return MakeLog(in, now_ns);
    case 6:
      return MakeLoss(in, now_ns);
    case 7:
      return MakeEnd(in, now_ns);
    case 8:
      return MakeSamples(in, now_ns);
    default:
      return MakeEvent(in, now_ns);
  }
}

}  // namespace

void FeedRun(std::string_view bytes) {
  Input in(bytes);
  model::RunBuilder builder;
  if (in.Bit()) {
    runfile::ForEachRecord(in.Rest(), [&builder](model::Record&& record) {
      if (HasSmallIds(record)) builder.Write(record);
    });
  }
  int64_t now_ns = 0;
  while (!in.done()) builder.Write(MakeRecord(in, &now_ns));
  const model::Run run = builder.Finish();
  CheckStore(run);
  CheckAllOutput(run);
}

}  // namespace epochmeter::fuzz
