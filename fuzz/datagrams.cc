// SPDX-License-Identifier: Apache-2.0
// Datagrams of clients: one a line, and before each a byte that says who sends it and how much
// later it comes.
//
// protocol: each datagram is accepted or refused and counted, no event lies in the future, and the
// records define every id that they name.
// events: the same, up to every report and export (output.h says what must hold of them).
#include <algorithm>

#include "base/check.h"
#include "fuzz/input.h"
#include "fuzz/output.h"
#include "fuzz/target.h"
#include "ingest/protocol.h"
#include "model/run_builder.h"

namespace epochmeter::fuzz {
namespace {

model::Run Receive(std::string_view bytes) {
  Input in(bytes);
  model::RunBuilder builder;
  model::Registry registry(builder);
  const bool bounded = in.Bit();
  ingest::ProtocolDecoder::Options options;
  if (bounded) options.not_before_ns = 0;
  ingest::ProtocolDecoder decoder(registry, builder, options);
  constexpr int64_t kBeganNs = 1'000'000'000;
  builder.Write(model::RunInfo{.run_id = "run",
                               .boot_id = "boot",
                               .anchor = {.mono_ns = kBeganNs, .boot_ns = 0, .wall_ns = kBeganNs},
                               .attributes = {}});
  int64_t now_ns = kBeganNs;
  uint64_t given = 0;
  while (!in.done()) {
    const uint8_t how = in.Byte();
    now_ns += (how >> 3) * int64_t{50'000'000};
    std::optional<int32_t> sender;
    if (how % 8 != 0) sender = 40 + how % 8;
    const auto* event = decoder.Decode(in.Until("\n"), now_ns, sender);
    const bool in_time = event == nullptr || event->t_ns <= now_ns + 10 * base::kNsPerSecond;
    EPM_CHECK(in_time && (event == nullptr || !bounded || event->t_ns >= 0));
    ++given;
    decoder.Flush(now_ns);
  }
  decoder.Flush(now_ns, true);
  EPM_CHECK(decoder.accepted() + decoder.refused() == given);
  builder.Write(model::RunEnd{.t_ns = now_ns, .reason = "exited", .exit_code = 0, .signal = {}});
  return builder.Finish();
}

}  // namespace

void FeedProtocol(std::string_view bytes) {
  const model::Run run = Receive(bytes);
  const auto undefined = [](const model::Loss& loss) { return loss.kind == "run.undefined_ids"; };
  EPM_CHECK(std::none_of(run.losses.begin(), run.losses.end(), undefined));
}

void FeedEvents(std::string_view bytes) {
  const model::Run run = Receive(bytes);
  CheckStore(run);
  CheckAllOutput(run);
}

}  // namespace epochmeter::fuzz
