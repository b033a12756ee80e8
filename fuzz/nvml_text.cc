// SPDX-License-Identifier: Apache-2.0
// Texts that a driver's library writes into buffers of ours, with and without the zero at their
// end: what is read is never longer than the buffer.
#include <algorithm>
#include <cstring>
#include <string>

#include "base/check.h"
#include "collect/nvml/identity.h"
#include "fuzz/target.h"

namespace epochmeter::fuzz {
namespace {

using namespace collect::nvml;

// What the library below says; its calls have no argument of ours.
std::string_view told;

NvmlReturn WriteText(NvmlDevice, char* text, uint32_t size) {
  std::memcpy(text, told.data(), std::min<size_t>(size, told.size()));
  return kNvmlSuccess;
}

NvmlReturn WritePciInfo(NvmlDevice, NvmlPciInfo* info) {
  std::memcpy(info, told.data(), std::min(sizeof *info, told.size()));
  return kNvmlSuccess;
}

}  // namespace

void FeedNvmlText(std::string_view bytes) {
  told = bytes;
  Api api{};
  api.uuid = WriteText;
  api.name = WriteText;
  api.pci_info = WritePciInfo;
  const NvmlDevice device{};
  EPM_CHECK(ReadUuid(api, device).size() <= bytes.size());
  EPM_CHECK(ReadName(api, device).size() <= bytes.size());
  const std::string bus_id = ReadBusId(api, device);
  EPM_CHECK(bus_id.size() <= sizeof(NvmlPciInfo::bus_id));
  EPM_CHECK(SysfsBusId(bus_id).size() <= bus_id.size());
}

}  // namespace epochmeter::fuzz
