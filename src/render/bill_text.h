// SPDX-License-Identifier: Apache-2.0
// Bills as text for people: of one run, and a line a run for many.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/bill.h"
#include "model/report.h"
#include "model/run.h"
#include "render/text.h"

namespace epochmeter::render {

// "data wait".
std::string_view UseWord(model::TimeUse use, Language language);
// "SM activity": where the activity comes from; empty without any.
std::string_view ActivityWord(const model::Bill& bill, Language language);

// `by` is "epoch", "phase", "rank" or "gpu": the lines that follow the sums, all of them. Empty: by
// epoch and, where there are several, by GPU, a page's worth of each.
std::string RenderBill(const model::Run& run, const model::Report& report,
                       const TextOptions& options, std::string_view by);

// One of many run files: its bill, or why there is none.
struct FileBill {
  std::string name;
  std::optional<model::Bill> bill;
  std::string error;
};
// `all` are those that have GPU time, added up.
std::string RenderBills(const std::vector<FileBill>& files, const model::BillLine& all,
                        const std::string& currency, const TextOptions& options);

}  // namespace epochmeter::render
