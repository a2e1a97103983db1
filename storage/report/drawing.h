// A chart as vectors, in a box of `width` × `height` with y downwards: what it looks like is decided once, and each writer
// only draws its shapes, in their order. Colours are names of the palette (style.h).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stepscope::storage::doc {

using Colour = std::string_view;  // of static life

// What a shape is for decides its stroke, width and opacity.
enum class Role {
  kGrid,
  kAxis,
  kLabel,      // text at an axis
  kName,       // text on a shape
  kHalo,       // text over lines
  kCurve,      // a series
  kFaint,      // the series that a moving mean stands for
  kArea,       // below a curve
  kPoint,      // a value of a curve
  kNotFinite,  // mark of a NaN or an infinity
  kBox,        // filled with its colour
  kRoof,       // a limit
  kSpot,       // filled with its colour, half transparent
  kMark,       // dashed line at a place
  kBound,      // dotted line at a limit
  kStroke,     // a line in its colour
  kDisc        // a dot in its colour
};

// What `at` holds the corners of.
enum class Form { kLine, kPolyline, kPolygon, kRect, kCircle, kText };
// Which end of a text stands at its place.
enum class Anchor { kStart, kMiddle, kEnd };

// A place in the box.
struct Vertex {
  double x = 0, y = 0;
};

struct Shape {
  Form form = Form::kLine;
  Role role = Role::kGrid;
  std::vector<Vertex> at;  // kRect: two corners, upper left first; kCircle: the centre; kText: the left, middle or right end
                           // of its base line
  double radius = 0;
  std::string text;
  Anchor anchor = Anchor::kStart;
  Colour colour = {};  // empty: of its role
  std::string tooltip;
};

// A value that a reader with a pointer can ask for.
struct Reading {
  Vertex at;
  std::string text;
};

struct Drawing {
  double width = 0, height = 0;
  std::string label;  // what it is
  std::vector<Shape> shapes;
  std::vector<Reading> readings;  // x ascending
  double top = 0, bottom = 0;     // of the plot that readings belong to

  bool empty() const { return shapes.empty(); }
  void line(Role role, Vertex from, Vertex to, Colour colour = {}, std::string tooltip = {});
  void text(Role role, Vertex at, std::string text, Anchor anchor = Anchor::kStart);
  void rect(Role role, Vertex upperLeft, Vertex lowerRight, Colour colour, std::string tooltip = {});
  void circle(Role role, Vertex centre, double radius, Colour colour = {}, std::string tooltip = {});
};

}  // namespace stepscope::storage::doc
