// SPDX-License-Identifier: GPL-3.0-or-later
// Paints the visible part of a graph scene with as much detail as its zoom can show:
//   dots (boxes under 2 px) → flat boxes → framed boxes with category stripe → names → second line, shapes, stubs, badges.
// Boxes are painted by box_painter.h, edges by edge_painter.h. GUI thread; also used with a QSvgGenerator, a QPdfWriter or a
// QImage as the target.
#pragma once

#include <QFontMetricsF>
#include <vector>

#include "views/graph/graph_paint_context.h"

namespace stepscope {

// The title of a column of the scene, over the picture. Both stand there at any zoom, on their side of the line between the
// columns; that of a column that is not in view, or hardly, is left out.
struct ColumnTitle {
  double x = 0;  // where the words begin, in pixels of the widget
  QString words;
};
std::vector<ColumnTitle> columnTitles(const GraphScene& scene, const Viewport& view, const QFontMetricsF& metrics);

class GraphPainter {
 public:
  GraphPainter(const GraphScene& scene, GraphLabels& labels, const GraphMarks& marks, const Tokens& tokens)
      : g_(scene, labels, marks, tokens) {}

  // Clears to the panel colour and paints what `view` shows.
  void paint(QPainter& painter, const Viewport& view, const GraphPaintState& state);

  // Column titles, legend of the heat: in pixels of the widget, over the picture.
  void paintOverlay(QPainter& painter, const Viewport& view);

 private:
  GraphPaintContext g_;
};

}  // namespace stepscope
