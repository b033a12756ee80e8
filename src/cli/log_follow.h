// SPDX-License-Identifier: Apache-2.0
// Reads logs while they are written, all that are named at the same time. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/log_read.h"
#include "ingest/log/engine.h"
#include "ingest/log/log_inputs.h"

namespace epochmeter::cli {

class LogFollower {
 public:
  // Borrows all. `files` are those that the engine will have; new ones are added.
  LogFollower(ingest::log::LogEngine* engine, std::vector<ingest::log::LogFile>* files,
              std::vector<std::string>* failures, const LogReading& reading);
  ~LogFollower();

  // Reads what was found, and what the words come to name, until a signal, the end of all pipes
  // where there is nothing else, or the end of who reads the output. SIGINT, SIGTERM and SIGHUP are
  // blocked meanwhile; the second of them ends the process.
  base::Result<> Run(ingest::log::LogFinder* finder, const std::vector<std::string>& words,
                     const std::vector<ingest::log::LogInput>& inputs);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace epochmeter::cli
