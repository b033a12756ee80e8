// SPDX-License-Identifier: Apache-2.0
// The one list of fuzz targets.
#include <algorithm>
#include <array>

#include "fuzz/target.h"

namespace epochmeter::fuzz {

std::span<const Target> Targets() {
  static constexpr std::array kTargets = {
      Target{"frames", "main and tail of a run file, checksums repaired", FeedFrames},
      Target{"recover", "such files, taken over by a recovery or a resumed writer", FeedRecover},
      Target{"chunks", "sections of a chunk set, right checksums around them", FeedChunks},
      Target{"columns", "columns and event columns without checksums", FeedColumns},
      Target{"records", "encoded records", FeedRecords},
      Target{"dump_text", "a run file as text, and any bytes as a run file", FeedDumpText},
      Target{"writer", "what a recorder does to a run file, crashes included", FeedWriter},
      Target{"protocol", "datagrams of several clients", FeedProtocol},
      Target{"events", "datagrams of several clients, up to every report and export", FeedEvents},
      Target{"run", "records of a run, up to every report and export", FeedRun},
      Target{"sampler", "packets of a sampler", FeedSampler},
      Target{"capture", "packets of a relay, and what a helper prints", FeedCapture},
      Target{"recording", "the files of a recording folder", FeedRecording},
      Target{"nvidia_smi_csv", "a file of nvidia-smi --query-gpu", FeedNvidiaSmiCsv},
      Target{"nvidia_smi_apps", "a file of nvidia-smi --query-compute-apps", FeedNvidiaSmiApps},
      Target{"nvidia_smi_monitor", "a file of nvidia-smi dmon or pmon", FeedNvidiaSmiMonitor},
      Target{"nvidia_smi_table", "a file of plain nvidia-smi", FeedNvidiaSmiTable},
      Target{"dcgmi_dmon", "a file of dcgmi dmon", FeedDcgmiDmon},
      Target{"paddle_gpu_log", "the GPU log of Paddle's launcher", FeedPaddleGpuLog},
      Target{"nvitop", "a CSV file of nvitop", FeedNvitop},
      Target{"wandb", "a log of W&B", FeedWandb},
      Target{"trackio", "metrics of Trackio", FeedTrackio},
      Target{"flags", "command lines and settings in the environment", FeedFlags},
      Target{"environment", "environments of a training's processes", FeedEnvironment},
      Target{"proc", "texts of /proc and /sys", FeedProc},
      Target{"host", "a machine's /proc and /sys, read by every host source and check", FeedHost},
      Target{"nvml_text", "texts that a driver's library writes into our buffers", FeedNvmlText},
      Target{"log_decoder", "a log in any encoding, as text", FeedLogDecoder},
      Target{"log_splitter", "text with carriage returns, backspaces and colours", FeedLogSplitter},
      Target{"log_wrapper", "lines behind marks of runtimes and launchers", FeedLogWrapper},
      Target{"log_prefix", "stamps, levels and named numbers of lines", FeedLogPrefix},
      Target{"log_engine", "a training log, up to its summary", FeedLogEngine},
      Target{"log_format", "a file of formats/", FeedLogFormat},
  };
  return kTargets;
}

const Target* FindTarget(std::string_view name) {
  const auto all = Targets();
  const auto found = std::find_if(all.begin(), all.end(),
                                  [name](const Target& target) { return target.name == name; });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace epochmeter::fuzz
