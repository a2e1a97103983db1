#include "storage/report/svg_writer.h"

#include <fmt/format.h>

#include "storage/report/format.h"

namespace stepscope::storage {
namespace {

using doc::Form;
using doc::Role;
using doc::Shape;

const char* classOf(Role role) {
  switch (role) {
    case Role::kGrid: return "grid";
    case Role::kAxis: return "axis";
    case Role::kLabel: return "";
    case Role::kName: return "lab";
    case Role::kHalo: return "halo";
    case Role::kCurve: return "line";
    case Role::kFaint: return "raw";
    case Role::kArea: return "area";
    case Role::kPoint: return "dot";
    case Role::kNotFinite: return "nan";
    case Role::kBox: return "box";
    case Role::kRoof: return "roof";
    case Role::kSpot: return "spot";
    case Role::kMark: return "mark";
    case Role::kBound: return "bound";
    case Role::kStroke: return "stroke";
    case Role::kDisc: return "disc";
  }
  return "";
}

const char* anchorOf(doc::Anchor anchor) {
  return anchor == doc::Anchor::kEnd ? " text-anchor=end" : anchor == doc::Anchor::kMiddle ? " text-anchor=middle" : "";
}

std::string pointsOf(const Shape& shape) {
  std::string text;
  for (const doc::Vertex& v : shape.at) text += fmt::format("{:.1f},{:.1f} ", v.x, v.y);
  return text;
}

// Class, and its own colour where it has one.
std::string look(const Shape& shape) {
  const std::string_view name = classOf(shape.role);
  std::string text = name.empty() ? std::string() : fmt::format(" class={}", name);
  if (shape.form == Form::kText && shape.role == Role::kName) text += " pointer-events=none";
  if (!shape.colour.empty())
    text += fmt::format(" style=\"{}:var(--{})\"", shape.form == Form::kLine ? "stroke" : "fill", shape.colour);
  return text;
}

std::string element(std::string_view name, const Shape& shape, const std::string& geometry) {
  const std::string start = fmt::format("<{}{} {}", name, look(shape), geometry);
  if (shape.tooltip.empty()) return start + "/>";
  return fmt::format("{}><title>{}</title></{}>", start, html(shape.tooltip), name);
}

std::string elementOf(const Shape& shape) {
  const doc::Vertex& a = shape.at.front();
  const doc::Vertex& b = shape.at.back();
  switch (shape.form) {
    case Form::kLine:
      return element("line", shape,
                     fmt::format("x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\"", a.x, b.x, a.y, b.y));
    case Form::kPolyline: return element("polyline", shape, fmt::format("points=\"{}\"", pointsOf(shape)));
    case Form::kPolygon: return element("polygon", shape, fmt::format("points=\"{}\"", pointsOf(shape)));
    case Form::kRect:
      return element(
          "rect", shape,
          fmt::format("x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"", a.x, a.y, b.x - a.x, b.y - a.y));
    case Form::kCircle:
      return element("circle", shape, fmt::format("cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\"", a.x, a.y, shape.radius));
    case Form::kText:
      return fmt::format("<text{} x=\"{:.1f}\" y=\"{:.1f}\"{}>{}</text>", look(shape), a.x, a.y, anchorOf(shape.anchor),
                         html(shape.text));
  }
  return {};
}

// Strips beside each other, each with its value that the sheet hides until a pointer is over it.
std::string readings(const doc::Drawing& drawing) {
  std::string text;
  const auto& all = drawing.readings;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const double x = all[i].at.x, y = all[i].at.y;
    const double left = i > 0 ? (all[i - 1].at.x + x) / 2 : x - 5;
    const double right = i + 1 < all.size() ? (x + all[i + 1].at.x) / 2 : x + 5;
    const doc::Anchor anchor = x < 150                   ? doc::Anchor::kStart
                               : x > drawing.width - 110 ? doc::Anchor::kEnd
                                                         : doc::Anchor::kMiddle;
    text += fmt::format(
        "<g class=h><rect x=\"{0:.1f}\" y=\"{1:.1f}\" width=\"{2:.1f}\" height=\"{3:.1f}\"/><g class=t><line x1=\"{4:.1f}\" "
        "x2=\"{4:.1f}\" y1=\"{5:.1f}\" y2=\"{6:.1f}\"/><circle cx=\"{4:.1f}\" cy=\"{7:.1f}\" r=\"4\"/><text x=\"{4:.1f}\" "
        "y=\"{8:.1f}\"{9}>{10}</text></g></g>",
        left, drawing.top - 12, right - left, drawing.bottom - drawing.top + 12, x, drawing.top, drawing.bottom, y,
        drawing.top - 2, anchorOf(anchor), html(all[i].text));
  }
  return text;
}

}  // namespace

std::string svgOf(const doc::Drawing& drawing) {
  std::string text = fmt::format("<svg viewBox=\"0 0 {} {}\" role=img aria-label=\"{}\">", drawing.width, drawing.height,
                                 html(drawing.label));
  for (const Shape& shape : drawing.shapes)
    if (!shape.at.empty()) text += elementOf(shape);
  return text + readings(drawing) + "</svg>\n";
}

}  // namespace stepscope::storage
