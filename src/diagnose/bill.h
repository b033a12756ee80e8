// SPDX-License-Identifier: Apache-2.0
// The bill of a run: GPU time by use, energy, and prices where there are any.
#pragma once

#include "diagnose/facts.h"
#include "model/bill.h"

namespace epochmeter::diagnose {

// Reads the activity, power, energy and clocks of the job's GPUs, each once. Time is partitioned in
// whole ns (see MakeRankTimeline and TimeOfDevice). Rules of the rest:
//
// - Devices are the job's GPUs; a GPU in MIG mode is one. Without any they are the ranks.
// - A rank's GPUs are those that it names. Of a job whose ranks don't, no GPU is said to be
//   anyone's: a GPU then has a use while all ranks do the same, and belongs to no rank.
// - A GPU that several ranks share goes in equal parts to those that do what it is counted as.
// - What heat takes of a step's time is the part by which the clock is below the usual one.
// - Effective time is productive time x the GPU's mean activity in it.
model::Bill MakeBill(const Facts& facts, const model::Rates& rates);

// The totals of several bills by the same rates; those of ranks instead of GPUs are left out.
// Effective time is absent where one that has productive time lacks it.
model::BillLine SumOfBills(const std::vector<const model::Bill*>& bills);

// One price of a list that this GPU's name matches; null without.
const model::GpuPrice* FindPrice(const model::Rates& rates, std::string_view gpu_name);

}  // namespace epochmeter::diagnose
