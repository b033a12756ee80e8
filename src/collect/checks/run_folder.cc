// SPDX-License-Identifier: Apache-2.0
// Whether run files can be written where they would go, and on what kind of file system.
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/network_folder.h"
#include "base/strings.h"
#include "collect/checks/check_list.h"
#include "collect/checks/look.h"

namespace epochmeter::collect {
namespace {

constexpr double kLittleBytes = 200e6;

// The folder, or the nearest above it that is there: that is where it would be made.
std::string NearestFolder(std::string folder) {
  while (!folder.empty() && !Exists(folder)) {
    const size_t slash = folder.rfind('/');
    folder = slash == std::string::npos ? "." : folder.substr(0, std::max<size_t>(slash, 1));
  }
  return folder.empty() ? "." : folder;
}

model::CheckFacts Run(const CheckContext& context) {
  const std::string folder = NearestFolder(context.run_folder);
  if (::access(folder.c_str(), W_OK | X_OK) != 0) {
    return {Fault("run files can't be written to " + context.run_folder,
                  folder + ": " + std::strerror(errno), "name another folder: --dir or -o")};
  }
  struct statvfs room {};
  if (::statvfs(folder.c_str(), &room) != 0) return {};
  if (room.f_blocks == 0) {
    return {Fault("run files can't be written to " + context.run_folder,
                  folder + " is no place for files", "name another folder: --dir or -o")};
  }
  const double free_bytes = static_cast<double>(room.f_frsize) * static_cast<double>(room.f_bavail);
  const std::string text = context.run_folder + ", " + base::FormatBytes(free_bytes) + " free";
  model::CheckFacts facts;
  if (free_bytes < kLittleBytes) {
    facts.push_back(Limited("little room for run files", text,
                            "make room, or name another folder: --dir; a full disk costs samples, "
                            "never the training"));
  } else {
    facts.push_back(Ok("run files can be written", text));
  }
  const std::string network = base::NetworkFileSystem(folder);
  if (!network.empty()) {
    facts.push_back(Info("the folder of runs is on " + network,
                         "writes may be slow or stand still; they wait in memory meanwhile",
                         "a local folder by --dir keeps the last second even when the network "
                         "fails"));
  }
  return facts;
}

}  // namespace

const CheckDef kRunFolderCheck = {
    .id = "recording.folder", .summary = "where run files go", .Run = Run};

}  // namespace epochmeter::collect
