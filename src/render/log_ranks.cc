// SPDX-License-Identifier: Apache-2.0
#include "render/log_ranks.h"

#include <fmt/format.h>

#include <cmath>
#include <set>

#include "base/clock.h"
#include "render/columns.h"
#include "render/log_problems.h"
#include "render/units.h"

namespace epochmeter::render {
namespace {

using model::LogReport;
using model::LogShare;

constexpr size_t kMostRows = 16;
constexpr size_t kFigureColumns = 64;  // of all other columns
constexpr size_t kFewestColumns = 12;  // of a name

class RankTable {
 public:
  RankTable(const LogReport& report, Page* page) : report_(report), page_(*page) {
    Head(&name_, "file", "文件");
    name_.left = true;
    Head(&rank_, "rank", "进程");
    Head(&records_, "records", "记录");
    Head(&epoch_, "epoch", "轮次");
    Head(&step_, "last step", "末步");
    Head(&time_, "a step", "每步");
    Head(&end_, "until", "直到");
    Head(&bad_, "failures", "故障");
  }

  void Add() {
    page_.Title(In("Ranks and files", "进程与文件"));
    size_t rows = 0;
    if (ByRank()) {
      for (const model::LogRankRow& row : report_.ranks) {
        if (rows++ < kMostRows) AddRow(NameOf(row.file), row.rank, row, false);
      }
    } else {
      for (const model::LogFileRow& row : report_.files) {
        if (rows++ < kMostRows) AddRow(row.name, row.rank, row, row.eval_records > 0);
      }
    }
    std::vector<TableColumn> columns = {rank_, records_, epoch_, step_, time_, end_, bad_};
    if (report_.files.size() > 1) columns.insert(columns.begin(), name_);
    page_.Lines(LayOut(columns, "  "));
    if (rows > kMostRows) {
      page_.Line(
          fmt::format("  {} {} {}", In("and", "及另外"), rows - kMostRows, In("more", "个")));
    }
    AddSlowest();
  }

 private:
  std::string_view In(std::string_view en, std::string_view zh) const {
    return Said(en, zh, page_.options().language);
  }
  void Head(TableColumn* column, std::string_view en, std::string_view zh) const {
    column->title = In(en, zh);
  }

  // Each rank has files of its own: one row tells both.
  bool ByRank() const {
    if (report_.ranks.empty()) return false;
    std::set<uint32_t> files;
    for (const model::LogRankRow& row : report_.ranks) files.insert(row.file);
    return report_.files.size() == 1 || files.size() == report_.files.size();
  }

  std::string NameOf(uint32_t file) const {
    return file < report_.files.size() ? report_.files[file].name : std::string();
  }

  // The end of a long name tells more than its begin.
  std::string Cut(const std::string& path) const {
    std::string name = Plain(path);
    const std::string_view mark = page_.options().ascii ? "..." : "…";
    const size_t room = page_.width() > kFigureColumns + kFewestColumns
                            ? page_.width() - kFigureColumns
                            : kFewestColumns;
    if (DisplayWidth(name) <= room) return name;
    while (!name.empty() && DisplayWidth(name) + DisplayWidth(mark) > room) {
      size_t next = 1;
      while (next < name.size() && (static_cast<unsigned char>(name[next]) & 0xC0) == 0x80) ++next;
      name.erase(0, next);
    }
    return std::string(mark) + name;
  }

  static std::optional<std::string> Whole(const std::optional<double>& number) {
    if (!number || !std::isfinite(*number)) return {};
    return fmt::format("{:.15g}", *number);
  }

  void AddRow(const std::string& name, std::optional<int32_t> rank, const LogShare& share,
              bool evaluates) {
    name_.cells.emplace_back(Cut(name));
    rank_.cells.push_back(rank ? std::optional(std::to_string(*rank)) : std::nullopt);
    records_.cells.emplace_back(share.records > 0 || !evaluates
                                    ? std::to_string(share.records)
                                    : std::string(In("evaluation", "评估")));
    epoch_.cells.push_back(Whole(share.last_epoch));
    step_.cells.push_back(Whole(share.last_step));
    time_.cells.push_back(share.mean_step_s ? Seconds(*share.mean_step_s) : std::nullopt);
    end_.cells.push_back(share.last_wall_ns
                             ? std::optional(base::FormatUtc(*share.last_wall_ns).substr(11, 8))
                             : std::nullopt);
    bad_.cells.emplace_back(share.bad_events > 0 ? std::to_string(share.bad_events)
                                                 : std::string("-"));
  }

  void AddSlowest() {
    if (!report_.slowest_rank) return;
    double others = 0;
    size_t count = 0;
    const model::LogRankRow* slowest = nullptr;
    for (const model::LogRankRow& row : report_.ranks) {
      if (row.rank == report_.slowest_rank) {
        slowest = &row;
      } else if (row.mean_step_s) {
        others += *row.mean_step_s;
        ++count;
      }
    }
    if (slowest == nullptr || count == 0 || !(others > 0)) return;
    const double ratio = *slowest->mean_step_s / (others / static_cast<double>(count));
    page_.Paragraph(fmt::format("{} {} {} {:.3g} {}", In("slowest: rank", "最慢：进程"),
                                *slowest->rank, In("takes", "每步用时为其他进程均值的"), ratio,
                                In("times as long for a step as the others", "倍")),
                    "  ", "  ");
  }

  const LogReport& report_;
  Page& page_;
  TableColumn name_, rank_, records_, epoch_, step_, time_, end_, bad_;
};

}  // namespace

void AddLogRanks(const LogReport& report, Page* page) {
  if (report.ranks.size() < 2 && report.files.size() < 2) return;
  RankTable(report, page).Add();
}

}  // namespace epochmeter::render
