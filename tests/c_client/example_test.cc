// SPDX-License-Identifier: Apache-2.0
// The example under the real recorder: its report says what it printed itself.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

namespace epochmeter {
namespace {

std::string OutputOf(const std::string& command, int* code) {
  std::string output;
  FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return output;
  std::array<char, 4096> buffer;
  while (const size_t size = std::fread(buffer.data(), 1, buffer.size(), pipe)) {
    output.append(buffer.data(), size);
  }
  *code = WEXITSTATUS(::pclose(pipe));
  return output;
}

TEST(CExample, ReportSaysWhatTheExamplePrinted) {
  char made[] = "/tmp/epmcXXXXXX";
  const std::string folder = ::mkdtemp(made);
  const std::string file = folder + "/run.emr";
  int code = -1;
  const std::string printed = OutputOf("XDG_RUNTIME_DIR=" + folder + " " EPM_BINARY " run -q -o " +
                                           file + " -- " EPM_EXAMPLE " 3 2>&1",
                                       &code);
  ASSERT_EQ(code, 0) << printed;
  const std::string report = OutputOf(EPM_BINARY " report -f json " + file, &code);
  ASSERT_EQ(code, 0);
  const auto data = nlohmann::json::parse(report)["data"];
  const auto& epochs = data["epochs"];
  ASSERT_EQ(epochs.size(), 3U) << report;
  EXPECT_EQ(data["run"]["progress_source"], "client");
  EXPECT_TRUE(data["losses"].empty()) << data["losses"];
  std::istringstream lines(printed);
  for (const auto& epoch : epochs) {
    std::string word;
    int number = -1, steps = 0;
    double loss = 0, accuracy = 0;
    lines >> word >> number >> word >> steps >> word >> loss >> word >> accuracy;
    EXPECT_EQ(epoch["epoch"], number);
    EXPECT_EQ(epoch["steps"], steps);
    EXPECT_TRUE(epoch["complete"]);
    EXPECT_EQ(epoch["samples"], 2000);
    EXPECT_DOUBLE_EQ(epoch["scalars"]["mean_loss"], loss);
    EXPECT_DOUBLE_EQ(epoch["phases"].at(0)["scalars"]["accuracy"], accuracy);
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace epochmeter
