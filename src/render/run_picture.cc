// SPDX-License-Identifier: Apache-2.0
#include "render/run_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "base/redact.h"
#include "base/strings.h"
#include "model/entity_name.h"
#include "model/rank_events.h"
#include "render/chart.h"
#include "render/curve_ceiling.h"
#include "render/step_rows.h"

namespace epochmeter::render {
namespace {

using model::Curve;
using model::Scope;

constexpr size_t kMostLines = 16;
constexpr size_t kStepBuckets = 1000;  // of a picture, for each line
constexpr std::string_view kTrend = "trend";

// Figures that have a short name and words of their own.
struct KnownFigure {
  std::string_view name;  // of the picture
  Scope scope;
  std::string_view field;
  bool from_zero;
  const char *en, *zh;
};
constexpr std::array<KnownFigure, 13> kFigures = {{
    {"memory", Scope::kGpu, "memory_used_bytes", true, "GPU memory used", "GPU 显存占用"},
    {"utilization", Scope::kGpu, "utilization_ratio", true, "GPU utilization", "GPU 利用率"},
    {"temperature", Scope::kGpu, "temperature_c", false, "GPU temperature", "GPU 温度"},
    {"power", Scope::kGpu, "power_w", true, "GPU power", "GPU 功率"},
    {"sm_activity", Scope::kGpu, "sm_active_ratio", true, "SM activity", "SM 活跃度"},
    {"tensor_activity", Scope::kGpu, "tensor_active_ratio", true, "Tensor core activity",
     "张量核心活跃度"},
    {"clock", Scope::kGpu, "sm_clock_hz", true, "SM clock", "SM 时钟频率"},
    {"allocated", Scope::kRank, "allocated_bytes", true, "Memory allocated by the framework",
     "框架已分配显存"},
    {"reserved", Scope::kRank, "reserved_bytes", true, "Memory reserved by the framework",
     "框架预留显存"},
    {"host_cpu", Scope::kHost, "cpu_ratio", true, "Host CPU", "主机 CPU"},
    {"host_memory", Scope::kHost, "memory_used_bytes", true, "Host memory used", "主机内存占用"},
    {"process_cpu", Scope::kProcess, "cpu_cores", true, "CPU cores of the training",
     "训练进程占用的 CPU 核数"},
    {"process_memory", Scope::kProcess, "rss_bytes", true, "Memory of the training's processes",
     "训练进程内存"},
}};
constexpr std::array<std::string_view, 4> kTrendFigures = {"memory", "utilization", "temperature",
                                                           "power"};

const KnownFigure* FindFigure(std::string_view name) {
  const auto found = std::find_if(kFigures.begin(), kFigures.end(),
                                  [&](const KnownFigure& known) { return known.name == name; });
  return found == kFigures.end() ? nullptr : &*found;
}

// Columns of steps that have a picture, and the name of that.
struct StepFigure {
  std::string name, column, unit;
  model::Message title;
};

std::vector<StepFigure> StepFigures(const model::Run& run) {
  std::set<std::string> columns;
  for (const auto& [process, table] : run.steps) {
    for (const auto& [column, values] : table.columns) columns.insert(column);
  }
  std::vector<StepFigure> figures;
  if (columns.count("duration_s") > 0) {
    figures.push_back({"step_time", "duration_s", "s", {.en = "Step time", .zh = "单步时间"}});
  }
  if (columns.count("data_wait_s") > 0) {
    figures.push_back(
        {"data_wait", "data_wait_s", "s", {.en = "Wait for data in a step", .zh = "单步数据等待"}});
  }
  for (const std::string& column : columns) {
    if (!base::StartsWith(column, kScalarPrefix)) continue;
    const std::string name = column.substr(kScalarPrefix.size());
    figures.push_back({name, column, "1", {.en = name, .zh = name}});
  }
  return figures;
}

class PictureMaker {
 public:
  PictureMaker(const model::Run& run, const model::Report& report, const PictureOptions& options,
               RunAxis axis)
      : run_(run),
        report_(report),
        options_(options),
        axis_(std::move(axis)),
        names_(model::UniqueEntityNames(run.entities)),
        ceilings_(run, report) {}

  bool HasCurve(Scope scope, std::string_view field) const {
    return std::any_of(report_.curves.begin(), report_.curves.end(), [&](const Curve& curve) {
      return curve.field == field && ScopeOf(curve) == scope;
    });
  }

  ChartPanel CurvePanel(Scope scope, std::string_view field) const {
    ChartPanel panel;
    const auto figure = std::find_if(
        kFigures.begin(), kFigures.end(),
        [&](const KnownFigure& known) { return known.scope == scope && known.field == field; });
    panel.title = std::string(field);
    if (figure != kFigures.end()) {
      panel.title = Word(figure->en, figure->zh);
      panel.from_zero = figure->from_zero;
    }
    size_t left_out = 0;
    for (const Curve& curve : report_.curves) {
      if (curve.field != field || ScopeOf(curve) != scope || !IsShown(curve)) continue;
      if (panel.lines.size() == kMostLines) {
        ++left_out;
        continue;
      }
      panel.ucum = curve.unit == "1" && base::EndsWith(field, "_ratio") ? "%" : curve.unit;
      const std::optional<double> ceiling = ceilings_.Of(curve);
      const bool wanted = figure != kFigures.end() || panel.ucum != "%";
      if (ceiling && wanted) panel.ceiling = std::max(*ceiling, panel.ceiling.value_or(0));
      panel.lines.push_back(LineOf(curve));
    }
    if (panel.ceiling) SetCeilingName(&panel);
    SayLeftOut(left_out, &panel);
    return panel;
  }

  ChartPanel StepPanel(const StepFigure& figure) const {
    ChartPanel panel{.title = Word(figure.title.en, figure.title.zh),
                     .ucum = figure.unit,
                     .from_zero = figure.unit == "s"};
    size_t left_out = 0;
    for (const model::RankEvents& rank : model::SplitByRank(run_)) {
      const std::vector<double>* column =
          rank.steps == nullptr ? nullptr : rank.steps->Column(figure.column);
      if (column == nullptr) continue;
      if (panel.lines.size() == kMostLines) {
        ++left_out;
        continue;
      }
      ChartLine line{.name = model::ProcessName(rank.rank, rank.pid)};
      for (const size_t row : ShownSteps(*rank.steps, kStepBuckets)) {
        const double value = (*column)[row], x = axis_.At(rank.steps->t_ns[row]);
        if (model::IsAbsent(value) || std::isnan(x)) continue;
        line.x.push_back(x);
        line.y.push_back(value);
        if (!std::isfinite(value)) panel.not_finite.push_back(x);
      }
      panel.lines.push_back(std::move(line));
    }
    std::sort(panel.not_finite.begin(), panel.not_finite.end());
    SayLeftOut(left_out, &panel);
    return panel;
  }

  std::string Draw(std::vector<ChartPanel> panels) const {
    Picture picture{.title = Seen(RunName()),
                    .subtitle = Seen(Subtitle()),
                    .x_title = XTitle(),
                    .x = axis_.range(),
                    .x_ticks = axis_.Ticks(options_.language),
                    .epochs = EpochMarks(report_, axis_),
                    .panels = std::move(panels),
                    .empty_text = Word("no samples", "没有采样"),
                    .not_finite_text = Word("not finite", "非有限值"),
                    .dark = options_.dark};
    for (ChartPanel& panel : picture.panels) {
      panel.title = Seen(panel.title);
      panel.ucum = Seen(panel.ucum);
      for (ChartLine& line : panel.lines) line.name = Seen(line.name);
    }
    return DrawPicture(picture);
  }

 private:
  std::string Word(std::string_view en, std::string_view zh) const {
    return std::string(options_.language == Language::kChinese ? zh : en);
  }
  std::string Seen(const std::string& text) const {
    return options_.redact ? base::Redactor().Text(text) : text;
  }
  std::optional<Scope> ScopeOf(const Curve& curve) const {
    if (curve.entity >= run_.entities.size()) return {};
    return run_.entities[curve.entity].scope;
  }
  // GPUs that are not the job's are not in the report.
  bool IsShown(const Curve& curve) const {
    const model::EntityDef& entity = run_.entities[curve.entity];
    if (entity.scope != Scope::kGpu || report_.gpus.empty()) return true;
    return std::any_of(report_.gpus.begin(), report_.gpus.end(), [&](const model::GpuStats& gpu) {
      return gpu.gpu == model::GpuIndex(entity);
    });
  }

  ChartLine LineOf(const Curve& curve) const {
    const model::EntityDef& entity = run_.entities[curve.entity];
    ChartLine line{.name = names_[curve.entity]};
    if (entity.scope == Scope::kGpu && model::GpuIndex(entity) >= 0) {
      line.name = fmt::format("GPU {}", model::GpuIndex(entity));
    }
    line.x.reserve(curve.points.t_ns.size());
    line.y.reserve(curve.points.t_ns.size());
    for (size_t i = 0; i < curve.points.t_ns.size(); ++i) {
      line.x.push_back(axis_.At(curve.points.t_ns[i]));
      line.y.push_back(curve.points.value[i]);
    }
    return line;
  }

  void SetCeilingName(ChartPanel* panel) const {
    if (panel->ucum == "%") return;  // everybody knows 100 %: it only ends the axis
    const ShownUnit unit = ShownUnitFor(panel->ucum, *panel->ceiling);
    const std::string value = fmt::format("{:.4g} {}", *panel->ceiling / unit.divisor, unit.name);
    panel->ceiling_name =
        panel->ucum == "By" ? Word("total ", "总量 ") + value : Word("limit ", "上限 ") + value;
  }

  void SayLeftOut(size_t count, ChartPanel* panel) const {
    if (count == 0) return;
    panel->title += fmt::format(" · {}", Word(fmt::format("{} more not shown", count),
                                              fmt::format("另有 {} 条未画出", count)));
  }

  std::string RunName() const {
    if (!run_.info) return "epochmeter";
    const std::string_view name = model::Find(run_.info->attributes, "name");
    return name.empty() ? run_.info->run_id : std::string(name);
  }

  std::string Subtitle() const {
    std::vector<std::string> parts;
    const auto begin_ns = run_.WallNs(run_.Recorded().begin_ns);
    if (begin_ns) parts.push_back(base::FormatUtc(*begin_ns));
    if (report_.duration_s > 0) parts.push_back(base::FormatDuration(report_.duration_s));
    if (!report_.gpus.empty()) parts.push_back(fmt::format("{} GPU", report_.gpus.size()));
    if (run_.info) {
      const std::string_view host = model::Find(run_.info->attributes, "host");
      if (!host.empty()) parts.emplace_back(host);
    }
    return base::Join(parts, " · ");
  }

  std::string XTitle() const {
    const std::string marks = report_.epochs.empty() || axis_.kind() == PictureX::kEpoch
                                  ? ""
                                  : Word(" · dashed: epochs", " · 虚线为轮次边界");
    return XName() + marks;
  }

  std::string XName() const {
    switch (axis_.kind()) {
      case PictureX::kTime:
        return Word("time since the start", "自开始的时间");
      case PictureX::kStep:
        return Word("step", "步");
      case PictureX::kEpoch:
        return Word("epoch", "轮次");
    }
    return {};
  }

  const model::Run& run_;
  const model::Report& report_;
  const PictureOptions& options_;
  RunAxis axis_;
  std::vector<std::string> names_;
  CurveCeilings ceilings_;
};

// The scope and field of "gpu.power_w" or "power_w"; nothing when no curve has it.
std::optional<std::pair<Scope, std::string>> FindField(const PictureMaker& maker,
                                                       const std::string& name) {
  const size_t dot = name.find('.');
  const std::string field = dot == std::string::npos ? name : name.substr(dot + 1);
  for (int i = 0; i < model::kScopeCount; ++i) {
    const auto scope = static_cast<Scope>(i);
    if (dot != std::string::npos && name.substr(0, dot) != model::ScopeName(scope)) continue;
    if (maker.HasCurve(scope, field)) return std::pair(scope, field);
  }
  return {};
}

// What a person may choose from, on lines of their own: a run has hundreds.
std::string ListOfNames(const std::vector<std::string>& names) {
  std::string list;
  std::string_view scope;
  for (const std::string& name : names) {
    const size_t dot = name.find('.');
    const std::string_view of =
        std::string_view(name).substr(0, dot == std::string::npos ? 0 : dot);
    const bool follows = !list.empty() && of == scope;
    list += follows ? ", " : "\n  ";
    list += name;
    scope = of;
  }
  return list;
}

base::Error Unknown(const model::Run& run, const model::Report& report, const std::string& name) {
  std::vector<std::string> names = PictureNames(run, report);
  const std::optional<std::string> near = base::NearestWord(name, names);
  return {.what = "no chart " + name,
          .where = "",
          .why = near ? "did you mean " + *near + "?" : "",
          .what_to_do = "this run has:" + ListOfNames(names) + "\n"};
}

}  // namespace

std::vector<std::string> PictureNames(const model::Run& run, const model::Report& report) {
  std::set<std::pair<Scope, std::string>> fields;
  for (const Curve& curve : report.curves) {
    if (curve.entity < run.entities.size()) {
      fields.emplace(run.entities[curve.entity].scope, curve.field);
    }
  }
  std::vector<std::string> names = {std::string(kTrend)};
  for (const KnownFigure& figure : kFigures) {
    if (fields.count({figure.scope, std::string(figure.field)}) > 0) {
      names.emplace_back(figure.name);
    }
  }
  for (const StepFigure& figure : StepFigures(run)) names.push_back(figure.name);
  for (const auto& [scope, field] : fields) {
    names.push_back(fmt::format("{}.{}", model::ScopeName(scope), field));
  }
  return names;
}

base::Result<std::string> RenderSvg(const model::Run& run, const model::Report& report,
                                    const std::string& name, const PictureOptions& options) {
  std::optional<RunAxis> axis = RunAxis::Make(run, report, options.x);
  if (!axis) {
    return base::Error{.what = options.x == PictureX::kStep ? "the run has no numbers of steps"
                                                            : "the run has no numbers of epochs",
                       .where = "",
                       .why = "",
                       .what_to_do = "use --x time"};
  }
  const PictureMaker maker(run, report, options, std::move(*axis));
  std::vector<ChartPanel> panels;
  if (name == kTrend) {
    for (const std::string_view figure : kTrendFigures) {
      const KnownFigure* known = FindFigure(figure);
      panels.push_back(maker.CurvePanel(known->scope, known->field));
    }
    return maker.Draw(std::move(panels));
  }
  const KnownFigure* known = FindFigure(name);
  if (known != nullptr && maker.HasCurve(known->scope, known->field)) {
    return maker.Draw({maker.CurvePanel(known->scope, known->field)});
  }
  for (const StepFigure& figure : StepFigures(run)) {
    if (figure.name == name) return maker.Draw({maker.StepPanel(figure)});
  }
  const auto field = FindField(maker, name);
  if (!field) return Unknown(run, report, name);
  return maker.Draw({maker.CurvePanel(field->first, field->second)});
}

}  // namespace epochmeter::render
