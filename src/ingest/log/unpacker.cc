// SPDX-License-Identifier: Apache-2.0
#include "ingest/log/unpacker.h"

#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <utility>

#include "base/check.h"
#include "ingest/log/file_head.h"

namespace epochmeter::ingest::log {
namespace {

constexpr size_t kMagicBytes = 4;
constexpr size_t kOutBytes = size_t{1} << 18;
constexpr const char* kTorn = "the packed file ends too early; what was there was read";

}  // namespace

class Unpacker::Stream {
 public:
  virtual ~Stream() = default;
  virtual void Feed(std::string_view bytes, const Take& take) = 0;
  virtual std::string Finish() = 0;
};

namespace {

// Several members one behind the other are one text, as gzip -d has it.
class Gzip : public Unpacker::Stream {
 public:
  Gzip() : out_(kOutBytes, '\0') {
    constexpr int kGzipOnly = 15 + 16;
    EPM_CHECK(::inflateInit2(&stream_, kGzipOnly) == Z_OK);
  }
  ~Gzip() override { ::inflateEnd(&stream_); }

  void Feed(std::string_view bytes, const Unpacker::Take& take) override {
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream_.avail_in = static_cast<uInt>(bytes.size());
    while (failed_.empty() && (stream_.avail_in > 0 || more_)) Step(take);
  }

  std::string Finish() override { return failed_.empty() && !ended_ ? kTorn : failed_; }

 private:
  void Step(const Unpacker::Take& take) {
    if (ended_) {
      // Padding with NULs, as of tapes and blocks, is no member.
      if (*stream_.next_in == 0) {
        ++stream_.next_in;
        --stream_.avail_in;
        return;
      }
      ::inflateReset(&stream_);
      ended_ = false;
      any_ = true;
    }
    stream_.next_out = reinterpret_cast<Bytef*>(out_.data());
    stream_.avail_out = static_cast<uInt>(out_.size());
    const int code = ::inflate(&stream_, Z_NO_FLUSH);
    const size_t got = out_.size() - stream_.avail_out;
    if (got > 0) take(std::string_view(out_.data(), got));
    more_ = code == Z_OK && stream_.avail_out == 0;
    if (code == Z_STREAM_END) {
      ended_ = true;
    } else if (code != Z_OK && code != Z_BUF_ERROR) {
      failed_ = any_ && got == 0 ? "bytes behind the packed text are no gzip and were left out"
                                 : "the packed file is damaged; what stands before was read";
    }
  }

  z_stream stream_{};
  std::string out_;
  bool ended_ = false, more_ = false, any_ = false;
  std::string failed_;
};

class Zstd : public Unpacker::Stream {
 public:
  Zstd() : stream_(::ZSTD_createDCtx()), out_(kOutBytes, '\0') {
    EPM_CHECK(stream_ != nullptr);
    // 128 MiB for the window, whatever the file claims: as much as zstd itself takes unasked.
    constexpr int kMostWindowLog = 27;
    ::ZSTD_DCtx_setParameter(stream_, ZSTD_d_windowLogMax, kMostWindowLog);
  }
  ~Zstd() override { ::ZSTD_freeDCtx(stream_); }

  void Feed(std::string_view bytes, const Unpacker::Take& take) override {
    ZSTD_inBuffer in = {bytes.data(), bytes.size(), 0};
    bool more = false;
    while (failed_.empty() && (in.pos < in.size || more)) {
      ZSTD_outBuffer out = {out_.data(), out_.size(), 0};
      const size_t wanted = ::ZSTD_decompressStream(stream_, &out, &in);
      if (out.pos > 0) take(std::string_view(out_.data(), out.pos));
      more = out.pos == out.size;
      ended_ = ::ZSTD_isError(wanted) == 0 && wanted == 0;
      if (::ZSTD_isError(wanted) == 0) continue;
      failed_ = ::ZSTD_getErrorCode(wanted) == ZSTD_error_frameParameter_windowTooLarge
                    ? "it is packed with a window above 128 MiB; unpack it by 'zstd -d --long=31'"
                    : "the packed file is damaged; what stands before was read";
    }
  }

  std::string Finish() override { return failed_.empty() && !ended_ ? kTorn : failed_; }

 private:
  ZSTD_DCtx* stream_;
  std::string out_;
  bool ended_ = false;
  std::string failed_;
};

}  // namespace

Unpacker::Unpacker(Take take) : take_(std::move(take)) {}
Unpacker::~Unpacker() = default;

void Unpacker::Feed(std::string_view bytes) {
  if (known_ && stream_ == nullptr) return take_(bytes);
  if (known_) return stream_->Feed(bytes, take_);
  if (bytes.empty()) return;
  const char first = head_.empty() ? bytes.front() : head_.front();
  const bool may_be_packed = first == '\x1f' || first == '\x28';
  if (may_be_packed && head_.size() + bytes.size() < kMagicBytes) {
    head_ += bytes;
    return;
  }
  known_ = true;
  const std::string held = std::exchange(head_, {});
  const std::string start = held + std::string(bytes.substr(0, kMagicBytes));
  const HeadKind kind = KindOfHead(start);
  if (kind == HeadKind::kGzip) stream_ = std::make_unique<Gzip>();
  if (kind == HeadKind::kZstd) stream_ = std::make_unique<Zstd>();
  if (!held.empty()) Feed(held);
  Feed(bytes);
}

std::string Unpacker::Finish() {
  if (!known_ && !head_.empty()) take_(head_);
  head_.clear();
  return stream_ != nullptr ? stream_->Finish() : std::string();
}

}  // namespace epochmeter::ingest::log
