// SPDX-License-Identifier: Apache-2.0
#include "collect/nvml/library.h"

#include <gmock/gmock.h>

#include "base/strings.h"
#include "collect/nvml/replay_fixture.h"

namespace epochmeter::collect::nvml {
namespace {

using testing::HasSubstr;

class LibraryTest : public ReplayTest {};

TEST_F(LibraryTest, OpensTheLibraryAndReadsItsVersions) {
  Play(R"({"devices":{"count":1},"driver":"570.10"})");
  auto library = Library::Open({.library = ReplayFolder(), .root = ""});
  ASSERT_TRUE(library.ok()) << library.error().Message();
  EXPECT_EQ((*library)->driver_version(), "570.10");
  EXPECT_EQ((*library)->nvml_version(), "13.570.10");
  EXPECT_THAT((*library)->path(), HasSubstr("nvml-replay/libnvidia-ml.so.1"));
  EXPECT_EQ((*library)->api().process_layout, ProcessLayout::kV2);
  EXPECT_THAT((*library)->ErrorText(kNvmlGpuIsLost), HasSubstr("(15)"));
}

TEST_F(LibraryTest, SeesTheLongerProcessEntriesOfEarlyR535) {
  Play(R"({"devices":{"count":1}})");
  auto library = Library::Open({.library = ReplayFolder("-r535"), .root = ""});
  ASSERT_TRUE(library.ok());
  EXPECT_EQ((*library)->api().process_layout, ProcessLayout::kR535);
}

TEST_F(LibraryTest, SaysWhatWasTriedAndWhatToDoWhenThereIsNoLibrary) {
  const auto library = Library::Open({.library = "/nonexistent/libnvidia-ml.so.1", .root = ""});
  ASSERT_FALSE(library.ok());
  EXPECT_EQ(library.error().code, kNvmlLibraryNotFound);
  EXPECT_THAT(library.error().why, HasSubstr("/nonexistent/libnvidia-ml.so.1"));
  EXPECT_THAT(library.error().what_to_do, HasSubstr("EPOCHMETER_NVML_LIBRARY"));
}

TEST_F(LibraryTest, RefusesALibraryThatIsNotNvml) {
  const auto library = Library::Open({.library = "libz.so.1", .root = ""});
  ASSERT_FALSE(library.ok());
  EXPECT_EQ(library.error().what, "the library is not NVML");
}

TEST_F(LibraryTest, TellsAMissingDriverFromAStub) {
  Play(R"({"devices":{"count":1},"faults":[{"function":"nvmlInitWithFlags","return":9}]})");
  auto library = Library::Open({.library = ReplayFolder(), .root = "/nonexistent"});
  ASSERT_FALSE(library.ok());
  EXPECT_EQ(library.error().code, kNvmlDriverNotLoaded);
  EXPECT_THAT(library.error().what_to_do, HasSubstr("kernel driver"));

  const std::string root = testing::TempDir() + "/with-driver-" + std::to_string(getpid());
  std::filesystem::create_directories(root + "/proc/driver/nvidia");
  std::ofstream(root + "/proc/driver/nvidia/version") << "NVRM version: 580\n";
  library = Library::Open({.library = ReplayFolder(), .root = root});
  ASSERT_FALSE(library.ok());
  EXPECT_THAT(library.error().what, HasSubstr("stub"));
  EXPECT_THAT(library.error().where, HasSubstr("nvml-replay"));
}

TEST_F(LibraryTest, InitialisesWithTheOlderCallWhereFlagsAreNotKnown) {
  Play(R"({"devices":{"count":1},"faults":[{"function":"nvmlInitWithFlags","return":13}]})");
  EXPECT_TRUE(Library::Open({.library = ReplayFolder(), .root = ""}).ok());
}

TEST_F(LibraryTest, AdvisesAReloadAfterADriverUpgrade) {
  Play(R"({"devices":{"count":1},"faults":[{"function":"nvmlInitWithFlags","return":18}]})");
  const auto library = Library::Open({.library = ReplayFolder(), .root = ""});
  ASSERT_FALSE(library.ok());
  EXPECT_THAT(library.error().what_to_do, HasSubstr("reboot or reload"));
}

TEST(LibraryCandidatesTest, SearchesTheSonameFirstAndNeverTheUnversionedName) {
  const auto paths = LibraryCandidates({.library = "", .root = "/nonexistent"});
  EXPECT_EQ(paths.front(), "libnvidia-ml.so.1");
  for (const std::string& path : paths) EXPECT_TRUE(base::EndsWith(path, ".so.1")) << path;
}

TEST(LibraryCandidatesTest, PrefersTheWslFolderUnderWsl) {
  const std::string root = testing::TempDir() + "/wsl-" + std::to_string(getpid());
  std::filesystem::create_directories(root + "/dev/dxg");
  EXPECT_EQ(LibraryCandidates({.library = "", .root = root}).front(),
            "/usr/lib/wsl/lib/libnvidia-ml.so.1");
}

TEST(LibraryCandidatesTest, TriesOnlyWhatTheUserNamed) {
  EXPECT_THAT(LibraryCandidates({.library = "/opt/nv", .root = ""}),
              testing::ElementsAre("/opt/nv/libnvidia-ml.so.1"));
  EXPECT_THAT(LibraryCandidates({.library = "/opt/libother.so", .root = ""}),
              testing::ElementsAre("/opt/libother.so"));
}

}  // namespace
}  // namespace epochmeter::collect::nvml
