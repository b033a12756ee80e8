// SPDX-License-Identifier: Apache-2.0
#include "render/bill_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/clock.h"
#include "render/columns.h"
#include "render/page.h"
#include "render/units.h"

namespace epochmeter::render {
namespace {

using model::Bill;
using model::BillLine;
using model::TimeUse;

// Lines of a table when nobody asked for all of them.
constexpr size_t kPageful = 20;

struct Words {
  std::string_view en, zh;
  std::string_view In(Language language) const { return language == Language::kChinese ? zh : en; }
};

// In the order of TimeUse.
constexpr std::array<Words, model::kTimeUseCount> kUses = {{
    {"productive", "有效训练"},
    {"data wait", "等待数据"},
    {"communication", "通信"},
    {"throttle", "降频损失"},
    {"repeated", "重复工作"},
    {"evaluation", "评估"},
    {"checkpoint", "保存检查点"},
    {"compile", "编译"},
    {"other phases", "其他阶段"},
    {"stall", "停滞"},
    {"idle between", "步间空闲"},
    {"start-up", "启动"},
    {"tear-down", "收尾"},
    {"unused GPU", "未用 GPU"},
    {"unknown", "未知"},
}};

constexpr std::array<Words, 4> kSources = {{{"SM activity", "SM 活跃度"},
                                            {"utilisation", "利用率"},
                                            {"power by its limit", "功率占上限比例"},
                                            {"", ""}}};

Words SourceOf(const Bill& bill) {
  if (bill.activity_source == "sm_active_ratio") return kSources[0];
  if (bill.activity_source == "utilization_ratio") return kSources[1];
  if (bill.activity_source == "power_of_limit") return kSources[2];
  return kSources[3];
}

std::string Time(int64_t ns) { return base::FormatDuration(base::SecondsFromNs(ns)); }
std::string Hours(int64_t ns) { return fmt::format("{:.4g}", base::SecondsFromNs(ns) / 3600); }

std::optional<std::string> Kwh(const std::optional<double>& joules, int decimals) {
  if (!joules) return {};
  return fmt::format("{:.{}f}", *joules / 3.6e6, decimals);
}
// So many that the largest figure of a table has four digits.
int KwhDecimals(const std::optional<double>& most_joules) {
  const double kwh = std::abs(most_joules.value_or(0)) / 3.6e6;
  if (!(kwh > 0)) return 3;
  return static_cast<int>(std::clamp(3 - std::floor(std::log10(kwh)), 0.0, 9.0));
}
std::optional<std::string> Money(const std::optional<double>& amount) {
  if (!amount) return {};
  return fmt::format("{:.{}f}", *amount, *amount < 0.995 ? 4 : 2);
}
std::optional<std::string> Share(int64_t part_ns, int64_t ns) {
  if (ns <= 0) return {};
  return Percent(static_cast<double>(part_ns) / static_cast<double>(ns));
}

std::string MoneyTitle(const Bill& bill, Language language) {
  if (!bill.rates.currency.empty()) return bill.rates.currency;
  return std::string(Words{"cost", "费用"}.In(language));
}

class BillPage {
 public:
  BillPage(const Bill& bill, const TextOptions& options)
      : bill_(bill), page_(options), language_(page_.options().language) {}

  Page& page() { return page_; }

  void AddSums() {
    const bool gpu = bill_.basis == "gpu";
    const std::string unit(gpu ? In("GPU", "块 GPU") : In("process(es)", "个进程"));
    page_.Line(fmt::format("  {} {} × {} {} = {} {}", In("wall time", "时长"), Time(bill_.wall_ns),
                           bill_.devices, unit, Hours(bill_.total.total_ns),
                           gpu ? In("GPU hours", "GPU 小时") : In("process hours", "进程小时")));
    if (bill_.total.total_ns == 0) return;
    page_.Title(In("What the time went to", "时间去向"));
    TableColumn name{.title = std::string(In("use", "用途")), .left = true, .cells = {}};
    TableColumn time{.title = std::string(gpu ? In("GPU time", "GPU 时间") : In("time", "时间")),
                     .cells = {}};
    TableColumn share{.title = std::string(In("share", "占比")), .cells = {}};
    TableColumn kwh{.title = "kWh", .cells = {}};
    TableColumn cost{.title = MoneyTitle(bill_, language_), .cells = {}};
    const auto add = [&](std::string_view what, int64_t ns, std::optional<std::string> energy,
                         std::optional<std::string> money) {
      name.cells.emplace_back(what);
      time.cells.emplace_back(Time(ns));
      share.cells.push_back(Share(ns, bill_.total.total_ns));
      kwh.cells.push_back(std::move(energy));
      cost.cells.push_back(std::move(money));
    };
    const BillLine& total = bill_.total;
    const int decimals = KwhDecimals(total.energy_j);
    for (size_t i = 0; i < model::kTimeUseCount; ++i) {
      const model::UseFigures& use = total.uses[i];
      if (use.ns == 0 && i != 0) continue;
      add(kUses[i].In(language_), use.ns,
          total.energy_j ? Kwh(use.energy_j, decimals) : std::nullopt,
          total.cost ? Money(use.cost) : std::nullopt);
    }
    add(In("all", "合计"), total.total_ns, Kwh(total.energy_j, decimals), Money(total.cost));
    page_.Lines(LayOut({name, time, share, kwh, cost}, "  "));
    AddEffective();
    AddEnergy();
  }

  void AddLines(std::string_view by, size_t most) {
    const std::vector<BillLine>& lines = by == "phase"  ? bill_.phases
                                         : by == "rank" ? bill_.ranks
                                         : by == "gpu"  ? bill_.gpus
                                                        : bill_.epochs;
    if (lines.empty()) return;
    page_.Title(TitleOf(by));
    const size_t shown = std::min(most, lines.size());
    page_.Lines(LayOut(ColumnsOf(by, {lines.begin(), lines.begin() + shown}), "  "));
    if (shown < lines.size()) {
      page_.Line(fmt::format("  {} {} {} (--by {})", page_.Word(Phrase::kAnd), lines.size() - shown,
                             page_.Word(Phrase::kMore), by));
    }
  }

  void AddNotes() {
    if (bill_.notes.empty()) return;
    page_.Title(In("Notes", "说明"));
    for (const model::Message& note : bill_.notes)
      page_.Paragraph(page_.Said(note), "  - ", "    ");
  }

 private:
  std::string_view In(std::string_view en, std::string_view zh) const {
    return Words{en, zh}.In(language_);
  }

  void AddEffective() {
    const BillLine& total = bill_.total;
    if (!total.effective_ns || !total.activity_ratio) return;
    page_.Line(fmt::format("  {} {} = {} {} × {} {} ({} {})", In("effective", "有效 GPU 时间"),
                           Time(*total.effective_ns), In("productive", "有效训练"),
                           Time(total.Of(TimeUse::kProductive).ns), SourceOf(bill_).In(language_),
                           *Percent(total.activity_ratio), In("sampled in", "采样覆盖"),
                           Percent(total.activity_coverage_ratio).value_or("-")));
  }

  void AddEnergy() {
    const BillLine& total = bill_.total;
    if (!total.energy_j) return;
    page_.Title(In("Energy", "能耗"));
    const auto line = [&](std::string_view what, const std::optional<double>& joules,
                          double coverage) {
      if (!joules) return;
      page_.Line(fmt::format("  {:.5g} kWh {} ({} {})", *joules / 3.6e6, what, In("covers", "覆盖"),
                             *Percent(coverage)));
    };
    line(In("by the energy counter", "能量计数器"), total.counter_j, total.counter_coverage_ratio);
    line(In("as the integral of power", "功率积分"), total.integral_j,
         total.integral_coverage_ratio);
    if (bill_.energy_disagreement_ratio) {
      page_.Line(fmt::format("  {} {:.2g} %", In("they differ by", "二者相差"),
                             *bill_.energy_disagreement_ratio * 100));
    }
    AddSite(total);
  }

  void AddSite(const BillLine& total) {
    const model::Rates& rates = bill_.rates;
    if (total.electricity_cost) {
      page_.Line(fmt::format("  {} {} {} ({} {}/kWh, PUE {})", In("electricity", "电费"),
                             *Money(total.electricity_cost), rates.currency, *rates.electricity_kwh,
                             rates.currency, rates.pue));
    }
    if (total.carbon_g) {
      page_.Line(fmt::format("  CO2 {:.4g} g ({} g/kWh, PUE {})", *total.carbon_g,
                             *rates.carbon_g_per_kwh, rates.pue));
    }
  }

  std::string_view TitleOf(std::string_view by) const {
    if (by == "phase") return In("By phase", "按阶段");
    if (by == "rank") return In("By rank", "按进程");
    if (by == "gpu") return In("By GPU", "按 GPU");
    return In("By epoch", "按轮次");
  }

  std::string NameOf(std::string_view by, const BillLine& line) const {
    const std::string outside(In("outside", "轮次之外"));
    if (by == "epoch") return line.epoch ? std::to_string(*line.epoch) : outside;
    if (by == "phase") return line.name.empty() ? std::string(In("none", "无")) : line.name;
    if (by == "gpu") return fmt::format("{} {}", *line.gpu, line.name);
    if (line.rank) return std::to_string(*line.rank);
    return line.name.empty() ? std::string(In("none", "无")) : line.name;
  }

  std::vector<TableColumn> ColumnsOf(std::string_view by,
                                     const std::vector<BillLine>& lines) const {
    TableColumn name{.title = std::string(by == "phase"  ? In("phase", "阶段")
                                          : by == "rank" ? In("rank", "进程")
                                          : by == "gpu"  ? In("GPU", "GPU")
                                                         : In("epoch", "轮次")),
                     .left = true,
                     .cells = {}};
    TableColumn time{.title = std::string(In("time", "时间")), .cells = {}};
    TableColumn effective{.title = std::string(In("effective", "有效")), .cells = {}};
    TableColumn kwh{.title = "kWh", .cells = {}};
    TableColumn covered{.title = std::string(In("measured", "覆盖")), .cells = {}};
    TableColumn cost{.title = MoneyTitle(bill_, language_), .cells = {}};
    for (const BillLine& line : lines) {
      name.cells.emplace_back(NameOf(by, line));
      time.cells.emplace_back(Time(line.total_ns));
      effective.cells.push_back(line.effective_ns ? std::optional(Time(*line.effective_ns))
                                                  : std::nullopt);
      kwh.cells.push_back(Kwh(line.energy_j, KwhDecimals(bill_.total.energy_j)));
      covered.cells.push_back(line.energy_j ? Percent(line.energy_coverage_ratio) : std::nullopt);
      cost.cells.push_back(Money(line.cost));
    }
    std::vector<TableColumn> columns = {std::move(name), std::move(time)};
    AddShares(lines, &columns);
    for (TableColumn* column : {&effective, &kwh, &covered, &cost}) {
      columns.push_back(std::move(*column));
    }
    return columns;
  }

  // What took most, each in a column; the rest together.
  void AddShares(const std::vector<BillLine>& lines, std::vector<TableColumn>* columns) const {
    constexpr size_t kMostColumns = 4;
    std::vector<size_t> order;
    for (size_t i = 1; i < model::kTimeUseCount; ++i) {
      if (SumOf(lines, i) > 0) order.push_back(i);
    }
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return SumOf(lines, a) > SumOf(lines, b); });
    std::vector<size_t> rest;
    if (order.size() > kMostColumns + 1) {
      rest.assign(order.begin() + kMostColumns, order.end());
      order.resize(kMostColumns);
    }
    std::sort(order.begin(), order.end());
    order.insert(order.begin(), 0);
    for (const size_t use : order) {
      columns->push_back(ShareColumn(kUses[use].In(language_), lines, {use}));
    }
    if (!rest.empty()) columns->push_back(ShareColumn(In("others", "其余"), lines, rest));
  }

  static int64_t SumOf(const std::vector<BillLine>& lines, size_t use) {
    int64_t ns = 0;
    for (const BillLine& line : lines) ns += line.uses[use].ns;
    return ns;
  }

  static TableColumn ShareColumn(std::string_view title, const std::vector<BillLine>& lines,
                                 const std::vector<size_t>& uses) {
    TableColumn column{.title = std::string(title), .cells = {}};
    for (const BillLine& line : lines) {
      int64_t ns = 0;
      for (const size_t use : uses) ns += line.uses[use].ns;
      column.cells.push_back(Share(ns, line.total_ns));
    }
    return column;
  }

  const Bill& bill_;
  Page page_;
  const Language language_;
};

// One line a run.
class BillList {
 public:
  BillList(const TextOptions& options, const BillLine& all) : decimals_(KwhDecimals(all.energy_j)) {
    const auto title = [&](TableColumn* column, std::string_view en, std::string_view zh) {
      column->title = Words{en, zh}.In(options.language);
    };
    title(&name_, "run", "运行");
    name_.left = true;
    title(&gpus_, "GPUs", "GPU 数");
    title(&hours_, "GPU hours", "GPU 小时");
    title(&productive_, "productive", "有效训练");
    title(&effective_, "effective", "有效");
    title(&kwh_, "kWh", "kWh");
    title(&covered_, "measured", "覆盖");
    title(&cost_, "cost", "费用");
  }

  void Add(const std::string& name, std::optional<int64_t> gpus, const BillLine& line,
           std::string_view currency) {
    name_.cells.emplace_back(name);
    gpus_.cells.push_back(gpus ? std::optional(std::to_string(*gpus)) : std::nullopt);
    hours_.cells.emplace_back(Hours(line.total_ns));
    productive_.cells.push_back(Share(line.Of(TimeUse::kProductive).ns, line.total_ns));
    effective_.cells.push_back(line.effective_ns ? Share(*line.effective_ns, line.total_ns)
                                                 : std::nullopt);
    kwh_.cells.push_back(Kwh(line.energy_j, decimals_));
    covered_.cells.push_back(line.energy_j ? Percent(line.energy_coverage_ratio) : std::nullopt);
    cost_.cells.push_back(
        line.cost ? std::optional(fmt::format("{} {}", *Money(line.cost), Plain(currency)))
                  : std::nullopt);
  }

  std::vector<std::string> Lines() const {
    return LayOut({name_, gpus_, hours_, productive_, effective_, kwh_, covered_, cost_}, "");
  }

 private:
  const int decimals_;
  TableColumn name_, gpus_, hours_, productive_, effective_, kwh_, covered_, cost_;
};

std::string RunName(const model::Run& run) { return run.info ? Plain(run.info->run_id) : ""; }

}  // namespace

std::string_view UseWord(TimeUse use, Language language) {
  return kUses[static_cast<size_t>(use)].In(language);
}

std::string_view ActivityWord(const Bill& bill, Language language) {
  return SourceOf(bill).In(language);
}

std::string RenderBill(const model::Run& run, const model::Report& report,
                       const TextOptions& options, std::string_view by) {
  if (!report.bill) return {};
  const Bill& bill = *report.bill;
  BillPage made(bill, options);
  const Words title = {"bill", "账单"};
  made.page().Line(
      fmt::format("epochmeter {} · {}", title.In(made.page().options().language), RunName(run)));
  made.AddSums();
  if (bill.total.total_ns > 0) {
    if (by.empty() && bill.gpus.size() > 1) made.AddLines("gpu", kPageful);
    made.AddLines(by.empty() ? "epoch" : by, by.empty() ? kPageful : SIZE_MAX);
  }
  made.AddNotes();
  return made.page().Take();
}

std::string RenderBills(const std::vector<FileBill>& files, const BillLine& all,
                        const std::string& currency, const TextOptions& options) {
  Page page(options);
  BillList list(page.options(), all);
  size_t billed = 0;
  for (const FileBill& file : files) {
    if (!file.bill) continue;
    const bool gpu = file.bill->basis == "gpu";
    list.Add(CutTo(Plain(file.name), 46, options.ascii), gpu ? file.bill->devices : 0,
             gpu ? file.bill->total : BillLine{}, file.bill->rates.currency);
    ++billed;
  }
  if (billed > 1) {
    list.Add(std::string(Words{"all", "合计"}.In(page.options().language)), {}, all, currency);
  }
  page.Lines(list.Lines());
  for (const FileBill& file : files) {
    if (!file.bill) page.Paragraph(file.name + ": " + file.error, "  ", "    ", Tint::kYellow);
  }
  return page.Take();
}

}  // namespace epochmeter::render
