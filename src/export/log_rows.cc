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
    if (point.kind == "train") {
      Line("INFO", point.wall_ns, point.stamp, Training(point));
    } else {
      std::string words = point.kind == "eval" ? "Eval" : std::string(base::Trim(text));
      for (const LogField& field : point.fields) {
        if (point.kind == "eval") words += fmt::format(", {}={}", field.key, field.text);
      }
      Line("INFO", point.wall_ns, point.stamp, words);
    }
  }

  void Event(const LogEventRow& event, std::string_view /*file*/) override {
    Line(event.bad ? "ERROR" : "WARNING", event.wall_ns, {},
         fmt::format("{}: {}", event.kind, event.text));
  }

  base::Result<> Finish() override { return StreamState(out_); }

 private:
  static std::string Number(double number) { return CsvNumber(number); }

  static std::string Training(const LogPoint& point) {
    std::vector<std::string> parts;
    const LogField* step = point.Find("step");
    const LogField* inner = point.Find("step_in_epoch");
    if (step != nullptr || inner != nullptr) {
      parts.push_back("Step " + Number((step != nullptr ? step : inner)->number));
    }
    const LogField* loss = point.Find("loss");
    if (loss != nullptr) parts.push_back("Loss=" + loss->text);
    const LogField* time = point.Find("step_time");
    if (time != nullptr) parts.push_back("Time=" + Number(time->value) + "s");
    const LogField* memory = point.Find("memory");
    if (memory != nullptr) parts.push_back(fmt::format("GPU_Mem={:.3f}GB", memory->value * 1e-9));
    return base::Join(parts, ", ");
  }

  void Line(std::string_view level, const std::optional<int64_t>& wall_ns, std::string_view stamp,
            std::string_view words) {
    out_ << '[' << level << "] ";
    if (wall_ns) {
      out_ << base::FormatUtc(*wall_ns) << ' ';
    } else if (!stamp.empty()) {
      out_ << stamp << ' ';
    }
    out_ << '-' << (words.empty() ? "" : " ") << words << '\n';
  }

  std::ostream& out_;
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
