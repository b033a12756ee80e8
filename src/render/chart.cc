// SPDX-License-Identifier: Apache-2.0
#include "render/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "model/m4.h"
#include "render/columns.h"
#include "render/svg.h"

namespace epochmeter::render {
namespace {

constexpr double kPanelWidth = 560, kPanelHeight = 250;
constexpr double kWidePanel = 1100;
constexpr double kLeft = 64, kRight = 14, kTop = 30, kBottom = 46;  // inside a panel
constexpr double kMargin = 20, kTitleHeight = 52, kLegendRow = 22;
constexpr double kFontSize = 12;

// Of a terminal column of text; wide enough for the fonts that may stand in.
double TextWidth(std::string_view text, double size = kFontSize) {
  return static_cast<double>(DisplayWidth(text)) * size * 0.6;
}

struct Theme {
  const char *background, *text, *soft, *grid, *limit;
  std::array<const char*, 8> lines;
};
constexpr Theme kLight = {
    "#ffffff",
    "#1a1a1a",
    "#5a5a5a",
    "#dddddd",
    "#b00020",
    {"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#1a1a1a", "#8a7f00"}};
constexpr Theme kDark = {
    "#15181c",
    "#eeeeee",
    "#aab0b8",
    "#333a42",
    "#ff6b7a",
    {"#3fa7e6", "#ff7f2a", "#1fc796", "#e39cc6", "#f0b030", "#8fd0f5", "#eeeeee", "#f0e442"}};

std::string DashOf(size_t line) {
  constexpr std::array<const char*, 4> kDashes = {"", "6 2", "2 2", "8 2 2 2"};
  return kDashes[line / 4 % kDashes.size()];
}

// Where a panel's values are drawn.
struct Plot {
  double left = 0, top = 0, width = 0, height = 0;
  AxisRange x, y;
  double X(double value) const { return left + width * x.Part(value); }
  double Y(double value) const { return top + height * (1 - y.Part(value)); }
};

// The path of a line, thinned to what each column of pixels shows.
class PathMaker {
 public:
  PathMaker(const ChartLine& line, const Plot& plot) : line_(line), plot_(plot) {}

  std::string Make() {
    constexpr double kColumnsAPixel = 1.0;
    int64_t open = 0;
    for (size_t i = 0; i < std::min(line_.x.size(), line_.y.size()); ++i) {
      const double x = line_.x[i];
      const bool inside = x >= plot_.x.least && x <= plot_.x.most;
      if (!std::isfinite(line_.y[i]) || !inside) {
        Flush();
        pen_down_ = false;
        continue;
      }
      const auto column = static_cast<int64_t>(plot_.x.Part(x) * plot_.width * kColumnsAPixel);
      if (column != open) Flush();
      open = column;
      bucket_.Add(i, line_.y);
    }
    Flush();
    return std::move(path_);
  }

 private:
  void Flush() {
    bucket_.Flush([this](size_t i) {
      path_ += pen_down_ ? 'L' : 'M';
      path_ += Coordinate(std::round(plot_.X(line_.x[i]) * 10) / 10);
      path_ += ' ';
      path_ += Coordinate(std::round(plot_.Y(line_.y[i]) * 10) / 10);
      // A point of its own is a dot, by the round ends of lines.
      if (!pen_down_) path_ += "h0";
      pen_down_ = true;
    });
  }
  const ChartLine& line_;
  const Plot& plot_;
  model::M4Bucket bucket_;
  std::string path_;
  bool pen_down_ = false;
};

// Least and most finite value of all lines; the least is above the most without any.
std::pair<double, double> Extremes(const std::vector<ChartLine>& lines) {
  double least = std::numeric_limits<double>::infinity(), most = -least;
  for (const ChartLine& line : lines) {
    for (const double value : line.y) {
      if (!std::isfinite(value)) continue;
      least = std::min(least, value);
      most = std::max(most, value);
    }
  }
  return {least, most};
}

class Drawing {
 public:
  explicit Drawing(const Picture& picture)
      : picture_(picture), theme_(picture.dark ? kDark : kLight) {
    for (const ChartPanel& panel : picture.panels) {
      for (const ChartLine& line : panel.lines) {
        if (StyleOf(line.name) == names_.size()) names_.push_back(line.name);
      }
    }
    columns_ = picture.panels.size() == 4 ? 2 : 1;
    panel_width_ = columns_ == 2 ? kPanelWidth : kWidePanel;
    panel_height_ = columns_ == 2 ? kPanelHeight : kPanelHeight * 1.5;
    width_ = static_cast<double>(columns_) * panel_width_ + 2 * kMargin;
    LayLegend();
  }

  std::string Draw() {
    const size_t rows = (picture_.panels.size() + columns_ - 1) / columns_;
    const double head = kMargin + kTitleHeight + legend_height_;
    const double height = head + static_cast<double>(rows) * panel_height_ + kMargin;
    svg_.Open("svg",
              {{"xmlns", "http://www.w3.org/2000/svg"},
               {"width", Coordinate(width_)},
               {"height", Coordinate(height)},
               {"viewBox", fmt::format("0 0 {} {}", Coordinate(width_), Coordinate(height))},
               {"role", "img"},
               {"aria-labelledby", "epm-title epm-desc"},
               {"font-family",
                "'DejaVu Sans', 'Noto Sans', 'Noto Sans CJK SC', 'Noto Sans SC', sans-serif"},
               {"font-size", Coordinate(kFontSize)}});
    svg_.Leaf("title", {{"id", "epm-title"}}, picture_.title);
    svg_.Leaf("desc", {{"id", "epm-desc"}}, Description());
    svg_.Empty("rect", {{"width", "100%"}, {"height", "100%"}, {"fill", theme_.background}});
    Label(kMargin, kMargin + 16, "start", theme_.text, Fit(picture_.title, 18), 18);
    Label(kMargin, kMargin + 36, "start", theme_.soft, Fit(picture_.subtitle, kFontSize));
    DrawLegend();
    for (size_t i = 0; i < picture_.panels.size(); ++i) {
      const double x = kMargin + static_cast<double>(i % columns_) * panel_width_;
      const double y = head + static_cast<double>(i / columns_) * panel_height_;
      DrawPanel(picture_.panels[i], x, y);
    }
    svg_.Close();
    return svg_.Take();
  }

 private:
  // The line's place in the legend; as many as there are for a name that is new.
  size_t StyleOf(const std::string& name) const {
    return static_cast<size_t>(std::find(names_.begin(), names_.end(), name) - names_.begin());
  }
  SvgWriter::Attributes StrokeOf(size_t style) const {
    SvgWriter::Attributes attributes = {{"fill", "none"},
                                        {"stroke", theme_.lines[style % theme_.lines.size()]},
                                        {"stroke-width", names_.size() > 4 ? "1" : "1.4"},
                                        {"stroke-linejoin", "round"},
                                        {"stroke-linecap", "round"}};
    const std::string dash = DashOf(style);
    if (!dash.empty()) attributes.emplace_back("stroke-dasharray", dash);
    return attributes;
  }

  std::string Fit(std::string_view text, double size) const {
    const auto columns = static_cast<size_t>((width_ - 2 * kMargin) / (size * 0.6));
    return CutTo(text, columns, false);
  }

  void Label(double x, double y, const char* anchor, const char* color, std::string_view text,
             double size = kFontSize) {
    SvgWriter::Attributes attributes = {
        {"x", Coordinate(x)}, {"y", Coordinate(y)}, {"text-anchor", anchor}, {"fill", color}};
    if (size != kFontSize) attributes.emplace_back("font-size", Coordinate(size));
    if (color == theme_.limit) {  // over lines: with a rim
      attributes.emplace_back("paint-order", "stroke");
      attributes.emplace_back("stroke", theme_.background);
      attributes.emplace_back("stroke-width", "4");
    }
    svg_.Leaf("text", attributes, text);
  }
  void Rule(double x1, double y1, double x2, double y2, const char* color,
            const std::string& dash = {}) {
    SvgWriter::Attributes attributes = {{"x1", Coordinate(x1)},
                                        {"y1", Coordinate(y1)},
                                        {"x2", Coordinate(x2)},
                                        {"y2", Coordinate(y2)},
                                        {"stroke", color}};
    if (!dash.empty()) attributes.emplace_back("stroke-dasharray", dash);
    svg_.Empty("line", attributes);
  }

  // A sentence a panel, for who can't see the lines.
  std::string Description() const {
    std::string text = picture_.subtitle;
    for (const ChartPanel& panel : picture_.panels) {
      const auto [least, most] = Extremes(panel.lines);
      text += fmt::format("; {}: ", panel.title);
      if (least > most) {
        text += picture_.empty_text;
        continue;
      }
      const ShownUnit unit = UnitOf(panel, most);
      text +=
          fmt::format("{:.4g} – {:.4g} {}", least / unit.divisor, most / unit.divisor, unit.name);
    }
    return text;
  }

  static ShownUnit UnitOf(const ChartPanel& panel, double most) {
    const double size = std::max(std::fabs(most), panel.ceiling.value_or(0));
    return ShownUnitFor(panel.ucum, size);
  }

  void LayLegend() {
    constexpr double kSwatch = 28, kGap = 18;
    double x = kMargin;
    legend_height_ = names_.empty() ? 0 : kLegendRow;
    for (const std::string& name : names_) {
      const std::string text = CutTo(name, 40, false);
      const double width = kSwatch + TextWidth(text) + kGap;
      if (x > kMargin && x + width > width_ - kMargin) {
        x = kMargin;
        legend_height_ += kLegendRow;
      }
      legend_.push_back({.x = x, .y = legend_height_ - kLegendRow / 2, .text = text});
      x += width;
    }
  }

  void DrawLegend() {
    const double top = kMargin + kTitleHeight;
    for (size_t i = 0; i < legend_.size(); ++i) {
      const LegendEntry& entry = legend_[i];
      const double y = top + entry.y;
      SvgWriter::Attributes stroke = StrokeOf(i);
      stroke.emplace_back("d", fmt::format("M{} {}h22", Coordinate(entry.x), Coordinate(y - 4)));
      svg_.Empty("path", stroke);
      Label(entry.x + 28, y, "start", theme_.text, entry.text);
    }
  }

  void DrawPanel(const ChartPanel& panel, double left, double top) {
    Plot plot{.left = left + kLeft,
              .top = top + kTop,
              .width = panel_width_ - kLeft - kRight,
              .height = panel_height_ - kTop - kBottom,
              .x = picture_.x};
    auto [least, most] = Extremes(panel.lines);
    const bool empty = least > most;
    const bool limit = panel.ceiling && *panel.ceiling > 0 && std::isfinite(*panel.ceiling);
    if (limit && !empty) most = std::max(most, *panel.ceiling);
    if (limit && !empty && panel.from_zero) least = std::min(least, *panel.ceiling);
    plot.y = RangeOf(least, most, panel.from_zero);
    const ShownUnit unit = UnitOf(panel, most);
    const std::string title =
        unit.name.empty() ? panel.title : fmt::format("{} ({})", panel.title, unit.name);
    svg_.Open("g", {{"role", "group"}, {"aria-label", title}});
    Label(left + kLeft, top + 16, "start", theme_.text, CutTo(title, 80, false), 14);
    DrawGrid(plot, empty ? std::vector<Tick>() : NumberTicks(plot.y, unit.divisor));
    const bool named = limit && !empty && !panel.ceiling_name.empty();
    if (named) {
      const double y = plot.Y(*panel.ceiling);
      Rule(plot.left, y, plot.left + plot.width, y, theme_.limit, "6 3");
    }
    for (const ChartLine& line : panel.lines) {
      SvgWriter::Attributes stroke = StrokeOf(StyleOf(line.name));
      stroke.emplace_back("d", PathMaker(line, plot).Make());
      if (!stroke.back().second.empty()) svg_.Empty("path", stroke);
    }
    if (named) {
      const double y = plot.Y(*panel.ceiling);
      Label(plot.left + plot.width - 4, y - 4, "end", theme_.limit, panel.ceiling_name, 11);
    }
    DrawMarks(panel, plot);
    if (empty) {
      Label(plot.left + plot.width / 2, plot.top + plot.height / 2, "middle", theme_.soft,
            picture_.empty_text);
    }
    svg_.Close();
  }

  void DrawGrid(const Plot& plot, const std::vector<Tick>& ticks) {
    const double bottom = plot.top + plot.height;
    for (const Tick& tick : ticks) {
      const double y = plot.Y(tick.value);
      Rule(plot.left, y, plot.left + plot.width, y, theme_.grid);
      Label(plot.left - 6, y + 4, "end", theme_.soft, tick.label, 11);
    }
    for (const double epoch : picture_.epochs) {
      const double x = plot.X(epoch);
      Rule(x, plot.top, x, bottom, theme_.grid, "3 3");
      Rule(x, plot.top - 6, x, plot.top, theme_.soft);
    }
    for (const Tick& tick : picture_.x_ticks) {
      const double x = plot.X(tick.value);
      Rule(x, bottom, x, bottom + 4, theme_.soft);
      Label(x, bottom + 16, "middle", theme_.soft, tick.label, 11);
    }
    Rule(plot.left, bottom, plot.left + plot.width, bottom, theme_.soft);
    Rule(plot.left, plot.top, plot.left, bottom, theme_.soft);
    Label(plot.left + plot.width / 2, bottom + 32, "middle", theme_.soft, picture_.x_title, 11);
  }

  void DrawMarks(const ChartPanel& panel, const Plot& plot) {
    constexpr size_t kMostMarks = 200;
    double last = -std::numeric_limits<double>::infinity();
    size_t count = 0;
    for (const double at : panel.not_finite) {
      if (at < plot.x.least || at > plot.x.most || count == kMostMarks) continue;
      const double x = plot.X(at);
      if (x - last < 3) continue;  // one on top of another
      const std::string d =
          fmt::format("M{0} {1}l6 6m0 -6l-6 6", Coordinate(x - 3), Coordinate(plot.top + 2));
      svg_.Empty("path", {{"d", d}, {"stroke", theme_.limit}, {"stroke-width", "2"}});
      if (count == 0) {
        const bool right = x < plot.left + plot.width * 0.8;
        Label(right ? x + 8 : x - 8, plot.top + 10, right ? "start" : "end", theme_.limit,
              picture_.not_finite_text, 11);
      }
      last = x;
      ++count;
    }
  }

  struct LegendEntry {
    double x = 0, y = 0;
    std::string text;
  };
  const Picture& picture_;
  const Theme& theme_;
  SvgWriter svg_;
  std::vector<std::string> names_;
  std::vector<LegendEntry> legend_;
  size_t columns_ = 1;
  double panel_width_ = 0, panel_height_ = 0, width_ = 0, legend_height_ = 0;
};

}  // namespace

std::string DrawPicture(const Picture& picture) { return Drawing(picture).Draw(); }

}  // namespace epochmeter::render
