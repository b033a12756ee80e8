// SPDX-License-Identifier: Apache-2.0
// Whether the hooks can find epochs and steps by themselves: which Python, which frameworks. Looks
// at the names of installed packages; imports and starts nothing.
#include <unistd.h>

#include <array>

#include "base/strings.h"
#include "collect/checks/check_list.h"
#include "collect/checks/look.h"

namespace epochmeter::collect {
namespace {

// Names as in the folders NAME-VERSION.dist-info; "-" is written "_" there.
constexpr std::array<const char*, 14> kFrameworks = {"torch",
                                                     "lightning",
                                                     "pytorch_lightning",
                                                     "transformers",
                                                     "accelerate",
                                                     "paddlepaddle",
                                                     "paddlepaddle_gpu",
                                                     "paddlenlp",
                                                     "tensorflow",
                                                     "tensorflow_cpu",
                                                     "keras",
                                                     "tf_keras",
                                                     "jax",
                                                     "mmengine"};

std::string FindPython(const CheckContext& context) {
  const std::string folders = EnvironmentOf("PATH");
  for (const char* name : {"python3", "python"}) {
    for (const std::string_view folder : base::Split(folders, ':')) {
      const std::string path = context.Path(std::string(folder) + "/" + name);
      if (!folder.empty() && ::access(path.c_str(), X_OK) == 0) return path;
    }
  }
  return {};
}

// lib/python3.11 and the like below the folder that holds bin/python.
std::vector<std::string> Libraries(const std::string& prefix) {
  std::vector<std::string> found;
  for (const std::string& name : NamesIn(prefix + "/lib")) {
    if (base::StartsWith(name, "python3")) found.push_back(prefix + "/lib/" + name);
  }
  return found;
}

// The folder that holds bin/python. A shim of pyenv starts the version that a file names.
std::string PrefixOf(const std::string& python) {
  const std::string bin = python.substr(0, python.rfind('/'));
  const std::string prefix = bin.substr(0, bin.rfind('/'));
  if (!base::EndsWith(bin, "/shims")) return prefix;
  std::string version = EnvironmentOf("PYENV_VERSION");
  if (version.empty()) version = ReadTrimmed(prefix + "/version").value_or("");
  const auto names = base::SplitWhitespace(version);
  return names.empty() ? prefix : prefix + "/versions/" + std::string(names.front());
}

std::vector<std::string> PackageFolders(const CheckContext& context, const std::string& prefix) {
  std::vector<std::string> folders;
  const std::string python_path = EnvironmentOf("PYTHONPATH");
  for (const auto part : base::Split(python_path, ':')) {
    if (!part.empty()) folders.push_back(context.Path(part));
  }
  for (const std::string& library : Libraries(prefix)) {
    folders.push_back(library + "/site-packages");
    folders.push_back(library + "/dist-packages");
  }
  if (Exists(prefix + "/pyvenv.cfg")) return folders;
  for (const std::string& library : Libraries(context.Path("/usr/local"))) {
    folders.push_back(library + "/dist-packages");
  }
  return folders;
}

// "torch 2.3.0" of "torch-2.3.0.dist-info"; nothing for what is no framework.
std::optional<std::string> FrameworkOf(const std::string& name) {
  constexpr std::string_view kEnd = ".dist-info";
  const size_t dash = name.find('-');
  if (!base::EndsWith(name, kEnd) || dash == std::string::npos) return std::nullopt;
  const std::string package = base::ToLowerAscii(name.substr(0, dash));
  for (const char* framework : kFrameworks) {
    if (package != framework) continue;
    return package + " " + name.substr(dash + 1, name.size() - dash - 1 - kEnd.size());
  }
  return std::nullopt;
}

// The oldest that the client runs on is 3.8; "python3.7" is told by its library's name.
bool TooOld(const std::string& library) {
  const size_t dot = library.rfind("python3.");
  const auto minor =
      dot == std::string::npos ? std::nullopt : base::ParseInt(library.substr(dot + 8));
  return minor && *minor < 8;
}

model::CheckFacts Run(const CheckContext& context) {
  model::CheckFacts facts;
  if (context.python_folder.empty()) {
    facts.push_back(Fault("the Python hooks are not installed beside the program",
                          "no epochmeter/_bootstrap in ../share/epochmeter/python",
                          "install the whole package, or set EPOCHMETER_PYTHON_DIR to its python "
                          "folder; without hooks epochs come from the output only"));
  }
  const std::string python = FindPython(context);
  if (python.empty()) {
    facts.push_back(Info("no Python on PATH", "the hooks have nothing to hook into",
                         "activate the training's environment first, then ask again"));
    return facts;
  }
  const std::string prefix = PrefixOf(python);
  std::vector<std::string> frameworks;
  for (const std::string& folder : PackageFolders(context, prefix)) {
    for (const std::string& name : NamesIn(folder)) {
      if (const auto framework = FrameworkOf(name)) frameworks.push_back(*framework);
    }
  }
  const auto libraries = Libraries(prefix);
  if (!libraries.empty() && TooOld(libraries.back())) {
    facts.push_back(Limited("this Python is too old for the hooks", python + " is below 3.8",
                            "use Python 3.8 or newer, or send events by the protocol"));
  } else if (frameworks.empty()) {
    facts.push_back(Info("no framework that the hooks know is installed", "looked beside " + python,
                         "call epochmeter.steps() in a loop of your own"));
  } else {
    facts.push_back(Ok("frameworks: " + base::Join(frameworks, ", "), python));
  }
  return facts;
}

}  // namespace

const CheckDef kPythonCheck = {
    .id = "recording.python", .summary = "Python and its frameworks", .Run = Run};

}  // namespace epochmeter::collect
