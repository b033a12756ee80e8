// SPDX-License-Identifier: Apache-2.0
#include "ingest/importers.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>

#include "base/strings.h"
#include "ingest/allocator.h"
#include "ingest/client_metrics.h"
#include "ingest/lines.h"

namespace epochmeter::ingest {
namespace {

constexpr size_t kHeadBytes = size_t{64} << 10;

}  // namespace

std::span<const ImporterDef> Importers() {
  static const std::array<ImporterDef, 10> kList = {
      kRecordingImporter,        kNvidiaSmiCsvImporter,   kNvidiaSmiAppsImporter,
      kNvidiaSmiMonitorImporter, kNvidiaSmiTableImporter, kDcgmiDmonImporter,
      kPaddleGpuLogImporter,     kNvitopImporter,         kWandbImporter,
      kTrackioImporter,
  };
  return kList;
}

const ImporterDef* FindImporter(std::string_view name) {
  for (const ImporterDef& importer : Importers()) {
    if (importer.name == name) return &importer;
  }
  return nullptr;
}

std::vector<std::string_view> SourceHead::Lines() const {
  std::vector<std::string_view> lines = base::Split(bytes, '\n');
  for (std::string_view& line : lines) {
    while (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  }
  if (!lines.empty() && base::StartsWith(lines[0], "\xEF\xBB\xBF")) lines[0].remove_prefix(3);
  return lines;
}

base::Result<SourceHead> ReadSourceHead(const std::string& path) {
  SourceHead head{.path = path, .folder = false, .bytes = {}};
  std::error_code error;
  const auto kind = std::filesystem::status(path, error).type();
  if (kind == std::filesystem::file_type::directory) {
    head.folder = true;
    return head;
  }
  if (kind != std::filesystem::file_type::regular) {
    const bool missing = kind == std::filesystem::file_type::not_found;
    return base::SystemError("cannot read", path, missing ? ENOENT : EINVAL,
                             "give a file or folder; sources are read twice");
  }
  EPM_ASSIGN(head.bytes, LineReader::ReadBegin(path, kHeadBytes));
  // As Windows shells write text: ASCII with zero bytes between.
  if (base::StartsWith(head.bytes, "\xFF\xFE")) std::erase(head.bytes, '\0');
  return head;
}

std::vector<const ImporterDef*> RecogniseSource(const SourceHead& head) {
  std::vector<const ImporterDef*> best;
  int most = 1;
  for (const ImporterDef& importer : Importers()) {
    const int sure = importer.Recognise(head);
    if (sure < most) continue;
    if (sure > most) best.clear();
    most = sure;
    best.push_back(&importer);
  }
  return best;
}

std::span<const model::MetricDef> ClientMetrics() {
  static const std::vector<model::MetricDef> kAll = [] {
    const auto allocator = AllocatorMetrics();
    std::vector<model::MetricDef> all(allocator.begin(), allocator.end());
    all.push_back(kHostCpuUsed);
    return all;
  }();
  return kAll;
}

}  // namespace epochmeter::ingest
