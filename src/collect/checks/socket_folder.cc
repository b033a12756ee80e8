// SPDX-License-Identifier: Apache-2.0
#include "collect/checks/check_list.h"
#include "collect/checks/look.h"

namespace epochmeter::collect {
namespace {

// A socket's address holds 107 bytes; ours has 18 more behind the folder.
constexpr size_t kLongestFolder = 89;

model::CheckFacts Run(const CheckContext& context) {
  if (!context.socket_error.empty()) {
    return {Fault("no private folder for the event socket", context.socket_error,
                  "set XDG_RUNTIME_DIR to a folder of yours with mode 0700")};
  }
  if (context.socket_folder.size() > kLongestFolder) {
    return {Fault("the path of the event socket is too long", context.socket_folder,
                  "set XDG_RUNTIME_DIR to a folder with a short path")};
  }
  return {Ok("epochs and steps can reach the recorder", context.socket_folder)};
}

}  // namespace

const CheckDef kSocketFolderCheck = {
    .id = "recording.socket", .summary = "the folder of the event socket", .Run = Run};

}  // namespace epochmeter::collect
