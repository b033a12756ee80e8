// SPDX-License-Identifier: Apache-2.0
// Fixed texts of the renderers in each language. A new language is one column in phrases.cc.
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace epochmeter::render {

enum class Language : uint8_t { kEnglish, kChinese };
inline constexpr int kLanguageCount = 2;

// "en", "zh" and names that begin so ("zh_CN.UTF-8"); nothing for others.
std::optional<Language> LanguageFromName(std::string_view name);

enum class Phrase : uint8_t {
  kReport,
  kSummary,
  kCommand,
  kHost,
  kStarted,
  kDuration,
  kEnded,
  kNoEnd,
  kExitCode,
  kSignal,
  kEndUnknown,
  kEpochs,
  kNoEpochs,
  kWholeRun,
  kIncomplete,
  kRank,
  kEpoch,
  kSteps,
  kStepP50,
  kDataWait,
  kValidation,
  kCpu,
  kRam,
  kTreeRam,
  kGpu,
  kSm,
  kGpuMemory,
  kPower,
  kTemperature,
  kAllocated,
  kEnergy,
  kGpus,
  kName,
  kMean,
  kMax,
  kLosses,
  kNone,
  kNotMeasured,
  kFindings,
  kFiles,
  kUnknown,
  kLastEpoch,
  kPowerIntegral,
  kAnd,
  kMore,
  kPhases,
  kPhase,
  kTimes,
  kTotal,
  kTooWide,
  kNoValue,
  kExceptions,
  kStillRunning,
  kPid,
  kTreeCpu,
  kTimesOf,
  kOwnMemory,
  kOthersMemory,
  kUnexplainedMemory,
  kOfJob,
  kYes,
  kNo,
  kAtLeast,
  kAfterTraining,
  kIncidents,
  kOomKiller,
  kOfGpus,
  kGpusMeasured,
  kAllFigures,
  kValues,
  kLowest,
  kHighest,
  kJobCores,
  kJob,
  kGpuUtilization,
  kSmActivity,
  kGpuMemoryPeak,
  kHostCpu,
  kHostMemoryPeak,
  kCritical,
  kWarning,
  kInfo,
  kNotApplicable,
  kGood,
  kTo,
  kStep,
  kStepNumbers,
  kColon,
  kSemicolon,
  kListComma,
  kChange,
  kCost,
  kEvidence,
  kHowJudged,
  kGpuTimeLost,
  kWouldSave,
  kAsFast,
  kNoRuleKnowsWhy,
  kNothingWrong,
  kNothingToJudge,
  kRulesNotApplicable,
  kMoreRows,
  kFurtherFindings,
  kKeyFigures,
  kVerdict,
  kIncompleteShort,
  kRanksMore,
  kRaised,
  kRemarks,
  kRun,
  kRanks,
  kGpusOfRun,
  kEpochCount,
  kPeakAtEpoch,
  kIoWait,
  kWaste,
  kWorst,
  kKind,
  kRuns,
  kCoresPerGpu,
  kRamPerGpu,
  kReadPerGpu,
  kRunsCounted,
  kBroughtNothing,
  kUnreadable,
  kProfiles,
  kBill,
  kEnergyCovers,
  kCostCovers,
  kEffective,
};
inline constexpr int kPhraseCount = static_cast<int>(Phrase::kEffective) + 1;

std::string_view Text(Phrase phrase, Language language);

// The text with the arguments in its places, as fmt does it.
template <typename... Args>
std::string Fill(Phrase phrase, Language language, const Args&... args) {
  return fmt::vformat(Text(phrase, language), fmt::make_format_args(args...));
}

}  // namespace epochmeter::render
