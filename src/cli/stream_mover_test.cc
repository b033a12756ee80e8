// SPDX-License-Identifier: Apache-2.0
// Movers that are killed at random instants, one after the other: what arrives is what was sent.
// EPOCHMETER_MOVER_KILLS sets the kills for each destination (200 here, 20,000 in the long form).
#include "cli/stream_mover.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <new>
#include <random>
#include <string>

#include "base/file.h"
#include "base/strings.h"

namespace epochmeter::cli {
namespace {

int Kills() {
  const char* value = std::getenv("EPOCHMETER_MOVER_KILLS");
  const auto kills = base::ParseInt(value != nullptr ? value : "");
  return kills ? static_cast<int>(*kills) : 200;
}

// The byte at `index` of what the training writes; no stretch of it repeats soon.
char ByteAt(uint64_t index) { return static_cast<char>('!' + ((index * index + index / 7) % 90)); }

struct SharedPage {
  WriteJournal journal;
  std::atomic<bool> stop = false;
  std::atomic<uint64_t> written = 0;
};

PipeEnds MakePipe() {
  std::array<int, 2> ends{};
  EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  return {.out = ends[0], .in = ends[1]};
}

// Writes without end, until told; the training.
[[noreturn]] void WriteOutput(int to, SharedPage& page) {
  std::minstd_rand random(7);
  std::string text;
  for (uint64_t index = 0; !page.stop;) {
    text.clear();
    const size_t size = 1 + random() % 3000;
    for (size_t i = 0; i < size; ++i) text += ByteAt(index + i);
    if (::write(to, text.data(), size) != static_cast<ssize_t>(size)) ::_exit(1);
    index += size;
    page.written = index;
    if (random() % 16 == 0) ::usleep(100);
  }
  ::_exit(0);
}

[[noreturn]] void MoveUntilTheEnd(const RelayStream& stream, SharedPage& page) {
  StreamMover mover(stream, page.journal, -1, true);
  for (;;) {
    pollfd readable{.fd = stream.from, .events = POLLIN, .revents = 0};
    if (mover.HasInHand()) {
      if (mover.PassOn() == StreamMover::Step::kReaderGone) ::_exit(1);
    } else if (::poll(&readable, 1, -1) > 0) {
      if (mover.TakeIn() == StreamMover::Step::kSourceEnded) ::_exit(0);
    }
  }
}

// Puts what comes out of `from` into a file: the reader of a pipe or terminal.
pid_t StartReader(int from, const std::string& path, int not_this_end) {
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  ::close(not_this_end);
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  std::array<char, 65536> bytes{};
  for (;;) {
    const ssize_t n = ::read(from, bytes.data(), bytes.size());
    if (n <= 0 || ::write(file, bytes.data(), static_cast<size_t>(n)) != n) ::_exit(0);
  }
}

std::pair<int, int> RawTerminal() {
  const int master = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  EXPECT_EQ(::grantpt(master), 0);
  EXPECT_EQ(::unlockpt(master), 0);
  std::array<char, 128> name{};
  EXPECT_EQ(::ptsname_r(master, name.data(), name.size()), 0);
  const int slave = ::open(name.data(), O_RDWR | O_NOCTTY | O_CLOEXEC);
  termios mode{};
  ::tcgetattr(slave, &mode);
  ::cfmakeraw(&mode);
  ::tcsetattr(slave, TCSANOW, &mode);
  return {master, slave};
}

class StreamMoverTest : public ::testing::Test {
 protected:
  StreamMoverTest()
      : page_(*new (::mmap(nullptr, sizeof(SharedPage), PROT_READ | PROT_WRITE,
                           MAP_SHARED | MAP_ANONYMOUS, -1, 0)) SharedPage) {}

  std::string Path() const {
    return ::testing::TempDir() + "/mover_" + std::to_string(::getpid()) + "_" +
           ::testing::UnitTest::GetInstance()->current_test_info()->name();
  }

  // Lets movers carry output from `source` (its training's end: `source.in`) to `to`, each until it
  // is killed, and the last until the end. The number of those killed.
  int MoveWithKills(PipeEnds source, int to) {
    const RelayStream stream{
        .from = source.out, .to = to, .stream = 1, .hand = MakePipe(), .copy = MakePipe()};
    const pid_t training = ::fork();
    if (training == 0) WriteOutput(source.in, page_);
    ::close(source.in);
    std::minstd_rand random(11);
    int killed = 0;
    for (int status = 0;;) {
      const pid_t mover = ::fork();
      if (mover == 0) MoveUntilTheEnd(stream, page_);
      if (killed >= Kills()) page_.stop = true;
      if (!page_.stop) {
        ::usleep(static_cast<useconds_t>(200 + random() % 1500));
        ::kill(mover, SIGKILL);
      }
      ::waitpid(mover, &status, 0);
      if (!WIFSIGNALED(status)) break;
      ++killed;
    }
    int status = 0;
    ::waitpid(training, &status, 0);
    EXPECT_EQ(status, 0);
    for (const int fd :
         {stream.from, stream.hand.out, stream.hand.in, stream.copy.out, stream.copy.in}) {
      ::close(fd);
    }
    return killed;
  }

  void ExpectAllArrived(const std::string& path) {
    const auto arrived = base::ReadFile(path);
    ASSERT_TRUE(arrived.ok());
    EXPECT_EQ(arrived->size(), page_.written.load());
    size_t first_wrong = 0;
    while (first_wrong < arrived->size() && (*arrived)[first_wrong] == ByteAt(first_wrong)) {
      ++first_wrong;
    }
    EXPECT_EQ(first_wrong, page_.written.load());
    ::unlink(path.c_str());
  }

  SharedPage& page_;
};

TEST_F(StreamMoverTest, NothingIsLostOrRepeatedOnTheWayToAFileOpenedForAppending) {
  const int file = ::open(Path().c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
  EXPECT_GE(MoveWithKills(MakePipe(), file), Kills());
  ::close(file);
  ExpectAllArrived(Path());
}

TEST_F(StreamMoverTest, NothingIsLostOrRepeatedOnTheWayToAFile) {
  const int file = ::open(Path().c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  EXPECT_GE(MoveWithKills(MakePipe(), file), Kills());
  ::close(file);
  ExpectAllArrived(Path());
}

TEST_F(StreamMoverTest, NothingIsLostOrRepeatedOnTheWayToAPipe) {
  const PipeEnds destination = MakePipe();
  const pid_t reader = StartReader(destination.out, Path(), destination.in);
  EXPECT_GE(MoveWithKills(MakePipe(), destination.in), Kills());
  ::close(destination.in);
  ::waitpid(reader, nullptr, 0);
  ::close(destination.out);
  ExpectAllArrived(Path());
}

TEST_F(StreamMoverTest, NothingIsLostOrRepeatedFromATerminalToATerminal) {
  const auto [destination_out, destination_in] = RawTerminal();
  const pid_t reader = StartReader(destination_out, Path(), destination_in);
  const auto [source_out, source_in] = RawTerminal();
  EXPECT_GE(MoveWithKills({.out = source_out, .in = source_in}, destination_in), Kills());
  ::close(destination_in);
  ::waitpid(reader, nullptr, 0);
  ::close(destination_out);
  ExpectAllArrived(Path());
}

TEST_F(StreamMoverTest, AWriteThatAKillCutShortGoesOnWhereItEnded) {
  const int file = ::open(Path().c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
  ASSERT_EQ(::write(file, "before", 6), 6);
  const RelayStream stream{
      .from = -1, .to = file, .stream = 1, .hand = MakePipe(), .copy = MakePipe()};
  ASSERT_EQ(::write(stream.hand.in, "0123456789", 10), 10);
  page_.journal.position = 6;
  page_.journal.file_bytes = 6;
  page_.journal.size = 10;
  page_.journal.in_hand = 10;
  ASSERT_EQ(::write(file, "0123", 4), 4);  // and here the mover before died
  StreamMover mover(stream, page_.journal, -1, true);
  while (mover.HasInHand()) EXPECT_EQ(mover.PassOn(), StreamMover::Step::kMoved);
  EXPECT_EQ(*base::ReadFile(Path()), "before0123456789");
  ::unlink(Path().c_str());
}

TEST_F(StreamMoverTest, AMoverThatMayNotWaitGivesAFullPipeNothing) {
  const PipeEnds destination = MakePipe();
  const RelayStream stream{
      .from = -1, .to = destination.in, .stream = 1, .hand = MakePipe(), .copy = MakePipe()};
  ::fcntl(destination.in, F_SETFL, O_NONBLOCK);
  const std::string filler(4096, 'x');
  while (::write(destination.in, filler.data(), filler.size()) > 0) {
  }
  ::fcntl(destination.in, F_SETFL, 0);
  ASSERT_EQ(::write(stream.hand.in, "y", 1), 1);
  StreamMover mover(stream, page_.journal, -1, false);
  EXPECT_EQ(mover.PassOn(), StreamMover::Step::kWouldWait);
  EXPECT_TRUE(mover.HasInHand());
}

}  // namespace
}  // namespace epochmeter::cli
