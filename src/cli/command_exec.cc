// SPDX-License-Identifier: Apache-2.0
#include "cli/command_exec.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "cli/command.h"

namespace epochmeter::cli {
namespace {

// As exec wants it; borrows the words.
std::vector<char*> ArgvOf(const std::vector<std::string>& command) {
  std::vector<char*> words;
  words.reserve(command.size() + 1);
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  return words;
}

}  // namespace

void SetEnvironment(const RunSettings& settings) {
  ::setenv("EPOCHMETER_RUN_ID", settings.run_id.c_str(), 1);
  ::setenv("EPOCHMETER_SOCKET", settings.socket_path.c_str(), 1);
  char self[4096];
  const ssize_t size = ::readlink("/proc/self/exe", self, sizeof self - 1);
  if (size > 0)
    ::setenv("EPOCHMETER_BINARY", std::string(self, static_cast<size_t>(size)).c_str(), 0);
  if (settings.hooks) {
    ::unsetenv("EPOCHMETER_HOOKS");
  } else {
    ::setenv("EPOCHMETER_HOOKS", "0", 1);  // for epochmeter.start() in the script
  }
  const std::string python = PythonFolder();
  if (!settings.hooks || python.empty()) return;
  std::string path = python + "/epochmeter/_bootstrap";
  const char* before = std::getenv("PYTHONPATH");
  if (before != nullptr && *before != '\0') path += ":" + std::string(before);
  ::setenv("PYTHONPATH", path.c_str(), 1);
}

std::string PythonFolder() {
  const auto usable = [](const std::string& folder) {
    return ::access((folder + "/epochmeter/_bootstrap/sitecustomize.py").c_str(), R_OK) == 0;
  };
  const char* given = std::getenv("EPOCHMETER_PYTHON_DIR");
  if (given != nullptr && usable(given)) return given;
  char self[4096];
  const ssize_t size = ::readlink("/proc/self/exe", self, sizeof self - 1);
  if (size <= 0) return {};
  std::string folder(self, static_cast<size_t>(size));
  folder.resize(folder.rfind('/'));
  for (const char* relative : {"/../share/epochmeter/python", "/../../python"}) {
    if (usable(folder + relative)) {
      char real[4096];
      return ::realpath((folder + relative).c_str(), real) != nullptr ? real : folder + relative;
    }
  }
  return {};
}

int ExecCommand(const std::vector<std::string>& command) {
  const std::vector<char*> words = ArgvOf(command);
  ::execvp(words[0], words.data());
  return errno;
}

int ExecPlainly(const std::vector<std::string>& command) {
  const int exec_errno = ExecCommand(command);
  std::fprintf(stderr, "epochmeter: cannot run %s: %s\n", command.front().c_str(),
               std::strerror(exec_errno));
  return exec_errno == ENOENT ? kExitNotFound : kExitNotExecutable;
}

}  // namespace epochmeter::cli
