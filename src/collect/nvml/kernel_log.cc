// SPDX-License-Identifier: Apache-2.0
#include "collect/nvml/kernel_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/strings.h"

namespace epochmeter::collect::nvml {
namespace {

constexpr int kMostRecords = 20000;  // a call; what is left comes with the next

}  // namespace

std::optional<KernelXid> ParseKernelXid(std::string_view record) {
  constexpr std::string_view kMark = "NVRM: Xid (PCI:";
  const size_t semicolon = record.find(';');
  if (semicolon == std::string_view::npos) return std::nullopt;
  const size_t mark = record.find(kMark, semicolon);
  if (mark == std::string_view::npos) return std::nullopt;
  const auto head = base::Split(record.substr(0, semicolon), ',');
  if (head.size() < 3) return std::nullopt;
  const auto stamp_us = base::ParseInt(head[2]);
  if (stamp_us && (*stamp_us < 0 || *stamp_us > INT64_MAX / 1000)) return std::nullopt;
  std::string_view rest = record.substr(mark + kMark.size());
  const size_t close = rest.find("): ");
  if (!stamp_us || close == std::string_view::npos) return std::nullopt;
  KernelXid found{.t_ns = *stamp_us * 1000,
                  .bus_id = base::ToLowerAscii(rest.substr(0, close)),
                  .xid = 0,
                  .text = {}};
  rest.remove_prefix(close + 3);
  const size_t comma = rest.find(',');
  const auto xid = base::ParseUint(base::Trim(rest.substr(0, comma)));
  if (!xid || *xid > UINT32_MAX) return std::nullopt;
  found.xid = static_cast<uint32_t>(*xid);
  if (comma != std::string_view::npos) {
    found.text = base::ToValidUtf8(base::Trim(rest.substr(comma + 1)));
  }
  return found;
}

std::vector<KernelXid> KernelLog::Read() {
  std::vector<KernelXid> found;
  if (!tried_) {
    tried_ = true;
    fd_.Reset(::open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  }
  if (!fd_.valid()) return found;
  std::array<char, 8192> buffer;  // a record of the kernel fits
  for (int i = 0; i < kMostRecords; ++i) {
    const ssize_t n = ::read(fd_.get(), buffer.data(), buffer.size());
    // EPIPE: records were overwritten before they were read; the next read goes on behind them.
    if (n < 0 && (errno == EPIPE || errno == EINTR)) continue;
    if (n <= 0) break;
    const std::string_view text(buffer.data(), static_cast<size_t>(n));
    for (const std::string_view line : base::Split(text, '\n')) {
      if (auto xid = ParseKernelXid(line)) found.push_back(std::move(*xid));
    }
  }
  return found;
}

}  // namespace epochmeter::collect::nvml
