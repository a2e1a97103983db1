// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/print/printed_drawing.h"

#include <QPainter>
#include <QPolygonF>
#include <algorithm>

#include "storage/report/format.h"

namespace stepscope::print {
namespace {

using storage::doc::Anchor;
using storage::doc::Form;
using storage::doc::Role;
using storage::doc::Shape;

constexpr double kLetters = 11;  // of the drawing

struct Look {
  const char* stroke = nullptr;
  double width = 0;  // of the stroke, in units of the drawing
  const char* fill = nullptr;
  double opacity = 1;
  Qt::PenStyle style = Qt::SolidLine;
};

Look lookOf(Role role) {
  switch (role) {
    case Role::kGrid: return {"grid", 1};
    case Role::kAxis: return {"border", 1};
    case Role::kLabel: return {"muted"};
    case Role::kName: return {"text"};
    case Role::kHalo: return {"text"};
    case Role::kCurve: return {"accent", 1.8};
    case Role::kFaint: return {"accent", 1, nullptr, 0.35};
    case Role::kArea: return {nullptr, 0, "accent", 0.07};
    case Role::kPoint: return {nullptr, 0, "accent"};
    case Role::kNotFinite: return {nullptr, 0, "error"};
    case Role::kBox: return {"panel", 0.5, "accent"};
    case Role::kRoof: return {"text", 1.2, nullptr, 0.75};
    case Role::kSpot: return {"panel", 0.6, "accent", 0.5};
    case Role::kMark: return {"text", 1, nullptr, 1, Qt::DashLine};
    case Role::kBound: return {"ok", 1, nullptr, 1, Qt::DotLine};
    case Role::kStroke: return {"muted", 2};
    case Role::kDisc: return {nullptr, 0, "muted"};
  }
  return {};
}

class Artist {
 public:
  Artist(QPainter& painter, const Paper& paper, QPointF upperLeft, double scale)
      : painter_(painter), paper_(paper), corner_(upperLeft), scale_(scale) {}

  void draw(const Shape& shape) {
    Look look = lookOf(shape.role);
    painter_.setOpacity(look.opacity);
    if (shape.form == Form::kText) return text(shape, look);
    const bool filled = shape.form != Form::kLine && shape.form != Form::kPolyline;
    const auto own = [&shape](const char* colour) {
      return inkOf(shape.colour.empty() ? std::string_view(colour) : shape.colour);
    };
    QPen pen(Qt::NoPen);
    if (look.stroke) {
      pen =
          QPen(filled ? inkOf(look.stroke) : own(look.stroke), look.width * scale_, look.style, Qt::RoundCap, Qt::RoundJoin);
      if (look.style != Qt::SolidLine) pen.setCapStyle(Qt::FlatCap);
    }
    painter_.setPen(pen);
    painter_.setBrush(filled && look.fill ? QBrush(own(look.fill)) : QBrush(Qt::NoBrush));
    switch (shape.form) {
      case Form::kLine: painter_.drawLine(at(shape.at.front()), at(shape.at.back())); break;
      case Form::kPolyline: painter_.drawPolyline(polygon(shape)); break;
      case Form::kPolygon: painter_.drawPolygon(polygon(shape)); break;
      case Form::kRect: painter_.drawRect(QRectF(at(shape.at.front()), at(shape.at.back()))); break;
      case Form::kCircle: painter_.drawEllipse(at(shape.at.front()), shape.radius * scale_, shape.radius * scale_); break;
      case Form::kText: break;
    }
  }

 private:
  QPointF at(const storage::doc::Vertex& v) const { return corner_ + QPointF(v.x, v.y) * scale_; }
  QPolygonF polygon(const Shape& shape) const {
    QPolygonF points;
    for (const storage::doc::Vertex& v : shape.at) points.push_back(at(v));
    return points;
  }
  void text(const Shape& shape, const Look& look) {
    QFont font = paper_.font(1);
    font.setPixelSize(std::max(1, qRound(kLetters * scale_)));
    painter_.setFont(font);
    painter_.setPen(inkOf(look.stroke));
    const QString shown = QString::fromStdString(storage::visibleText(shape.text));
    const double wide = QFontMetricsF(font).horizontalAdvance(shown);
    const double left = shape.anchor == Anchor::kEnd ? wide : shape.anchor == Anchor::kMiddle ? wide / 2 : 0;
    painter_.drawText(at(shape.at.front()) - QPointF(left, 0), shown);
  }

  QPainter& painter_;
  const Paper& paper_;
  QPointF corner_;
  double scale_;
};

}  // namespace

double heightOf(const storage::doc::Drawing& drawing, double width) {
  return drawing.width > 0 ? drawing.height / drawing.width * width : 0;
}

void drawDrawing(QPainter& painter, const Paper& paper, const storage::doc::Drawing& drawing, QPointF upperLeft,
                 double width) {
  if (!(drawing.width > 0)) return;
  painter.save();
  painter.setRenderHint(QPainter::Antialiasing);
  Artist artist(painter, paper, upperLeft, width / drawing.width);
  for (const Shape& shape : drawing.shapes)
    if (!shape.at.empty()) artist.draw(shape);
  painter.restore();
}

}  // namespace stepscope::print
