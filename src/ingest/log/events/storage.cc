// SPDX-License-Identifier: Apache-2.0
// Files that could not be written or read: a full disk, missing rights.
#include <array>

#include "base/strings.h"
#include "ingest/log/events/event_text.h"
#include "ingest/log/events/families.h"

namespace epochmeter::ingest::log {
namespace {

using std::string_view;

bool Read(const EventLine& line, EventContext& context) {
  const string_view text = line.text;
  const bool full = Contains(text, "[Errno 28] No space left on device") ||
                    Contains(text, ": No space left on device") ||
                    Contains(text, "[Errno 122] Disk quota exceeded");
  const bool denied = Contains(text, "[Errno 13] Permission denied");
  if (!full && !denied) return false;
  LogEvent event = MakeEvent(full ? "disk_full" : "permission_denied", line);
  AddText(&event, "path", Between(text, ": '", "'", 300));
  context.Emit(std::move(event));
  return true;
}

constexpr auto kAnchors = std::to_array<string_view>(
    {"Nospaceleftondevice", "Diskquotaexceeded", "ErrnoPermissiondenied"});

}  // namespace

const EventFamily kStorageFamily = {"storage", kAnchors, Read};

}  // namespace epochmeter::ingest::log
