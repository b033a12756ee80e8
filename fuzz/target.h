// SPDX-License-Identifier: Apache-2.0
// One target per thing that reads bytes of others. A target is one <name>.cc here, a line in
// targets.cc and seeds in corpus/<name>/; libFuzzer and the plain replay of the corpus call the
// same function.
#pragma once

#include <span>
#include <string_view>

namespace epochmeter::fuzz {

struct Target {
  std::string_view name;     // of its corpus folder and of dictionaries/<name>.dict
  std::string_view summary;  // what the bytes stand for
  // Ends the process (EPM_CHECK) when an invariant is broken; each file's head says which hold.
  void (*Feed)(std::string_view bytes);
};

std::span<const Target> Targets();
// Null when there is none of this name.
const Target* FindTarget(std::string_view name);

// Each is defined in the file of its group.
void FeedFrames(std::string_view bytes);
void FeedRecover(std::string_view bytes);
void FeedChunks(std::string_view bytes);
void FeedColumns(std::string_view bytes);
void FeedRecords(std::string_view bytes);
void FeedDumpText(std::string_view bytes);
void FeedWriter(std::string_view bytes);
void FeedProtocol(std::string_view bytes);
void FeedEvents(std::string_view bytes);
void FeedRun(std::string_view bytes);
void FeedSampler(std::string_view bytes);
void FeedCapture(std::string_view bytes);
void FeedRecording(std::string_view bytes);
void FeedNvidiaSmiCsv(std::string_view bytes);
void FeedNvidiaSmiApps(std::string_view bytes);
void FeedNvidiaSmiMonitor(std::string_view bytes);
void FeedNvidiaSmiTable(std::string_view bytes);
void FeedDcgmiDmon(std::string_view bytes);
void FeedPaddleGpuLog(std::string_view bytes);
void FeedNvitop(std::string_view bytes);
void FeedWandb(std::string_view bytes);
void FeedTrackio(std::string_view bytes);
void FeedFlags(std::string_view bytes);
void FeedEnvironment(std::string_view bytes);
void FeedProc(std::string_view bytes);
void FeedHost(std::string_view bytes);
void FeedNvmlText(std::string_view bytes);
void FeedLogDecoder(std::string_view bytes);
void FeedLogSplitter(std::string_view bytes);
void FeedLogWrapper(std::string_view bytes);
void FeedLogPrefix(std::string_view bytes);
void FeedLogEngine(std::string_view bytes);
void FeedLogFormat(std::string_view bytes);

}  // namespace epochmeter::fuzz
