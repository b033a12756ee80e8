// SPDX-License-Identifier: Apache-2.0
#include "cli/run_settings.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <limits>
#include <random>

#include "base/file.h"
#include "base/redact.h"
#include "base/strings.h"
#include "collect/proc_pid.h"
#include "collect/rank_env.h"

namespace epochmeter::cli {
namespace {

std::string Getenv(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string RandomHex(int digits) {
  std::random_device device;
  std::string text;
  for (int i = 0; i < digits; ++i) text += "0123456789abcdef"[device() % 16];
  return text;
}

// The script's name makes a run id readable: "train" of "python -u src/train.py --lr 1".
std::string ShortName(const std::vector<std::string>& command) {
  std::string best = command.empty() ? "run" : command.front();
  for (const std::string& word : command) {
    if (base::EndsWith(word, ".py") || base::EndsWith(word, ".sh")) {
      best = word.substr(0, word.size() - 3);
      break;
    }
  }
  best = best.substr(best.rfind('/') == std::string::npos ? 0 : best.rfind('/') + 1);
  std::string name;
  for (const char c : base::ToLowerAscii(best)) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    if (plain || c == '_') name += c;
    if (name.size() == 24) break;
  }
  return name.empty() ? "run" : name;
}

std::optional<collect::RankFacts> OwnRank() {
  std::string environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    environment.append(*entry).push_back('\0');
  }
  return collect::RankOfEnviron(environment);
}

// Of several runs of one job each has a file of its own; "rank3-" says whose it is.
std::string RankInName() {
  const std::optional<collect::RankFacts> rank = OwnRank();
  const bool one_of_several = rank && rank->world.value_or(1) > 1;
  return one_of_several ? "rank" + std::to_string(rank->rank) + "-" : "";
}

// {name} {time} {host} {job} {rand} {rank} in -o.
std::string ExpandTemplate(std::string text, const RunSettings& settings) {
  char host[256] = "host";
  ::gethostname(host, sizeof host - 1);
  const std::optional<collect::RankFacts> rank = OwnRank();
  const std::string job = Getenv("SLURM_JOB_ID");
  const std::array<std::pair<std::string_view, std::string>, 6> replacements = {
      {{"{name}", ShortName(settings.command)},
       {"{time}", base::FormatUtcCompact(base::WallNs())},
       {"{host}", host},
       {"{job}", job.empty() ? "nojob" : job},
       {"{rand}", RandomHex(6)},
       {"{rank}", rank ? std::to_string(rank->rank) : "0"}}};
  for (const auto& [key, value] : replacements) {
    for (size_t at = text.find(key); at != std::string::npos;
         at = text.find(key, at + value.size())) {
      text.replace(at, key.size(), value);
    }
  }
  return text;
}

base::Result<int64_t> DurationFlag(const Arguments& arguments, std::string_view name,
                                   int64_t fallback_ns, double least_s, double most_s) {
  const std::optional<std::string> text = arguments.Value(name);
  if (!text) return fallback_ns;
  const std::optional<double> seconds = base::ParseDurationSeconds(*text);
  if (!seconds || *seconds < least_s || *seconds > most_s) {
    return base::Error{.what = "cannot take --" + std::string(name) + " " + *text,
                       .where = "",
                       .why = "",
                       .what_to_do = "give a duration from " + base::FormatDuration(least_s) +
                                     " to " + base::FormatDuration(most_s) +
                                     ", such as 500ms or 5s",
                       .code = kUsageError};
  }
  return static_cast<int64_t>(*seconds * 1e9);
}

base::Result<double> CpuBudgetFlag(const Arguments& arguments, double fallback_ratio) {
  constexpr double kLeastPercent = 0.05;
  std::string text = arguments.Value("cpu-budget").value_or("");
  if (text.empty()) return fallback_ratio;
  if (text == "off") return std::numeric_limits<double>::infinity();
  if (text.back() == '%') text.pop_back();
  const std::optional<double> percent = base::ParseDouble(text);
  if (!percent || !(*percent >= kLeastPercent && *percent <= 100)) {
    return base::Error{.what = "cannot take --cpu-budget " + *arguments.Value("cpu-budget"),
                       .where = "",
                       .why = "",
                       .what_to_do =
                           "give percent of one core from 0.05 to 100, such as 0.5%, or "
                           "off",
                       .code = kUsageError};
  }
  return *percent / 100;
}

base::Result<model::Labels> TagFlags(const Arguments& arguments) {
  model::Labels labels;
  for (const std::string& tag : arguments.Values("tag")) {
    const size_t equals = tag.find('=');
    if (equals == 0 || equals == std::string::npos) {
      return base::Error{.what = "cannot take --tag " + tag,
                         .where = "",
                         .why = "",
                         .what_to_do = "write --tag key=value",
                         .code = kUsageError};
    }
    labels.emplace_back(tag.substr(0, equals), tag.substr(equals + 1));
  }
  return labels;
}

std::string ParentFolder(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

template <typename Get>
model::Labels FindIdentifying(Get get) {
  constexpr const char* kNames[] = {"PADDLE_TRAINER_ID",
                                    "PADDLE_TRAINERS_NUM",
                                    "PADDLE_NNODES",
                                    "PADDLE_JOB_ID",
                                    "RANK",
                                    "LOCAL_RANK",
                                    "WORLD_SIZE",
                                    "LOCAL_WORLD_SIZE",
                                    "GROUP_RANK",
                                    "NODE_RANK",
                                    "TORCHELASTIC_RUN_ID",
                                    "TORCHELASTIC_RESTART_COUNT",
                                    "OMPI_COMM_WORLD_RANK",
                                    "OMPI_COMM_WORLD_SIZE",
                                    "PMI_RANK",
                                    "PMI_SIZE",
                                    "SLURM_JOB_ID",
                                    "SLURM_STEP_ID",
                                    "SLURM_ARRAY_JOB_ID",
                                    "SLURM_ARRAY_TASK_ID",
                                    "SLURM_JOB_NAME",
                                    "SLURM_JOB_PARTITION",
                                    "SLURM_CLUSTER_NAME",
                                    "SLURM_NODEID",
                                    "SLURM_NNODES",
                                    "SLURM_PROCID",
                                    "SLURM_NTASKS",
                                    "SLURM_JOB_GPUS",
                                    "SLURM_JOB_END_TIME",
                                    "LSB_JOBID",
                                    "JOB_COMPLETION_INDEX",
                                    "POD_NAME",
                                    "POD_NAMESPACE",
                                    "NODE_NAME",
                                    "CUDA_VISIBLE_DEVICES",
                                    "NVIDIA_VISIBLE_DEVICES",
                                    "FLAGS_selected_gpus",
                                    "CUDA_DEVICE_ORDER",
                                    "OMP_NUM_THREADS",
                                    "CI"};
  model::Labels found;
  for (const char* name : kNames) {
    const std::string value = get(name);
    if (!value.empty()) found.emplace_back("env." + std::string(name), RedactHome(value));
  }
  return found;
}

base::Result<std::string> PrivateFolder(const std::string& folder) {
  constexpr size_t kLongestFolder = 107 - 18;  // sun_path, less "/0123456789ab.sock"
  if (folder.size() > kLongestFolder) {
    return base::SystemError("cannot have sockets in", folder, ENAMETOOLONG);
  }
  EPM_TRY(base::MakeDirectories(folder, 0700));
  struct stat info {};
  if (::lstat(folder.c_str(), &info) != 0)
    return base::SystemError("cannot look at", folder, errno);
  if (!S_ISDIR(info.st_mode) || info.st_uid != ::getuid() || (info.st_mode & 0077) != 0) {
    return base::Error{.what = "the folder for sockets is not private",
                       .where = folder,
                       .why = "",
                       .what_to_do = "remove it, or set XDG_RUNTIME_DIR to a folder of yours"};
  }
  if (::access(folder.c_str(), W_OK | X_OK) != 0) {
    return base::SystemError("cannot make sockets in", folder, errno);
  }
  return folder;
}

}  // namespace

base::Result<bool> RecordingSwitchedOn() {
  for (const char* name : {"EPOCHMETER", "ENABLE_GPU_MONITOR"}) {
    const std::string word = base::ToLowerAscii(Getenv(name));
    if (word.empty()) continue;
    for (const char* off : {"0", "off", "false", "no"}) {
      if (word == off) return false;
    }
    for (const char* on : {"1", "on", "true", "yes"}) {
      if (word == on) return true;
    }
    return base::Error{.what = "cannot take " + std::string(name) + "=" + word,
                       .where = "",
                       .why = "",
                       .what_to_do = "use 0, off, false or no; or 1, on, true or yes",
                       .code = kUsageError};
  }
  return true;
}

std::string RunsFolder(const Arguments& arguments) {
  return arguments.Value("dir").value_or("epochmeter-runs");
}

base::Result<std::string> SocketFolder() {
  const std::string own = "/epochmeter-" + std::to_string(::getuid());
  std::vector<std::string> folders;
  if (const std::string runtime = Getenv("XDG_RUNTIME_DIR"); !runtime.empty()) {
    folders.push_back(runtime + "/epochmeter");
  }
  if (const std::string temporary = Getenv("TMPDIR"); !temporary.empty()) {
    folders.push_back(temporary + own);
  }
  folders.push_back("/tmp" + own);
  base::Result<std::string> first = PrivateFolder(folders.front());
  for (size_t i = 1; i < folders.size() && !first.ok(); ++i) {
    if (base::Result<std::string> other = PrivateFolder(folders[i]); other.ok()) return other;
  }
  return first;
}

base::Result<RunSettings> MakeRunSettings(const Arguments& arguments) {
  RunSettings settings;
  settings.command = arguments.command;
  settings.run_id = base::FormatUtcCompact(base::WallNs()) + "-" +
                    arguments.Value("name").value_or(ShortName(settings.command)) + "-" +
                    RankInName() + RandomHex(6);
  EPM_ASSIGN(settings.interval_ns,
             DurationFlag(arguments, "interval", base::kNsPerSecond, 0.1, 60));
  EPM_ASSIGN(settings.cpu_ratio, CpuBudgetFlag(arguments, settings.cpu_ratio));
  EPM_ASSIGN(settings.print_ns, DurationFlag(arguments, "print", 0, 0.1, 86400));
  EPM_ASSIGN(settings.record_for_ns, DurationFlag(arguments, "for", 0, 0.1, 366 * 86400.0));
  settings.print_path = arguments.Value("print-file").value_or("");
  settings.hooks = !arguments.Has("no-hooks");
  settings.capture_output = !arguments.Has("no-capture");
  settings.output_progress = !arguments.Has("no-output-progress");
  settings.gpu = !arguments.Has("no-gpu");
  settings.all_gpus = arguments.Has("all-gpus");
  settings.force = arguments.Has("force");
  settings.quiet = arguments.Has("quiet");
  settings.json = arguments.json();
  EPM_ASSIGN(settings.labels, TagFlags(arguments));
  settings.run_path = RunsFolder(arguments) + "/" + settings.run_id + ".emr";
  if (const auto output = arguments.Value("output")) {
    if (output->empty()) {
      return base::Error{.what = "--output is empty",
                         .where = "",
                         .why = "",
                         .what_to_do = "name a file or folder",
                         .code = kUsageError};
    }
    settings.run_path = ExpandTemplate(*output, settings);
    struct stat info {};
    const bool folder = ::stat(settings.run_path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
    if (folder || base::EndsWith(settings.run_path, "/")) {
      while (base::EndsWith(settings.run_path, "/")) settings.run_path.pop_back();
      settings.run_path += "/" + settings.run_id + ".emr";
    }
  }
  EPM_TRY(base::MakeDirectories(ParentFolder(settings.run_path)));
  EPM_ASSIGN(const std::string sockets, SocketFolder());
  settings.socket_path = sockets + "/" + RandomHex(12) + ".sock";
  return settings;
}

std::string RedactHome(std::string text) {
  const std::string home = Getenv("HOME");
  if (home.size() < 2) return text;
  for (size_t at = text.find(home); at != std::string::npos; at = text.find(home, at + 1)) {
    const size_t end = at + home.size();
    if (end == text.size() || text[end] == '/' || text[end] == ':')
      text.replace(at, home.size(), "~");
  }
  return text;
}

std::vector<std::string> RedactCommand(const std::vector<std::string>& command) {
  std::vector<std::string> words;
  bool hide_next = false;
  for (const std::string& word : command) {
    const size_t equals = word.find('=');
    if (hide_next) {
      words.emplace_back("***");
    } else if (equals != std::string::npos && base::IsSecretName(word.substr(0, equals))) {
      words.push_back(word.substr(0, equals + 1) + "***");
    } else {
      words.push_back(RedactHome(base::RedactUrl(word)));
    }
    hide_next = !hide_next && base::StartsWith(word, "-") && equals == std::string::npos &&
                base::IsSecretName(word);
  }
  return words;
}

model::Labels IdentifyingEnvironment() {
  return FindIdentifying([](const char* name) { return Getenv(name); });
}

model::Labels IdentifyingEnvironment(std::string_view environ_text) {
  return FindIdentifying([environ_text](const char* name) {
    return std::string(collect::EnvironValue(environ_text, name).value_or(""));
  });
}

}  // namespace epochmeter::cli
