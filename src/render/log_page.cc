// SPDX-License-Identifier: Apache-2.0
#include "render/log_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/clock.h"
#include "base/strings.h"
#include "render/columns.h"
#include "render/finding_text.h"
#include "render/log_problems.h"
#include "render/log_ranks.h"
#include "render/page.h"
#include "render/sparkline.h"
#include "render/units.h"

namespace epochmeter::render {
namespace {

using model::LogField;
using model::LogReport;
using model::LogSpread;

constexpr size_t kLabelWidth = 12;
constexpr size_t kMostShapes = 4;

// "9", "0.25": a printed count.
std::string Count(double number) {
  return number == std::trunc(number) && std::fabs(number) < 1e15
             ? std::to_string(static_cast<int64_t>(number))
             : fmt::format("{:.6g}", number);
}

class LogPage {
 public:
  LogPage(const LogReport& report, const TextOptions& options)
      : report_(report), page_(options), several_(report.files.size() > 1) {}

  std::string Take() {
    AddHead();
    AddFormat();
    if (report_.records > 0) {
      AddProgress();
      AddSpeed();
      AddLoss();
      AddMemory();
      AddEvaluation();
    }
    AddLogRanks(report_, &page_);
    AddLogProblems(report_, &page_);
    AddNotes();
    return page_.Take();
  }

 private:
  std::string_view In(std::string_view en, std::string_view zh) const {
    return Said(en, zh, page_.options().language);
  }

  // A line of the table at the top: what it is about, then the words, then a curve at the end.
  void Row(std::string_view en, std::string_view zh, const std::string& words,
           std::string_view trend = {}) {
    const std::string_view label = In(en, zh);
    const size_t width = DisplayWidth(label);
    const std::string gap(width < kLabelWidth ? kLabelWidth - width : 1, ' ');
    const std::string first = fmt::format("  {}{}", label, gap);
    const std::string rest(kLabelWidth + 2, ' ');
    page_.Paragraph(words, first, rest);
    for (const model::LogTrend& known : report_.trends) {
      if (known.name != trend) continue;
      const size_t room = std::min<size_t>(60, page_.width() - kLabelWidth - 2);
      const std::string line = Sparkline(known.means, room, page_.options().ascii);
      if (!line.empty()) page_.Line(rest + page_.Tinted(line, Tint::kCyan));
    }
  }

  std::string Name(uint32_t file) const {
    return file < report_.files.size() ? report_.files[file].name : std::string();
  }

  std::string At(const LogSpread& spread) const {
    return LogPlaceText(report_, spread.max_file, spread.max_line, page_.options().language);
  }

  void AddHead() {
    const std::string what = several_ ? fmt::format("{} {}", report_.files.size(),
                                                    In("files of one job", "个文件（同一作业）"))
                                      : Plain(Name(0));
    page_.Line(page_.Tinted(fmt::format("epochmeter log · {}", what), Tint::kBold));
    page_.Paragraph(fmt::format("{} {}, {}", report_.lines, In("lines", "行"),
                                base::FormatBytes(static_cast<double>(report_.bytes))),
                    "  ", "  ");
    if (report_.begin_wall_ns && report_.end_wall_ns) {
      const double seconds = base::SecondsFromNs(*report_.end_wall_ns - *report_.begin_wall_ns);
      page_.Paragraph(
          fmt::format("{} {} {} {} ({})", In("from", "从"),
                      base::FormatUtc(*report_.begin_wall_ns).substr(0, 19), In("to", "到"),
                      base::FormatUtc(*report_.end_wall_ns).substr(0, 19) + " UTC",
                      base::FormatDuration(seconds)),
          "  ", "  ");
    }
    if (report_.records == 0) {
      page_.Title(In("No training progress", "没有训练进度"));
      page_.Paragraph(In("No line of this log is a record of training progress: nothing with a "
                         "number that rises as steps or epochs do was found.",
                         "此日志中没有训练进度记录：没有找到像步数或轮次那样上升的数字。"),
                      "  ", "  ");
    }
  }

  void AddFormat() {
    if (report_.shapes.empty()) return;
    page_.Title(In("Records found", "识别到的记录"));
    size_t told = 0;
    for (const model::LogShape& shape : report_.shapes) {
      if (told++ == kMostShapes) break;
      std::vector<std::string> keys;
      for (const LogField& field : shape.first.fields) {
        if (!field.key.empty() || field.role != "other") {
          keys.push_back(field.key.empty() ? field.role : field.key);
        }
      }
      const std::string_view kind = shape.first.kind == "train"     ? In("training", "训练")
                                    : shape.first.kind == "eval"    ? In("evaluation", "评估")
                                    : shape.first.kind == "summary" ? In("summary", "汇总")
                                                                    : In("inference", "推理");
      constexpr size_t kMostKeys = 16;
      const size_t more = keys.size() > kMostKeys ? keys.size() - kMostKeys : 0;
      keys.resize(keys.size() - more);
      std::string words = base::Join(keys, ", ");
      if (more > 0) words += fmt::format(" {} {} {}", In("and", "及另外"), more, In("more", "个"));
      page_.Paragraph(words, fmt::format("  {:>8} {}: ", shape.records, kind), "      ");
    }
  }

  void AddProgress() {
    page_.Title(In("Training", "训练"));
    std::vector<std::string> parts;
    if (report_.last_epoch) {
      parts.push_back(fmt::format("{} {}", In("epoch", "轮次"), Count(*report_.last_epoch)) +
                      (report_.epochs ? fmt::format("/{}", Count(*report_.epochs)) : ""));
    }
    const model::LogPoint& last = *report_.last;
    if (const LogField* step = last.Find("step")) {
      parts.push_back(fmt::format("{} {}", In("step", "步"), Plain(step->text)) +
                      (report_.total_steps ? fmt::format("/{}", Count(*report_.total_steps)) : ""));
    }
    if (const LogField* inner = last.Find("step_in_epoch")) {
      const LogField* whole = last.Find("steps_per_epoch");
      parts.push_back(fmt::format("{} {}", In("step in epoch", "轮内步"), Count(inner->number)) +
                      (whole != nullptr ? fmt::format("/{}", Count(whole->number)) : ""));
    }
    if (parts.empty()) {
      parts.emplace_back(In("neither steps nor epochs are printed", "未打印步数和轮次"));
    }
    parts.push_back(fmt::format("{} {}", In("line", "行"), last.line));
    Row("got to", "进行到", base::Join(parts, ", "));
    std::string records = fmt::format("{} {}", report_.records, In("of training", "条训练"));
    if (report_.eval_records > 0) {
      records += fmt::format(", {} {}", report_.eval_records, In("of evaluation", "条评估"));
    }
    if (report_.starts > 1) {
      records += fmt::format(", {} {}", report_.starts, In("starts", "次启动"));
    }
    Row("records", "记录", records);
    if (!report_.eta_text.empty()) Row("ETA", "剩余时间", Plain(report_.eta_text));
  }

  std::string SpreadWords(const LogSpread& spread, std::string (*form)(double)) const {
    return fmt::format("{} {}, {} {}, {} {} ({})", In("median", "中位数"), form(spread.median),
                       In("mean", "均值"), form(spread.mean), In("longest", "最长"),
                       form(spread.max), At(spread));
  }

  void AddSpeed() {
    const auto seconds = [](double value) { return *Seconds(value); };
    if (report_.step_time) {
      Row("step time", "步时间", SpreadWords(*report_.step_time, seconds), "step_time");
    } else if (report_.estimated_step_time) {
      Row("step time", "步时间",
          fmt::format("{} {}; {}", SpreadWords(*report_.estimated_step_time, seconds),
                      In("each", "每步"), FromWords()),
          "step_time");
    }
    if (report_.throughput) {
      const LogSpread& rate = *report_.throughput;
      Row("throughput", "吞吐",
          fmt::format("{} {}, {} {}, {} {} {}", In("median", "中位数"), Scalar(rate.median),
                      In("lowest", "最低"), Scalar(rate.min), In("highest", "最高"),
                      Scalar(rate.max), Plain(report_.throughput_unit)),
          "throughput");
    }
    AddData();
  }

  std::string FromWords() const {
    const std::string& from = report_.step_time_from;
    if (from == "interval") {
      return std::string(
          In("worked out from the printed times of intervals", "由打印的间隔时间算出"));
    }
    if (from == "elapsed") {
      return std::string(In("worked out from the printed elapsed time", "由打印的累计时间算出"));
    }
    if (from == "throughput") {
      return std::string(In("worked out from the printed rate", "由打印的速率算出"));
    }
    return std::string(In("worked out from the times of the lines", "由行的时间算出"));
  }

  void AddData() {
    if (!report_.data_share) return;
    const std::string place =
        report_.data_time_place == "inside"
            ? std::string(In("inside the step time", "包含在步时间内"))
        : report_.data_time_place == "beside"
            ? std::string(In("on top of the step time", "在步时间之外"))
            : std::string(In("inside the step time or on top of it: not known",
                             "在步时间之内还是之外：未知"));
    Row("data wait", "等待数据",
        fmt::format("{:.3g} % {} ({}; {})", *report_.data_share * 100,
                    In("of the step time", "（占步时间）"), place,
                    page_.Said(report_.data_time_why)));
  }

  void AddLoss() {
    if (report_.loss_key.empty()) return;
    std::string words = fmt::format("{}: {} → {}", Plain(report_.loss_key),
                                    Scalar(*report_.loss_first), Scalar(*report_.loss_last));
    if (page_.options().ascii) {
      words = fmt::format("{}: {} -> {}", Plain(report_.loss_key), Scalar(*report_.loss_first),
                          Scalar(*report_.loss_last));
    }
    if (report_.loss)
      words += fmt::format(", {} {}", In("lowest", "最低"), Scalar(report_.loss->min));
    if (report_.non_finite_losses > 0) {
      words +=
          fmt::format(", {} {} ({} {})", report_.non_finite_losses, In("not finite", "个非有限值"),
                      In("first at line", "首个在行"), report_.first_non_finite_line);
    }
    Row("loss", "损失", words, "loss");
  }

  void AddMemory() {
    if (!report_.memory) return;
    Row("GPU memory", "显存",
        fmt::format("{} {} ({}, {})", In("highest", "最高"), *Bytes(report_.memory->max),
                    Plain(report_.memory_key), At(*report_.memory)),
        "memory");
  }

  void AddEvaluation() {
    if (!report_.last_eval) return;
    std::vector<std::string> figures;
    constexpr size_t kMostFigures = 8;
    for (const LogField& field : report_.last_eval->fields) {
      const bool figure =
          field.role == "eval_metric" || field.role == "metric" || field.role == "loss";
      if (figure && figures.size() < kMostFigures) figures.push_back(field.key + " " + field.text);
    }
    if (figures.empty()) return;
    Row("evaluation", "评估",
        fmt::format("{} ({} {})", base::Join(figures, ", "), In("last, line", "最后一次，行"),
                    report_.last_eval->line));
  }

  void AddNotes() {
    constexpr size_t kMostNotes = 12;
    std::vector<std::string> notes = report_.notes;
    if (report_.cut_lines > 0) {
      notes.push_back(fmt::format("{} {}", report_.cut_lines,
                                  In("lines longer than 1 MiB were cut", "行超过 1 MiB，已截断")));
    }
    if (report_.bad_bytes > 0) {
      notes.push_back(
          fmt::format("{} {}", report_.bad_bytes,
                      In("bytes are no text in any known encoding", "字节不属于任何已知编码")));
    }
    if (!notes.empty()) {
      page_.Title(In("Assumed", "假定"));
      page_.Items(notes, kMostNotes);
    }
    std::vector<std::string> unknown;
    for (const model::Message& message : report_.not_known) {
      unknown.emplace_back(page_.Said(message));
    }
    if (unknown.empty()) return;
    page_.Title(In("Not known", "未知"));
    page_.Items(unknown, kMostNotes);
  }

  const LogReport& report_;
  Page page_;
  const bool several_;
};

}  // namespace

std::string RenderLog(const LogReport& report, const TextOptions& options) {
  return LogPage(report, options).Take();
}

}  // namespace epochmeter::render
