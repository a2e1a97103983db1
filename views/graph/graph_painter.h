// SPDX-License-Identifier: GPL-3.0-or-later
// Paints the visible part of a graph scene with as much detail as its zoom can show:
//   dots (boxes under 2 px) → flat boxes → framed boxes with category stripe → names → second line, shapes, stubs, badges.
// GUI thread; also used with a QSvgGenerator, a QPdfWriter or a QImage as the target.
#pragma once

#include <QPainter>
#include <unordered_set>
#include <vector>

#include "views/common/tokens.h"
#include "views/drawing/text_cache.h"
#include "views/drawing/viewport.h"
#include "views/graph/graph_labels.h"

namespace stepscope {

struct GraphPaintState {
  int selectedNode = -1;  // model node; its box, or that of the group that hides it, gets the ring
  int hovered = -1;       // box
  const std::unordered_set<int>* matches = nullptr;     // model nodes found by the search; nullptr: no search
  int currentMatch = -1;                                // model node
  const std::unordered_set<int>* emphasised = nullptr;  // model nodes of a path or neighbourhood; the rest steps back
  bool allEdges = false;                                // stubs as full lines
};

class GraphPainter {
 public:
  GraphPainter(const GraphScene& scene, GraphLabels& labels, const GraphMarks& marks, const Tokens& tokens);

  // Clears to the panel colour and paints what `view` shows.
  void paint(QPainter& painter, const Viewport& view, const GraphPaintState& state);

  // Column titles, legend of the heat: in pixels of the widget, over the picture.
  void paintOverlay(QPainter& painter, const Viewport& view);

 private:
  struct Colours {
    QColor hue, fill, line, title, sub;
  };

  void paintGroups();
  void paintFlow();
  void paintDots();
  void paintFlat();
  void paintBoxes();
  void paintNode(int index);
  void paintClosed(int index);
  void paintStubs(int index);
  void paintFullEdges();
  void paintEdge(int index, const QPen& pen, bool arrow);
  void paintArrow(PointF2 tip, PointF2 from, const QColor& colour);
  void paintSelection();
  QString fitting(const QStringList& parts, const QString& separator, double width);
  Colours coloursOf(const SceneBox& box) const;
  bool stepsBack(const SceneBox& box) const;
  float heatOf(const SceneBox& box) const;
  void text(TextCache& cache, const QColor& colour, double x, double baseline, double width, const QString& text,
            Qt::Alignment align = Qt::AlignLeft);

  const GraphScene& scene_;
  GraphLabels& labels_;
  const GraphMarks& marks_;
  const Tokens& t_;
  std::vector<QColor> hues_;            // by category index
  std::vector<std::uint8_t> category_;  // by model node
  TextCache title_, sub_, small_, head_;

  // During paint().
  QPainter* p_ = nullptr;
  const GraphPaintState* state_ = nullptr;
  BoxF visible_;
  double zoom_ = 1;
  int selectedBox_ = -1;
  std::vector<int> shown_;
};

}  // namespace stepscope
