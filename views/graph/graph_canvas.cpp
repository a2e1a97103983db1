// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/graph/graph_canvas.h"

#include <QHelpEvent>
#include <QNativeGestureEvent>
#include <QToolTip>
#include <algorithm>
#include <cmath>

#include "views/graph/layout_metrics.h"

namespace stepscope {
namespace {
constexpr double kMargin = 28;  // pixels around the whole picture
constexpr double kLeast = 0.001, kMost = 6;
}  // namespace

GraphCanvas::GraphCanvas(QWidget* parent) : QWidget(parent) {
  setMouseTracking(true);
  setFocusPolicy(Qt::StrongFocus);
  setAttribute(Qt::WA_OpaquePaintEvent);
  setAccessibleName(tr("Graph picture"));
  setMinimumSize(160, 120);
}

GraphCanvas::~GraphCanvas() = default;

double GraphCanvas::base() const { return Metrics::current().unit / 13.0; }
double GraphCanvas::zoomPercent() const { return 100 * view_.scaleX / base(); }

BoxF GraphCanvas::boxOf(int nodeId, const QString& group, bool* found) const {
  *found = false;
  if (!scene_) return {};
  if (!group.isEmpty()) {
    const int g = scene_->model->group(group.toStdString());
    for (const SceneBox& box : scene_->boxes) {
      if (box.group == g && g >= 0 && !box.gradient) {
        *found = true;
        return box.at;
      }
    }
  }
  const int node = scene_->model->ofNodeId(nodeId);
  const int box = node < 0 ? -1 : scene_->boxOfNode[static_cast<std::size_t>(node)];
  if (box < 0) return {};
  *found = true;
  return scene_->boxes[static_cast<std::size_t>(box)].at;
}

void GraphCanvas::setScene(std::shared_ptr<const GraphScene> scene, int anchor, const QString& anchorGroup) {
  const bool first = !scene_ || fitted_;
  int selectedId = -1;
  bool had = false;
  BoxF before;
  if (scene_) {
    if (state_.selectedNode >= 0) {
      if (const snapshot::Node* node = scene_->model->node(state_.selectedNode)) selectedId = node->id();
    }
    if (anchor < 0 && anchorGroup.isEmpty()) {
      // Whatever is nearest to the middle and lives on.
      const QPointF middle = view_.toScene(rect().center());
      double nearest = 1e300;
      scene_->leaves.query({static_cast<float>(view_.visible().x()), static_cast<float>(view_.visible().y()),
                            static_cast<float>(view_.visible().width()), static_cast<float>(view_.visible().height())},
                           [&](int i) {
                             const SceneBox& box = scene_->boxes[static_cast<std::size_t>(i)];
                             const snapshot::Node* node = box.node < 0 ? nullptr : scene_->model->node(box.node);
                             const double distance =
                                 std::hypot(box.at.centerX() - middle.x(), box.at.centerY() - middle.y());
                             if (node != nullptr && distance < nearest && scene->model->ofNodeId(node->id()) >= 0) {
                               nearest = distance;
                               anchor = node->id();
                             }
                             return true;
                           });
    }
    before = boxOf(anchor, anchorGroup, &had);
  }
  const bool sameModel = scene_ && scene_->model == scene->model;
  scene_ = std::move(scene);
  if (!sameModel) labels_ = GraphLabels(scene_->model);
  if (marks_.nodes.size() != static_cast<std::size_t>(scene_->model->size())) {
    marks_ = GraphMarks();
    marks_.nodes.resize(static_cast<std::size_t>(scene_->model->size()));
    marks_.groups.resize(scene_->model->groups().size());
  }
  painter_ = std::make_unique<GraphPainter>(*scene_, labels_, marks_, Tokens::current());
  state_.hovered = -1;
  if (!sameModel) {
    matches_.clear();
    emphasis_.clear();
    state_.matches = nullptr;
    state_.emphasised = nullptr;
    state_.currentMatch = -1;
    state_.selectedNode = selectedId < 0 ? -1 : scene_->model->ofNodeId(selectedId);
  }
  bool has = false;
  const BoxF after = had ? boxOf(anchor, anchorGroup, &has) : BoxF();
  if (first) {
    fitAll();
  } else if (has) {
    // A group keeps its title where it was; a node its centre.
    const bool group = !anchorGroup.isEmpty();
    view_.origin += group ? QPointF(after.centerX() - before.centerX(), after.y - before.y)
                          : QPointF(after.centerX() - before.centerX(), after.centerY() - before.centerY());
    clampView();
  } else {
    clampView();
  }
  update();
  emit viewChanged();
}

void GraphCanvas::setMarks(GraphMarks marks) {
  if (!scene_ || marks.nodes.size() != static_cast<std::size_t>(scene_->model->size())) return;
  marks_ = std::move(marks);
  update();
}

void GraphCanvas::themeChanged() {
  // A style change comes with every move to another panel, too.
  if (painted_ == Tokens::current().theme) return;
  painted_ = Tokens::current().theme;
  if (scene_) painter_ = std::make_unique<GraphPainter>(*scene_, labels_, marks_, Tokens::current());
  update();
}

void GraphCanvas::setSelected(int modelNode) {
  if (state_.selectedNode == modelNode) return;
  state_.selectedNode = modelNode;
  update();
}

void GraphCanvas::setMatches(std::unordered_set<int> matches, bool searching, int currentMatch) {
  matches_ = std::move(matches);
  state_.matches = searching ? &matches_ : nullptr;
  state_.currentMatch = currentMatch;
  update();
}

void GraphCanvas::setEmphasis(std::unordered_set<int> nodes, bool on) {
  emphasis_ = std::move(nodes);
  state_.emphasised = on ? &emphasis_ : nullptr;
  update();
}

void GraphCanvas::setAllEdges(bool on) {
  state_.allEdges = on;
  update();
}

void GraphCanvas::setNote(const QString& note) {
  if (note_ == note) return;
  note_ = note;
  update();
}

void GraphCanvas::fitAll() {
  fitted_ = true;
  if (!scene_) return;
  view_.size = size();
  const BoxF& b = scene_->bounds;
  const double top = scene_->columnGap > 0 ? kMargin + 10 : kMargin;
  const double wide = std::max(1.0, width() - 2 * kMargin) / b.w, high = std::max(1.0, height() - kMargin - top) / b.h;
  // A long graph is shown from its beginning, readable, rather than as a thread.
  const double readable = 0.3 * base();
  double scale = std::clamp(std::min(wide, high), kLeast, 1.15 * base());
  view_.origin = {};
  if (scale < readable && high < wide && b.h > 40 * b.w) scale = std::min(wide, readable);
  view_.scaleX = view_.scaleY = scale;
  const double x = (width() - b.w * scale) / 2, y = std::max(top, (height() - b.h * scale + top - kMargin) / 2);
  view_.origin = {-x / scale, -y / scale};
  update();
  emit viewChanged();
}

void GraphCanvas::fitBox(int box) {
  if (!scene_ || box < 0) return;
  fitted_ = false;
  const BoxF& b = scene_->boxes[static_cast<std::size_t>(box)].at;
  const double scale = std::clamp(std::min(width() / (b.w + 120.0), height() / (b.h + 120.0)), 0.5 * base(), 1.0 * base());
  view_.scaleX = view_.scaleY = scale;
  view_.origin = {b.centerX() - width() / scale / 2, b.centerY() - height() / scale / 2};
  clampView();
  update();
  emit viewChanged();
}

void GraphCanvas::showBox(int box) {
  if (!scene_ || box < 0) return;
  const BoxF& b = scene_->boxes[static_cast<std::size_t>(box)].at;
  const QRectF on = view_.toPixel(QRectF(b.x, b.y, b.w, b.h));
  // A box too small to be read is not shown yet.
  const bool readable = view_.scaleX >= 0.5 * base();
  if (readable && QRectF(rect()).adjusted(8, 34, -8, -8).contains(on)) return;
  fitted_ = false;
  if (!readable) {
    view_.scaleX = view_.scaleY = 0.7 * base();
    view_.origin.setX(b.centerX() - view_.visible().width() / 2);
  }
  const QRectF visible = view_.visible();
  if (readable && on.width() < width() * 0.9) view_.origin.setX(b.centerX() - visible.width() / 2);
  view_.origin.setY(on.height() < height() * 0.9 ? b.centerY() - visible.height() / 2 : b.y - 40 / view_.scaleY);
  // Keep both columns in view where there is room for them.
  if (scene_->bounds.w <= visible.width()) view_.origin.setX((scene_->bounds.w - visible.width()) / 2);
  clampView();
  update();
  emit viewChanged();
}

void GraphCanvas::zoomBy(double factor) { zoomAround(QRectF(rect()).center(), factor); }

void GraphCanvas::zoomAround(QPointF pixel, double factor) {
  if (!scene_) return;
  const double target = std::clamp(view_.scaleX * factor, kLeast, kMost * base());
  factor = target / view_.scaleX;
  fitted_ = false;
  view_.zoomAt(pixel, factor, factor);
  clampView();
  update();
  emit viewChanged();
}

// Some of the picture always stays in view.
void GraphCanvas::clampView() {
  if (!scene_) return;
  const QRectF visible = view_.visible();
  const BoxF& b = scene_->bounds;
  const double keepX = std::min(80 / view_.scaleX, static_cast<double>(b.w)),
               keepY = std::min(80 / view_.scaleY, static_cast<double>(b.h));
  view_.origin.setX(std::clamp(view_.origin.x(), b.x + keepX - visible.width(), b.right() - keepX));
  view_.origin.setY(std::clamp(view_.origin.y(), b.y + keepY - visible.height(), b.bottom() - keepY));
}

int GraphCanvas::boxAt(QPointF pixel) const {
  if (!scene_) return -1;
  const QPointF p = view_.toScene(pixel);
  const auto x = static_cast<float>(p.x()), y = static_cast<float>(p.y());
  int hit = -1;
  scene_->leaves.query({x, y, 0, 0}, [&](int i) {
    hit = i;
    return false;
  });
  if (hit >= 0) return hit;
  for (auto it = scene_->openGroups.rbegin(); it != scene_->openGroups.rend(); ++it) {
    const BoxF& b = scene_->boxes[static_cast<std::size_t>(*it)].at;
    if (b.contains(x, y) && y < b.y + kHeader) return *it;
  }
  return -1;
}

void GraphCanvas::setHovered(int box) {
  if (box == state_.hovered) return;
  state_.hovered = box;
  setCursor(box >= 0 ? Qt::PointingHandCursor : Qt::ArrowCursor);
  update();
}

void GraphCanvas::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  paintVisible(painter);
}

void GraphCanvas::paintVisible(QPainter& painter) {
  const Tokens& t = Tokens::current();
  if (!scene_) {
    painter.fillRect(rect(), t.panel);
  } else {
    view_.size = size();
    painter_->paint(painter, view_, state_);
    painter_->paintOverlay(painter, view_);
  }
  if (note_.isEmpty()) return;
  painter.setFont(smallFont());
  const QRectF box(0, height() - 30, painter.fontMetrics().horizontalAdvance(note_) + 24, 22);
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setPen(t.border);
  painter.setBrush(t.raised);
  painter.drawRoundedRect(box.translated((width() - box.width()) / 2, 0), 5, 5);
  painter.setPen(t.muted);
  painter.drawText(box.translated((width() - box.width()) / 2, 0), Qt::AlignCenter, note_);
}

QSizeF GraphCanvas::sceneSize() const {
  return scene_ ? QSizeF(scene_->bounds.w + 2 * kMargin, scene_->bounds.h + 2 * kMargin) : QSizeF();
}

void GraphCanvas::paintScene(QPainter& painter) {
  if (!scene_) return;
  Viewport all;
  all.size = sceneSize();
  all.origin = {-kMargin, -kMargin};
  GraphPaintState state = state_;
  state.hovered = -1;
  painter_->paint(painter, all, state);
  painter_->paintOverlay(painter, all);
}

void GraphCanvas::resizeEvent(QResizeEvent*) {
  view_.size = size();
  if (fitted_) {
    fitAll();
  } else {
    clampView();
  }
}

void GraphCanvas::mousePressEvent(QMouseEvent* event) {
  pressedAt_ = lastAt_ = event->position();
  pressed_ = event->button() == Qt::LeftButton || event->button() == Qt::MiddleButton;
  dragging_ = false;
}

void GraphCanvas::mouseMoveEvent(QMouseEvent* event) {
  if (!pressed_) {
    setHovered(boxAt(event->position()));
    return;
  }
  if (!dragging_ && (event->position() - pressedAt_).manhattanLength() < 5) return;
  dragging_ = true;
  fitted_ = false;
  setCursor(Qt::ClosedHandCursor);
  view_.panPixels(event->position() - lastAt_);
  lastAt_ = event->position();
  clampView();
  update();
  emit viewChanged();
}

void GraphCanvas::mouseReleaseEvent(QMouseEvent* event) {
  const bool clicked = pressed_ && !dragging_;
  pressed_ = dragging_ = false;
  setCursor(state_.hovered >= 0 ? Qt::PointingHandCursor : Qt::ArrowCursor);
  const int box = boxAt(event->position());
  if (event->button() == Qt::RightButton) {
    emit menuWanted(box, event->globalPosition().toPoint());
  } else if (clicked && event->button() == Qt::LeftButton) {
    if (box >= 0 && scene_->boxes[static_cast<std::size_t>(box)].node >= 0) {
      emit nodeClicked(scene_->boxes[static_cast<std::size_t>(box)].node);
    } else if (box < 0) {
      emit emptyClicked();
    }
  }
}

void GraphCanvas::mouseDoubleClickEvent(QMouseEvent* event) {
  const int index = boxAt(event->position());
  if (index < 0 || event->button() != Qt::LeftButton) return;
  const SceneBox& box = scene_->boxes[static_cast<std::size_t>(index)];
  if (box.kind == BoxKind::kClosedGroup) emit openGroup(box.group, box.folded, box.gradient);
  if (box.kind == BoxKind::kOpenGroup) emit closeGroup(box.group);
  if (box.node >= 0) fitBox(index);
}

void GraphCanvas::wheelEvent(QWheelEvent* event) {
  const bool touchpad = !event->pixelDelta().isNull() && event->source() != Qt::MouseEventNotSynthesized;
  if (touchpad && !(event->modifiers() & Qt::ControlModifier)) {
    view_.panPixels(event->pixelDelta());
    fitted_ = false;
    clampView();
    update();
    emit viewChanged();
  } else if (event->modifiers() & Qt::ShiftModifier) {
    view_.panPixels(QPointF(event->angleDelta().y() + event->angleDelta().x(), 0));
    fitted_ = false;
    clampView();
    update();
    emit viewChanged();
  } else {
    zoomAround(event->position(), std::pow(1.0018, event->angleDelta().y()));
  }
  event->accept();
}

void GraphCanvas::keyPressEvent(QKeyEvent* event) {
  switch (event->key()) {
    case Qt::Key_Left: goTo(-1, 0); break;
    case Qt::Key_Right: goTo(1, 0); break;
    case Qt::Key_Up: goTo(0, -1); break;
    case Qt::Key_Down: goTo(0, 1); break;
    case Qt::Key_Plus:
    case Qt::Key_Equal: zoomBy(1.25); break;
    case Qt::Key_Minus: zoomBy(0.8); break;
    case Qt::Key_0: zoomBy(base() / view_.scaleX); break;
    case Qt::Key_Return:
    case Qt::Key_Enter:
      fitBox(state_.selectedNode < 0 ? -1 : scene_->boxOfNode[static_cast<std::size_t>(state_.selectedNode)]);
      break;
    default: QWidget::keyPressEvent(event); return;
  }
  event->accept();
}

void GraphCanvas::goTo(int dx, int dy) {
  if (!scene_ || state_.selectedNode < 0) return;
  const int from = scene_->boxOfNode[static_cast<std::size_t>(state_.selectedNode)];
  if (from < 0) return;
  const BoxF& a = scene_->boxes[static_cast<std::size_t>(from)].at;
  constexpr float kReach = 1200;
  const BoxF area{dx < 0   ? a.x - kReach
                  : dx > 0 ? a.right()
                           : a.x - 300,
                  dy < 0   ? a.y - kReach
                  : dy > 0 ? a.bottom()
                           : a.y - 60,
                  dx != 0 ? kReach : a.w + 600, dy != 0 ? kReach : a.h + 120};
  int best = -1;
  double least = 1e300;
  scene_->leaves.query(area, [&](int i) {
    const SceneBox& box = scene_->boxes[static_cast<std::size_t>(i)];
    const double along = dx != 0 ? (box.at.centerX() - a.centerX()) * dx : (box.at.centerY() - a.centerY()) * dy;
    const double across = dx != 0 ? std::abs(box.at.centerY() - a.centerY()) : std::abs(box.at.centerX() - a.centerX());
    if (box.node < 0 || along < 4) return true;
    if (along + 2 * across < least) {
      least = along + 2 * across;
      best = i;
    }
    return true;
  });
  if (best < 0) return;
  emit nodeClicked(scene_->boxes[static_cast<std::size_t>(best)].node);
  showBox(best);
}

void GraphCanvas::leaveEvent(QEvent*) { setHovered(-1); }

bool GraphCanvas::event(QEvent* event) {
  if (event->type() == QEvent::ToolTip) {
    auto* help = static_cast<QHelpEvent*>(event);
    const int box = boxAt(help->pos());
    if (box < 0) {
      QToolTip::hideText();
    } else {
      const QString text = labels_.toolTip(scene_->boxes[static_cast<std::size_t>(box)], marks_);
      QToolTip::showText(help->globalPos(), "<p style='white-space:pre'>" + text.toHtmlEscaped() + "</p>", this);
    }
    return true;
  }
  if (event->type() == QEvent::NativeGesture) {
    auto* gesture = static_cast<QNativeGestureEvent*>(event);
    if (gesture->gestureType() == Qt::ZoomNativeGesture) {
      zoomAround(gesture->position(), 1 + gesture->value());
      return true;
    }
  }
  if (event->type() == QEvent::PaletteChange || event->type() == QEvent::StyleChange) themeChanged();
  return QWidget::event(event);
}

}  // namespace stepscope
