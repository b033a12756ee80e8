// SPDX-License-Identifier: Apache-2.0
// From what a user names (files, folders, patterns, stdin) to the logs that are read. Any thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace epochmeter::ingest::log {

// One log: a file, a pipe, or the files of one that was rotated.
struct LogInput {
  std::string name;                // of its newest file, as named; "-" is stdin
  std::vector<std::string> parts;  // paths, oldest first
  std::optional<int64_t> modified_ns;
  bool there = true;
};

class LogFinder {
 public:
  // `live`: a file that is not there yet counts as found, and so does a pattern without a match.
  explicit LogFinder(bool live) : live_(live) {}

  // All that `words` name and was not found before, in the order of the words, those of a folder or
  // pattern in natural order. Folders are read with all that is below them, without hidden files
  // and what is no log; a pattern is one ("log/*.log") when no file has it as its name.
  std::vector<LogInput> Find(const std::vector<std::string>& words);

  // What could not be read, until now.
  const std::vector<base::Error>& errors() const { return errors_; }
  // What was left out on purpose, a sentence per folder or pattern with counts.
  std::vector<std::string> LeftOut() const;
  // Whether later files may be found by the same words.
  bool open() const { return open_; }

 private:
  using FileId = std::pair<uint64_t, uint64_t>;  // device, inode

  void FindWord(const std::string& word, std::vector<std::string>* paths);
  void AddFolder(const std::string& folder, const std::string& word,
                 std::vector<std::string>* paths);
  void AddPattern(const std::string& word, std::vector<std::string>* paths);
  void AddFound(const std::string& path, const std::string& word, std::vector<std::string>* paths);
  void AddNamed(const std::string& path, std::vector<std::string>* paths);
  void LeaveOut(const std::string& word, const std::string& path, const char* why);
  void Tell(base::Error error);
  bool New(const std::string& path);
  std::vector<LogInput> Join(const std::vector<std::string>& paths);

  bool live_;
  bool open_ = false;
  std::set<FileId> seen_;
  std::set<std::string> named_;  // not there, or nothing that has an identity
  std::set<std::string> logs_;   // given
  std::set<std::string> known_;  // of folders and patterns: looked at
  std::vector<base::Error> errors_;
  std::set<std::string> failed_;                                                  // paths
  std::map<std::string, std::map<std::string, std::set<std::string>>> left_out_;  // word, why
};

}  // namespace epochmeter::ingest::log
