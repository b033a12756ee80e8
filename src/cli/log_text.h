// SPDX-License-Identifier: Apache-2.0
// One log of the engine: the texts of its files, one behind the other. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/log_part.h"
#include "ingest/log/engine.h"

namespace epochmeter::cli {

class LogText {
 public:
  // Opens a file of the engine, which it borrows.
  LogText(ingest::log::LogEngine* engine, const ingest::log::LogFile& file)
      : engine_(engine), number_(engine->Open(file)) {}

  // Shows the engine the begin of the log's first file and the end of its last, where they can be
  // seen without taking them from a pipe. Before anything is given.
  void Survey(const std::string& first, const std::string& last);
  // Gives one file whole; a line that the file before left open is ended. As LogPart::Read.
  base::Result<> Read(const std::string& path, const std::function<bool()>& going_on,
                      std::vector<std::string>* warnings);
  void Give(std::string_view bytes);
  // Of the file before, where it was left open.
  void EndLine();
  void Close() { engine_->Close(number_); }

  bool empty() const { return bytes_ == 0; }
  bool open_line() const { return open_line_; }
  // Where each file that was read begins: "train.log.1 from line 201".
  std::string Places() const;
  // That were ended, of a log of several files.
  uint64_t lines() const { return lines_; }

 private:
  struct Place {
    std::string name;
    uint64_t line = 0;
  };
  ingest::log::LogEngine* engine_;
  uint32_t number_;
  uint64_t bytes_ = 0;
  bool open_line_ = false;
  bool several_ = false;
  uint64_t lines_ = 0;
  std::vector<Place> places_;
};

}  // namespace epochmeter::cli
