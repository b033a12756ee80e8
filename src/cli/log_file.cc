// SPDX-License-Identifier: Apache-2.0
#include "cli/log_file.h"

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "cli/open_run.h"
#include "cli/verbs.h"
#include "export/log_rows.h"
#include "ingest/log/file_head.h"

namespace epochmeter::cli {
namespace {

void TellWarnings(const LogJobResult& result) {
  for (const std::string& warning : result.warnings) {
    std::fputs(("epochmeter: " + warning + "\n").c_str(), stderr);
  }
}

}  // namespace

int WriteLogFile(const Arguments& arguments, const LogJob& job, const std::string& format,
                 const std::optional<std::string>& path) {
  const auto output = Output::Open(path, job.inputs.front());
  if (!output.ok()) return Fail(arguments, output.error(), kExitUnreadable);
  const auto rows = exporting::MakeLogRowWriter(format, (*output)->stream());
  LogJob reading = job;
  reading.output_fd = path && *path != "-" ? -1 : STDOUT_FILENO;
  reading.after_batch = [&] { return rows->Flush().ok() && (*output)->stream().flush().good(); };
  const base::Result<LogJobResult> result = WriteLogRows(reading, rows.get());
  if ((*output)->reader_gone()) return kExitOk;
  if (!result.ok()) return Fail(arguments, result.error(), kExitUnreadable);
  base::Result<> written = rows->Finish();
  if ((*output)->reader_gone()) return kExitOk;
  if (written.ok()) written = (*output)->Close();
  if (!written.ok()) return Fail(arguments, written.error(), kExitUnreadable);
  if (result->report.records == 0) {
    std::fputs("epochmeter: no record of training progress was found\n", stderr);
  }
  TellWarnings(*result);
  return arguments.Has("strict") && result->partial ? kExitPartial : kExitOk;
}

bool IsLog(const std::string& path) {
  using ingest::log::HeadKind;
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return false;
  std::ifstream file(path, std::ios::binary);
  std::string head(4096, '\0');
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<size_t>(file.gcount()));
  const HeadKind kind = ingest::log::KindOfHead(head);
  const bool text = kind == HeadKind::kText || kind == HeadKind::kGzip || kind == HeadKind::kZstd ||
                    kind == HeadKind::kNuls;  // the hole of a truncation
  return !head.empty() && text;
}

}  // namespace epochmeter::cli
