#include "storage/report/drawing.h"

#include <utility>

namespace stepscope::storage::doc {

void Drawing::line(Role role, Vertex from, Vertex to, Colour colour, std::string tooltip) {
  shapes.push_back({Form::kLine, role, {from, to}, 0, {}, Anchor::kStart, colour, std::move(tooltip)});
}

void Drawing::text(Role role, Vertex at, std::string text, Anchor anchor) {
  shapes.push_back({Form::kText, role, {at}, 0, std::move(text), anchor, {}, {}});
}

void Drawing::rect(Role role, Vertex upperLeft, Vertex lowerRight, Colour colour, std::string tooltip) {
  shapes.push_back({Form::kRect, role, {upperLeft, lowerRight}, 0, {}, Anchor::kStart, colour, std::move(tooltip)});
}

void Drawing::circle(Role role, Vertex centre, double radius, Colour colour, std::string tooltip) {
  shapes.push_back({Form::kCircle, role, {centre}, radius, {}, Anchor::kStart, colour, std::move(tooltip)});
}

}  // namespace stepscope::storage::doc
