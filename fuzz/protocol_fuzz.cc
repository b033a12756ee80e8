// SPDX-License-Identifier: Apache-2.0
// Any bytes to the protocol decoder: the first byte splits the input into datagrams of one sender.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "ingest/protocol.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace epochmeter;
  constexpr int64_t kNowNs = 1'000'000'000;
  model::MemorySink sink;
  model::Registry registry(sink);
  ingest::ProtocolDecoder decoder(registry, sink);
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  const char separator = rest.empty() ? '\n' : rest.front();
  uint64_t given = 0;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(separator, 1), rest.size());
    const auto* event = decoder.Decode(rest.substr(0, end), kNowNs, 42);
    EPM_CHECK(event == nullptr || event->t_ns <= kNowNs + 10 * base::kNsPerSecond);
    // A datagram that begins with the separator may be whole without it.
    decoder.Decode(rest.substr(1, end - 1), kNowNs, 42);
    given += 2;
    rest.remove_prefix(end);
  }
  decoder.Flush(kNowNs, true);
  EPM_CHECK(decoder.accepted() + decoder.refused() == given);
  return 0;
}
