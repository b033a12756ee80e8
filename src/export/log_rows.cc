// SPDX-License-Identifier: Apache-2.0
#include "export/log_rows.h"

#include <fmt/format.h>

#include <cctype>
#include <cmath>
#include <set>

#include "base/clock.h"
#include "base/strings.h"
#include "export/text_fields.h"

namespace epochmeter::exporting {

std::unique_ptr<LogRowWriter> MakeLogCsv(std::ostream& out);  // log_csv.cc

namespace {

using base::JsonWriter;
using model::LogEventRow;
using model::LogField;
using model::LogPoint;

// One JSON object a line.
class JsonLines : public LogRowWriter {
 public:
  explicit JsonLines(std::ostream& out) : out_(out) {}

  void Record(const LogPoint& point, std::string_view file, std::string_view /*text*/) override {
    JsonWriter json;
    json.BeginObject().Field("record", point.kind).Field("file", file);
    WritePointMembers(point, json);
    out_ << json.EndObject().text() << '\n';
  }

  void Event(const LogEventRow& event, std::string_view file) override {
    JsonWriter json;
    json.BeginObject().Field("record", "event").Field("file", file);
    json.Field("line", event.lines.front());
    if (event.rank) json.Field("rank", event.rank);
    if (event.wall_ns) json.Field("timestamp", base::FormatUtc(*event.wall_ns));
    json.Field("kind", event.kind).Field("text", event.text).Key("numbers").BeginObject();
    std::set<std::string, std::less<>> keys;
    for (const auto& [key, number] : event.numbers) {
      if (keys.insert(key).second) WriteLogNumber(number, json.Key(key));
    }
    out_ << json.EndObject().EndObject().text() << '\n';
  }

  base::Result<> Finish() override { return StreamState(out_); }

 private:
  std::ostream& out_;
};

// Elastic Common Schema, one document a line. Numbers that are not finite have no place in an index
// and are named in labels.not_finite.
class Ecs : public LogRowWriter {
 public:
  explicit Ecs(std::ostream& out) : out_(out) {}

  void Record(const LogPoint& point, std::string_view file, std::string_view text) override {
    JsonWriter json = Begin(point.wall_ns, text, "info");
    json.Field("event.kind", "metric").Field("event.action", point.kind);
    const LogField* step_time = point.Find("step_time");
    constexpr double kMostSeconds = 1e9;
    if (step_time != nullptr && step_time->value >= 0 && step_time->value < kMostSeconds) {
      json.Key("event.duration").Int(std::llround(step_time->value * 1e9));
    }
    Place(file, point.line, json);
    std::string not_finite;
    for (const LogField& field : point.fields) {
      if (!std::isfinite(field.number)) not_finite += (not_finite.empty() ? "" : ",") + field.key;
    }
    Labels(point.rank, not_finite, json);
    json.Key("epochmeter").BeginObject().Field("line", point.line);
    Numbers(point, json);
    out_ << json.EndObject().EndObject().text() << '\n';
  }

  void Event(const LogEventRow& event, std::string_view file) override {
    JsonWriter json = Begin(event.wall_ns, event.text, event.bad ? "error" : "warn");
    json.Field("event.kind", event.bad ? "alert" : "event").Field("event.action", event.kind);
    if (event.bad) json.Field("error.type", event.kind).Field("error.message", event.text);
    Place(file, event.lines.front(), json);
    Labels(event.rank, {}, json);
    json.Key("epochmeter").BeginObject().Field("line", event.lines.front());
    std::set<std::string, std::less<>> keys = {"line"};
    for (const auto& [key, number] : event.numbers) {
      std::string name = Name(key);
      if (keys.insert(name).second) WriteLogNumber(number, json.Key(name));
    }
    out_ << json.EndObject().EndObject().text() << '\n';
  }

  base::Result<> Finish() override { return StreamState(out_); }

 private:
  static JsonWriter Begin(const std::optional<int64_t>& wall_ns, std::string_view text,
                          std::string_view level) {
    JsonWriter json;
    json.BeginObject();
    if (wall_ns) json.Field("@timestamp", base::FormatUtc(*wall_ns));
    json.Field("log.level", level).Field("message", text).Field("ecs.version", "8.11.0");
    json.Field("event.dataset", "epochmeter.log").Field("event.module", "epochmeter");
    return json;
  }

  static void Place(std::string_view file, uint64_t line, JsonWriter& json) {
    json.Field("log.file.path", file).Field("log.line", line);
  }

  static void Labels(std::optional<int32_t> rank, std::string_view not_finite, JsonWriter& json) {
    if (!rank && not_finite.empty()) return;
    json.Key("labels").BeginObject();
    if (rank) json.Field("rank", std::to_string(*rank));
    if (!not_finite.empty()) json.Field("not_finite", not_finite);
    json.EndObject();
  }

  // Dots and slashes would make objects, or two names for one field.
  static std::string Name(std::string_view key) {
    std::string name(key);
    for (char& letter : name) {
      const auto code = static_cast<unsigned char>(letter);
      const bool plain = code >= 0x80 || (std::isalnum(code) != 0) || letter == '_';
      if (!plain) letter = '_';
    }
    return name;
  }

  // With a point, so that an index never takes a field for whole numbers.
  static void Real(double number, JsonWriter& json) {
    std::string text = base::JsonNumber(number);
    if (text.find_first_of(".e") == std::string::npos) text += ".0";
    json.Raw(text);
  }

  static void Numbers(const LogPoint& point, JsonWriter& json) {
    std::vector<std::string> keys = {"line"};
    const auto free = [&keys](const std::string& key) {
      for (const std::string& known : keys) {
        if (known == key) return false;
      }
      keys.push_back(key);
      return true;
    };
    for (const LogColumn& column : LogColumns()) {
      const LogField* field = point.Find(column.role);
      std::optional<double> number;
      if (field != nullptr) number = column.value ? field->value : field->number;
      if (column.role == "epoch" && !number) number = point.header_epoch;
      const std::string name(column.name);
      if (number && std::isfinite(*number) && free(name)) Real(*number, json.Key(name));
    }
    for (const LogField& field : point.fields) {
      const std::string name = Name(field.key);
      if (std::isfinite(field.number) && free(name)) Real(field.number, json.Key(name));
    }
  }

  std::ostream& out_;
};

// [LEVEL] time - Step N, Loss=N, Time=Ns, GPU_Mem=NGB
class Normal : public LogRowWriter {
 public:
  explicit Normal(std::ostream& out) : out_(out) {}

  void Record(const LogPoint& point, std::string_view /*file*/, std::string_view text) override {
    Begin("INFO", point.wall_ns, point.stamp);
    if (point.kind == "train") {
      Training(point);
    } else if (point.kind == "eval") {
      Words("Eval");
      for (const LogField& field : point.fields)
        line_ += fmt::format(", {}={}", field.key, field.text);
    } else {
      Words(base::Trim(text));
    }
    End();
  }

  void Event(const LogEventRow& event, std::string_view /*file*/) override {
    Begin(event.bad ? "ERROR" : "WARNING", event.wall_ns, {});
    Words(fmt::format("{}: {}", event.kind, event.text));
    End();
  }

  base::Result<> Finish() override { return StreamState(out_); }

 private:
  void Training(const LogPoint& point) {
    auto part = [this, first = true](std::string_view name) mutable -> std::string& {
      line_ += first ? " " : ", ";
      first = false;
      return line_ += name;
    };
    const LogField* step = point.Find("step");
    if (step == nullptr) step = point.Find("step_in_epoch");
    if (step != nullptr) part("Step ") += CsvNumber(step->number);
    if (const LogField* loss = point.Find("loss")) part("Loss=") += loss->text;
    if (const LogField* time = point.Find("step_time")) {
      (part("Time=") += CsvNumber(time->value)) += 's';
    }
    if (const LogField* memory = point.Find("memory")) {
      part("GPU_Mem=") += fmt::format("{:.3f}GB", memory->value * 1e-9);
    }
  }

  void Begin(std::string_view level, const std::optional<int64_t>& wall_ns,
             std::string_view stamp) {
    ((line_ = '[') += level) += "] ";
    if (wall_ns) {
      (line_ += base::FormatUtc(*wall_ns)) += ' ';
    } else if (!stamp.empty()) {
      (line_ += stamp) += ' ';
    }
    line_ += '-';
  }

  void Words(std::string_view words) {
    if (!words.empty()) (line_ += ' ') += words;
  }

  void End() { out_ << (line_ += '\n'); }

  std::ostream& out_;
  std::string line_;
};

}  // namespace

std::unique_ptr<LogRowWriter> MakeLogRowWriter(std::string_view format, std::ostream& out) {
  if (format == "csv") return MakeLogCsv(out);
  if (format == "jsonl") return std::make_unique<JsonLines>(out);
  if (format == "ecs") return std::make_unique<Ecs>(out);
  if (format == "normal") return std::make_unique<Normal>(out);
  return nullptr;
}

}  // namespace epochmeter::exporting
