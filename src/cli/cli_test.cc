// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdlib>

#include "cli/arguments.h"
#include "cli/log_capture.h"
#include "cli/run_settings.h"
#include "cli/verbs.h"

namespace epochmeter::cli {
namespace {

using Words = std::vector<std::string>;

TEST(Arguments, OursEndWhereTheCommandBegins) {
  const Arguments a =
      ParseArguments(kRunCommand, {"-i", "500ms", "--no-gpu", "python", "-u", "a.py", "--quiet"})
          .value();
  EXPECT_EQ(a.Value("interval"), "500ms");
  EXPECT_TRUE(a.Has("no-gpu"));
  EXPECT_FALSE(a.Has("quiet"));
  EXPECT_EQ(a.command, (Words{"python", "-u", "a.py", "--quiet"}));
}

TEST(Arguments, TwoDashesEndOurFlagsAndAreNotPassedOn) {
  const Arguments a =
      ParseArguments(kRunCommand, {"--tag", "a=1", "--tag=b=2", "--", "--", "x"}).value();
  EXPECT_EQ(a.Values("tag"), (Words{"a=1", "b=2"}));
  EXPECT_EQ(a.command, (Words{"--", "x"}));
}

TEST(Arguments, UnknownFlagNamesTheNearest) {
  const auto a = ParseArguments(kReportCommand, {"--fromat", "json"});
  ASSERT_FALSE(a.ok());
  EXPECT_NE(a.error().Message().find("did you mean --format?"), std::string::npos)
      << a.error().Message();
}

TEST(Arguments, SurplusWordsAreRefused) {
  EXPECT_FALSE(ParseArguments(kDumpCommand, {"a.emr", "b.emr"}).ok());
  EXPECT_FALSE(ParseArguments(kImportCommand, {"recording", "folder", "other"}).ok());
  EXPECT_FALSE(ParseArguments(kImportCommand, {}).ok());
}

TEST(Arguments, ValuesComeFromTheEnvironmentWhenNotGiven) {
  ::setenv("EPOCHMETER_INTERVAL", "2s", 1);
  EXPECT_EQ(ParseArguments(kRunCommand, {"--", "x"}).value().Value("interval"), "2s");
  EXPECT_EQ(ParseArguments(kRunCommand, {"-i", "3s", "--", "x"}).value().Value("interval"), "3s");
  ::unsetenv("EPOCHMETER_INTERVAL");
}

TEST(Arguments, EveryCommandHasHelpAndItsFlagsAreNamedOnce) {
  for (const Command& command : Commands()) {
    EXPECT_TRUE(ParseArguments(command, {"--help"}).ok()) << command.name;
    EXPECT_NE(command.Run, nullptr);
    EXPECT_NE(HelpText(command).find("--json"), std::string::npos);
  }
}

TEST(RecordingSwitch, TakesTheDocumentedWordsOnly) {
  for (const auto& [word, on] : std::vector<std::pair<const char*, bool>>{
           {"0", false}, {"off", false}, {"NO", false}, {"1", true}, {"True", true}}) {
    ::setenv("EPOCHMETER", word, 1);
    EXPECT_EQ(RecordingSwitchedOn().value(), on) << word;
  }
  ::setenv("EPOCHMETER", "maybe", 1);
  EXPECT_FALSE(RecordingSwitchedOn().ok());
  ::unsetenv("EPOCHMETER");
  EXPECT_TRUE(RecordingSwitchedOn().value());
}

TEST(Redaction, HidesSecretsAndTheHomeFolder) {
  ::setenv("HOME", "/home/ann", 1);
  EXPECT_EQ(
      RedactCommand({"python", "/home/ann/train.py", "--api-key", "s3cret", "--hf_token=abc",
                     "WANDB_API_KEY=xyz", "https://ann:pw@host/x", "/home/anna/y", "--lr", "1"}),
      (Words{"python", "~/train.py", "--api-key", "***", "--hf_token=***", "WANDB_API_KEY=***",
             "https://***@host/x", "/home/anna/y", "--lr", "1"}));
}

TEST(LogCapture, ThinsAFloodAndSaysSo) {
  model::MemorySink sink;
  LogCapture capture(sink);
  const std::string chunk(32 * 1024, 'x');
  for (int i = 0; i < 100; ++i) {
    capture.Take({.t_ns = base::kNsPerSecond + i,
                  .dropped_bytes = i == 7 ? 5U : 0U,
                  .not_written_bytes = 0,
                  .stream = 1,
                  .padding = 0},
                 chunk);
  }
  capture.Finish(2 * base::kNsPerSecond);
  uint64_t kept = 0, thinned = 0, dropped = 0;
  for (const model::Record& record : sink.records) {
    if (const auto* text = std::get_if<model::LogText>(&record)) kept += text->text.size();
    if (const auto* loss = std::get_if<model::Loss>(&record)) {
      (loss->kind == "log.thinned" ? thinned : dropped) += loss->count;
    }
  }
  EXPECT_EQ(kept + thinned, 100 * chunk.size());
  EXPECT_LE(kept, static_cast<uint64_t>(LogCapture::kBurstBytes));
  EXPECT_EQ(dropped, 5U);
}

}  // namespace
}  // namespace epochmeter::cli
