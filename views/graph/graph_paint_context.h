// SPDX-License-Identifier: GPL-3.0-or-later
// What the painters of one picture of a graph share: the scene with its labels, marks and colours, the painter, and what is
// in view. GUI thread.
#pragma once

#include <QPainter>
#include <algorithm>
#include <unordered_set>
#include <vector>

#include "views/common/tokens.h"
#include "views/drawing/text_cache.h"
#include "views/drawing/viewport.h"
#include "views/graph/graph_labels.h"

namespace stepscope {

// Zooms from which on things are shown. Nothing springs up: each grows out of what stood there before, see
// GraphPaintContext::seen.
namespace shown_from {
constexpr double kLines = 0.1, kBoxes = 0.16, kCurves = 0.26, kGroupWords = 0.26, kFrames = 0.28, kTitles = 0.32,
                 kArrows = 0.36, kDetails = 0.5;
constexpr double kGrowth = 0.1;  // of zoom until it stands there in full
}  // namespace shown_from

struct GraphPaintState {
  int selectedNode = -1;        // model node; its box, or that of the group that hides it, gets the ring
  std::vector<int> groupBoxes;  // of the nodes that are selected together with it
  int hovered = -1;             // box
  const std::unordered_set<int>* matches = nullptr;     // model nodes found by the search; nullptr: no search
  int currentMatch = -1;                                // model node
  const std::unordered_set<int>* emphasised = nullptr;  // model nodes of a path or neighbourhood; the rest steps back
  bool allEdges = false;                                // stubs as full lines
};

struct GraphPaintContext {
  struct Colours {
    QColor hue, fill, line, title, sub;
  };

  GraphPaintContext(const GraphScene& scene, GraphLabels& labels, const GraphMarks& marks, const Tokens& tokens);

  // Takes over what a picture of `view` needs; the painter's coordinates become those of the scene.
  void begin(QPainter& painter, const Viewport& view, const GraphPaintState& state);

  // How far what begins at a zoom has grown at the present one: 0 not there, 1 whole.
  double seen(double from) const { return std::clamp((zoom - from) / shown_from::kGrowth, 0.0, 1.0); }
  // The colour of something that has grown out of a background this far.
  static QColor grown(const QColor& colour, const QColor& background, double seen) {
    return seen >= 1 ? colour : mixed(colour, background, seen);
  }
  Colours coloursOf(const SceneBox& box) const;
  QColor flatOf(const SceneBox& box, const Colours& colours) const;  // of a box without frame and words
  bool stepsBack(const SceneBox& box) const;                         // behind those that were searched for or emphasised
  float heatOf(const SceneBox& box) const;                           // negative: none
  const QColor& hueOf(int modelNode) const;
  // Elided to `width`; nothing where there is no room for a letter.
  void text(TextCache& cache, const QColor& colour, double x, double baseline, double width, const QString& text,
            Qt::Alignment align = Qt::AlignLeft);
  // As many parts as fit, the first ones first.
  QString fitting(const QStringList& parts, const QString& separator, double width);

  const GraphScene& scene;
  GraphLabels& labels;
  const GraphMarks& marks;
  const Tokens& t;
  std::vector<QColor> hues;  // by category
  TextCache title, sub, small, head;

  // Of the picture at hand.
  QPainter* p = nullptr;
  const GraphPaintState* state = nullptr;
  BoxF visible;     // with some room for stubs
  double left = 0;  // of what is in view, without that room
  double zoom = 1;
  int selectedBox = -1;
  std::vector<int> shown;  // boxes without open groups, in their order
};

inline QRectF rectOf(const BoxF& b) { return {b.x, b.y, b.w, b.h}; }
inline QPointF pointOf(PointF2 p) { return {p.x, p.y}; }

}  // namespace stepscope
