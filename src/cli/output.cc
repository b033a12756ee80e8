// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>

#include "base/json_writer.h"
#include "base/version.h"
#include "cli/command.h"

namespace epochmeter::cli {
namespace {

void WriteTool(base::JsonWriter& json) {
  json.Key("tool").BeginObject();
  json.Field("name", "epochmeter")
      .Field("version", base::kVersion)
      .Field("revision", base::kRevision);
  json.EndObject();
}

}  // namespace

bool PrintOut(std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(STDOUT_FILENO, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    text.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

int Fail(const Arguments& arguments, const base::Error& error, int exit_code) {
  if (arguments.json()) {
    base::JsonWriter json;
    json.BeginObject().Field("schema_version", 1);
    WriteTool(json);
    json.Key("error").BeginObject();
    json.Field("what", error.what).Field("where", error.where).Field("why", error.why);
    json.Field("what_to_do", error.what_to_do).Field("exit_code", exit_code);
    json.EndObject().EndObject();
    PrintOut(json.Take() + "\n");
  }
  const std::string line = "epochmeter: " + error.Message() + "\n";
  std::fputs(line.c_str(), stderr);
  return exit_code;
}

void PrintJson(std::string_view data_json, const std::vector<std::string>& warnings) {
  base::JsonWriter json;
  json.BeginObject().Field("schema_version", 1);
  WriteTool(json);
  json.Key("data").Raw(data_json);
  json.Key("warnings").BeginArray();
  for (const std::string& warning : warnings) json.String(warning);
  json.EndArray().EndObject();
  PrintOut(json.Take() + "\n");
}

}  // namespace epochmeter::cli
