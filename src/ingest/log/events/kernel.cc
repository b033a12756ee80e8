// SPDX-License-Identifier: Apache-2.0
// What NVIDIA's kernel driver reports of a GPU: Xid, with its number, device and process.
#include <array>

#include "base/strings.h"
#include "ingest/log/events/event_text.h"
#include "ingest/log/events/families.h"

namespace epochmeter::ingest::log {
namespace {

using std::string_view;

// "NVRM: Xid (PCI:0000:38:00): 43, pid=2924364, name=pt_main_thread, Ch 00000008"
bool Read(const EventLine& line, EventContext& context) {
  const auto rest = After(line.text, "NVRM: Xid (");
  if (!rest) return false;
  const size_t close = rest->find("): ");
  if (close == string_view::npos || close > 64) return false;
  const string_view behind = rest->substr(close + 3);
  const auto xid = IntAtBegin(behind);
  if (!xid) return false;
  LogEvent event = MakeEvent("xid", line);
  AddText(&event, "pci", rest->substr(0, close));
  AddNumber(&event, "xid", xid);
  AddNumber(&event, "pid", IntAfter(behind, "pid="));
  const string_view name = WordAfter(behind, "name=", ",");
  if (name != "<unknown>") AddText(&event, "process", CutText(name, 64));
  context.Emit(std::move(event));
  return true;
}

constexpr auto kAnchors = std::to_array<string_view>({"NVRMXid"});

}  // namespace

const EventFamily kKernelFamily = {"kernel", kAnchors, Read};

}  // namespace epochmeter::ingest::log
