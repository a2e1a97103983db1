// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/graph/graph_paint_context.h"

#include <algorithm>

namespace stepscope {

GraphPaintContext::GraphPaintContext(const GraphScene& shownScene, GraphLabels& sceneLabels, const GraphMarks& sceneMarks,
                                     const Tokens& tokens)
    : scene(shownScene),
      labels(sceneLabels),
      marks(sceneMarks),
      t(tokens),
      title(sceneFont(12, QFont::Medium)),
      sub(sceneFont(10.5)),
      small(sceneFont(10)),
      head(sceneFont(11.5)) {
  for (const std::string& category : scene.model->categories()) hues.push_back(t.category(QString::fromStdString(category)));
}

void GraphPaintContext::begin(QPainter& painter, const Viewport& view, const GraphPaintState& now) {
  p = &painter;
  state = &now;
  zoom = view.scaleX;
  const QRectF area = view.visible();
  left = area.x();
  visible = {static_cast<float>(area.x()) - 130, static_cast<float>(area.y()) - 40, static_cast<float>(area.width()) + 260,
             static_cast<float>(area.height()) + 80};
  selectedBox = now.selectedNode < 0 ? -1 : scene.boxOfNode[static_cast<std::size_t>(now.selectedNode)];
  shown.clear();
  painter.scale(view.scaleX, view.scaleY);
  painter.translate(-view.origin);
  painter.setRenderHint(QPainter::Antialiasing);
}

const QColor& GraphPaintContext::hueOf(int modelNode) const {
  return hues[scene.model->nodes()[static_cast<std::size_t>(modelNode)].category];
}

void GraphPaintContext::text(TextCache& cache, const QColor& colour, double x, double baseline, double width,
                             const QString& what, Qt::Alignment align) {
  if (what.isEmpty() || width < 6) return;
  const QString& shown = cache.elided(what, width);
  double left = x;
  if (align & (Qt::AlignRight | Qt::AlignHCenter)) {
    const double used = std::min(width, cache.width(what));
    left = align & Qt::AlignRight ? x + width - used : x + (width - used) / 2;
  }
  p->setFont(cache.font());
  p->setPen(colour);
  p->drawText(QPointF(left, baseline), shown);
}

QString GraphPaintContext::fitting(const QStringList& parts, const QString& separator, double width) {
  QString words;
  for (const QString& part : parts) {
    const QString longer = words.isEmpty() ? part : words + separator + part;
    if (!words.isEmpty() && sub.width(longer) > width) break;
    words = longer;
  }
  return words;
}

bool GraphPaintContext::stepsBack(const SceneBox& box) const {
  if (state->emphasised != nullptr) return box.node >= 0 && !state->emphasised->contains(box.node);
  return state->matches != nullptr && box.node >= 0 && !state->matches->contains(box.node);
}

float GraphPaintContext::heatOf(const SceneBox& box) const {
  if (marks.heat == HeatKind::kNone) return -1;
  return box.node >= 0 ? marks.nodes[static_cast<std::size_t>(box.node)].heat
                       : marks.groups[static_cast<std::size_t>(box.group)].heat[box.gradient ? 1 : 0];
}

QColor GraphPaintContext::flatOf(const SceneBox& box, const Colours& c) const {
  const bool heated = heatOf(box) >= 0;
  if (heated || c.fill != t.panel) return c.fill == t.select ? t.accent : heated ? c.fill : c.line;
  return mixed(c.hue, t.panel, 0.75 - 0.15 * seen(shown_from::kBoxes));
}

GraphPaintContext::Colours GraphPaintContext::coloursOf(const SceneBox& box) const {
  Colours c{
      .hue = box.node >= 0 ? hueOf(box.node) : t.edge, .fill = t.panel, .line = t.border, .title = t.text, .sub = t.muted};
  const Difference difference =
      box.node >= 0 ? marks.nodes[static_cast<std::size_t>(box.node)].difference : Difference::kNone;
  if (difference != Difference::kNone) {
    c.line = difference == Difference::kAdded ? t.added : difference == Difference::kRemoved ? t.removed : t.changed;
    c.fill = mixed(c.line, t.panel, 0.12);
  }
  if (const float heat = heatOf(box); heat >= 0) {
    c.fill = t.heat(heat);
    // Whichever of the two text colours reads better on the heat.
    c.title = contrast(t.text, c.fill) >= contrast(t.panel, c.fill) ? t.text : t.panel;
    c.sub = mixed(c.title, c.fill, 0.85);
  }
  if (state->matches != nullptr && box.node >= 0 && state->matches->contains(box.node)) {
    c.fill = t.select;
    c.line = t.accent;
  }
  const bool waiting =
      box.node >= 0 && marks.nodes[static_cast<std::size_t>(box.node)].waiting && state->hovered != selectedBox;
  if (stepsBack(box) || (waiting && difference == Difference::kNone && box.node != state->selectedNode)) {
    const double keep = stepsBack(box) ? 0.3 : 0.55;
    for (QColor* colour : {&c.hue, &c.title, &c.sub}) *colour = mixed(*colour, c.fill, keep);
    c.line = mixed(c.line, t.panel, std::max(keep, 0.6));
  }
  return c;
}

}  // namespace stepscope
