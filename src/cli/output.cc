// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "base/file.h"
#include "base/json_writer.h"
#include "cli/command.h"
#include "export/json_document.h"

namespace epochmeter::cli {
namespace {

constexpr int kSchemaVersion = 1;

}  // namespace

void PrintOut(std::string_view text) {
  const base::Result<> written = base::WriteAll(STDOUT_FILENO, text, "stdout");
  if (written.ok()) return;
  if (written.error().code == EPIPE) std::_Exit(kExitOk);
  std::fputs(("epochmeter: " + written.error().Message() + "\n").c_str(), stderr);
  std::_Exit(kExitUnreadable);
}

int Fail(const Arguments& arguments, const base::Error& error, int exit_code) {
  if (arguments.json()) {
    base::JsonWriter json;
    exporting::BeginDocument(kSchemaVersion, json);
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

std::string JsonEnvelope(std::string_view data_json, const std::vector<std::string>& warnings) {
  base::JsonWriter json;
  exporting::BeginDocument(kSchemaVersion, json);
  json.Key("data").Raw(data_json);
  exporting::EndDocument(warnings, json);
  return json.Take();
}

void PrintJson(std::string_view data_json, const std::vector<std::string>& warnings) {
  PrintOut(JsonEnvelope(data_json, warnings) + "\n");
}

}  // namespace epochmeter::cli
