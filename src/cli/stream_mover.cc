// SPDX-License-Identifier: Apache-2.0
#include "cli/stream_mover.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/clock.h"

namespace epochmeter::cli {
namespace {

// So little fits wherever poll(2) says that something does.
constexpr size_t kBytesWithoutWaiting = 256;
// A destination that can neither be spliced to nor has a position gets so much again at most.
constexpr size_t kBytesThatMayRepeat = 4096;

size_t BytesWaiting(int fd) {
  int bytes = 0;
  return ::ioctl(fd, FIONREAD, &bytes) == 0 && bytes > 0 ? static_cast<size_t>(bytes) : 0;
}

bool IsTransient(int error) { return error == EAGAIN || error == EINTR; }

}  // namespace

StreamMover::StreamMover(const RelayStream& stream, WriteJournal& journal, int capture, bool waits)
    : stream_(stream), journal_(journal), capture_(capture), waits_(waits) {
  while (BytesWaiting(stream_.copy.out) > 0 &&
         ::read(stream_.copy.out, Bytes(), kCaptureBytes) > 0) {
  }
  in_hand_ = BytesWaiting(stream_.hand.out);
  Recover();
}

// A write that was cut off: what had reached the destination is still in hand.
void StreamMover::Recover() {
  const int64_t before = journal_.in_hand;
  if (before == 0) return;
  const int64_t discarded = before - static_cast<int64_t>(in_hand_);
  const int64_t written = WrittenBefore();
  if (written > discarded) Discard(static_cast<size_t>(written - discarded));
  journal_.in_hand = 0;
}

// By the position of the open file, which the kernel moves within the write itself. A write that
// the kill cut short ends where the file ended before plus what was written. Where there is no
// position it can't be known: the bytes are written again.
int64_t StreamMover::WrittenBefore() const {
  const int64_t position = ::lseek(stream_.to, 0, SEEK_CUR);
  if (position < 0 || position == journal_.position) return 0;
  const bool appends = (::fcntl(stream_.to, F_GETFL) & O_APPEND) != 0;
  const int64_t grown = position - (appends ? journal_.file_bytes : journal_.position);
  return grown > 0 ? std::min<int64_t>(journal_.size, grown) : journal_.size.load();
}

StreamMover::Step StreamMover::TakeIn() {
  ssize_t n =
      ::splice(stream_.from, nullptr, stream_.hand.in, nullptr, kCaptureBytes, SPLICE_F_NONBLOCK);
  if (n < 0 && errno == EINVAL) n = TakeInByCopy();
  if (n < 0 && IsTransient(errno)) return Step::kWouldWait;
  if (n <= 0) return Step::kSourceEnded;  // a pty whose last writer is gone reads as EIO
  in_hand_ += static_cast<size_t>(n);
  return Step::kMoved;
}

// Kernels before 5.11 can't splice from a terminal: there a kill between read and write costs what
// was read.
ptrdiff_t StreamMover::TakeInByCopy() {
  pollfd readable{.fd = stream_.from, .events = POLLIN, .revents = 0};
  if (::poll(&readable, 1, 0) == 0) {
    errno = EAGAIN;
    return -1;
  }
  const ssize_t n = ::read(stream_.from, Bytes(), 4096);
  return n <= 0 ? n : ::write(stream_.hand.in, Bytes(), static_cast<size_t>(n));
}

StreamMover::Step StreamMover::PassOn() {
  pollfd writable{.fd = stream_.to, .events = POLLOUT, .revents = 0};
  if (!waits_ && ::poll(&writable, 1, 0) == 0) return Step::kWouldWait;
  const size_t most =
      std::min(in_hand_, waits_ ? static_cast<size_t>(kCaptureBytes) : kBytesWithoutWaiting);
  const ssize_t teed = ::tee(stream_.hand.out, stream_.copy.in, most, SPLICE_F_NONBLOCK);
  const size_t copied = teed <= 0
                            ? 0
                            : static_cast<size_t>(std::max<ssize_t>(
                                  0, ::read(stream_.copy.out, Bytes(), static_cast<size_t>(teed))));
  ssize_t n = ::splice(stream_.hand.out, nullptr, stream_.to, nullptr, most,
                       waits_ ? 0 : SPLICE_F_NONBLOCK);
  if (n < 0 && errno == EINVAL && copied > 0) n = WriteOn(copied);
  if (n < 0 && IsTransient(errno)) return Step::kWouldWait;
  if (n < 0 && (errno == EPIPE || errno == ECONNRESET)) return Step::kReaderGone;
  if (n <= 0) {
    not_written_bytes_ += most;
    Discard(most);
    if (copied > 0) SendCopy(copied);  // what was printed, and the count
    return Step::kMoved;
  }
  in_hand_ -= std::min(in_hand_, static_cast<size_t>(n));
  const size_t sent = std::min(copied, static_cast<size_t>(n));
  dropped_bytes_ += static_cast<size_t>(n) - sent;
  if (sent > 0) SendCopy(sent);
  return Step::kMoved;
}

// Writes the copy and takes it out of hand, with a note beforehand by which the next mover can
// tell how far this one came. Gives what write gave.
ptrdiff_t StreamMover::WriteOn(size_t size) {
  struct stat about {};
  ::fstat(stream_.to, &about);
  journal_.position = ::lseek(stream_.to, 0, SEEK_CUR);
  if (journal_.position < 0) size = std::min(size, kBytesThatMayRepeat);
  journal_.file_bytes = about.st_size;
  journal_.size = static_cast<int64_t>(size);
  journal_.in_hand = static_cast<int64_t>(in_hand_);
  const ssize_t n = ::write(stream_.to, Bytes(), size);
  const int error = errno;
  if (n > 0) {
    Discard(static_cast<size_t>(n));
    in_hand_ += static_cast<size_t>(n);  // as after a splice, for the caller
  }
  journal_.in_hand = 0;
  errno = error;
  return n;
}

void StreamMover::Discard(size_t size) {
  char scrap[4096];
  while (size > 0 && in_hand_ > 0) {
    const ssize_t n = ::read(stream_.hand.out, scrap, std::min(size, sizeof scrap));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    size -= static_cast<size_t>(n);
    in_hand_ -= std::min(in_hand_, static_cast<size_t>(n));
  }
}

void StreamMover::SendCopy(size_t size) {
  const CaptureHeader header{.t_ns = base::MonotonicNs(),
                             .dropped_bytes = dropped_bytes_,
                             .not_written_bytes = not_written_bytes_,
                             .stream = stream_.stream,
                             .padding = 0};
  std::memcpy(payload_, &header, sizeof header);
  const ssize_t n = ::send(capture_, payload_, sizeof header + size, MSG_DONTWAIT | MSG_NOSIGNAL);
  dropped_bytes_ = n < 0 ? dropped_bytes_ + size : 0;
  not_written_bytes_ = n < 0 ? not_written_bytes_ : 0;
}

}  // namespace epochmeter::cli
