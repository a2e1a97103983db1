// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/graph/graph_canvas.h"

#include <QHelpEvent>
#include <QNativeGestureEvent>
#include <QToolTip>
#include <algorithm>
#include <cmath>
#include <utility>

#include "views/graph/scene_places.h"

namespace stepscope {
namespace {
constexpr double kRing = 2;  // pixels, of the frame around who has the keyboard
}

GraphCanvas::GraphCanvas(QWidget* parent) : QWidget(parent) {
  setMouseTracking(true);
  setFocusPolicy(Qt::StrongFocus);
  setAttribute(Qt::WA_OpaquePaintEvent);
  setAccessibleName(QStringLiteral("Graph picture"));
  setMinimumSize(160, 120);
}

GraphCanvas::~GraphCanvas() = default;

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
  const bool first = !scene_ || camera_.fitted();
  int selectedId = -1;
  bool had = false;
  BoxF before;
  if (scene_) {
    if (state_.selectedNode >= 0) {
      if (const snapshot::Node* node = scene_->model->node(state_.selectedNode)) selectedId = node->id();
    }
    if (anchor < 0 && anchorGroup.isEmpty()) {
      // Whatever is nearest to the middle and lives on.
      anchor = nearestNode(*scene_, camera_.view().visible(), camera_.view().toScene(rect().center()), *scene->model);
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
  state_.groupBoxes.clear();  // of the scene before
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
  camera_.resize(nullptr, size());
  if (first) {
    camera_.fitAll(*scene_);
  } else if (has) {
    camera_.follow(*scene_, before, after, !anchorGroup.isEmpty());
  } else {
    camera_.clamp(*scene_);
  }
  moved();
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

void GraphCanvas::setSelected(int modelNode, const std::vector<int>& group) {
  std::vector<int> boxes;
  for (const int node : group) {
    if (const int box = scene_ && node >= 0 ? scene_->boxOfNode[static_cast<std::size_t>(node)] : -1; box >= 0)
      boxes.push_back(box);
  }
  std::sort(boxes.begin(), boxes.end());  // many nodes may hide in one closed group
  boxes.erase(std::unique(boxes.begin(), boxes.end()), boxes.end());
  if (state_.selectedNode == modelNode && state_.groupBoxes == boxes) return;
  state_.selectedNode = modelNode;
  state_.groupBoxes = std::move(boxes);
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
  if (!scene_) return;
  camera_.resize(nullptr, size());
  camera_.fitAll(*scene_);
  moved();
}

void GraphCanvas::setCamera(const GraphCamera& camera) {
  camera_ = camera;
  camera_.resize(scene_.get(), size());
  moved();
}

void GraphCanvas::fitBox(int box) {
  if (!scene_ || box < 0) return;
  camera_.fitBox(*scene_, box);
  moved();
}

void GraphCanvas::showBox(int box) {
  if (scene_ && box >= 0 && camera_.showBox(*scene_, box, partnerOf(box))) moved();
}

void GraphCanvas::showGroup(int group) {
  if (scene_ && camera_.showGroup(*scene_, group)) moved();
}

// The box in the other column that belongs to this one, or of the closed group that holds it; of several gradients the one
// nearest to the forward column. -1: none.
int GraphCanvas::partnerOf(int box) const {
  const std::vector<SceneBox>& boxes = scene_->boxes;
  const SceneBox& of = boxes[static_cast<std::size_t>(box)];
  if (of.kind == BoxKind::kClosedGroup) {
    const auto other = std::ranges::find_if(boxes, [&of](const SceneBox& b) {
      return b.kind == BoxKind::kClosedGroup && b.group == of.group && b.gradient != of.gradient;
    });
    return other == boxes.end() ? -1 : static_cast<int>(other - boxes.begin());
  }
  if (of.node < 0) return -1;
  const auto& nodes = scene_->model->nodes();
  if (of.gradient) {
    const int forward = nodes[static_cast<std::size_t>(of.node)].anchor;
    const int partner = forward < 0 ? -1 : scene_->boxOfNode[static_cast<std::size_t>(forward)];
    return partner == box ? -1 : partner;
  }
  int nearest = -1;
  for (std::size_t i = 0; of.kind == BoxKind::kNode && i < nodes.size(); ++i) {
    const int b = nodes[i].anchor == of.node ? scene_->boxOfNode[i] : -1;
    if (b < 0 || !boxes[static_cast<std::size_t>(b)].gradient) continue;
    if (nearest < 0 || boxes[static_cast<std::size_t>(b)].at.x < boxes[static_cast<std::size_t>(nearest)].at.x) nearest = b;
  }
  return nearest;
}

void GraphCanvas::moved() {
  update();
  emit viewChanged();
}

void GraphCanvas::zoomBy(double factor) { zoomAround(QRectF(rect()).center(), factor); }

void GraphCanvas::zoomAround(QPointF pixel, double factor) {
  if (!scene_) return;
  camera_.zoomAround(*scene_, pixel, factor);
  moved();
}

void GraphCanvas::pan(QPointF pixels) {
  if (!scene_) return;
  camera_.pan(*scene_, pixels);
  moved();
}

int GraphCanvas::boxAt(QPointF pixel) const {
  return scene_ ? stepscope::boxAt(*scene_, camera_.view().toScene(pixel)) : -1;
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
  if (!hasFocus() || !ring_) return;
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setPen(QPen(Tokens::current().accent, kRing));
  painter.setBrush(Qt::NoBrush);
  painter.drawRect(QRectF(rect()).adjusted(kRing / 2, kRing / 2, -kRing / 2, -kRing / 2));
}

// Who works with the mouse knows where the keyboard is, and has no use for it.
void GraphCanvas::focusInEvent(QFocusEvent* event) {
  const auto why = event->reason();
  if (why == Qt::MouseFocusReason) ring_ = false;
  if (why == Qt::TabFocusReason || why == Qt::BacktabFocusReason || why == Qt::ShortcutFocusReason) ring_ = true;
  update();
}

void GraphCanvas::focusOutEvent(QFocusEvent*) { update(); }

void GraphCanvas::paintVisible(QPainter& painter) {
  const Tokens& t = Tokens::current();
  if (!scene_) {
    painter.fillRect(rect(), t.panel);
  } else {
    painter_->paint(painter, camera_.view(), state_);
    painter_->paintOverlay(painter, camera_.view());
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
  return scene_ ? QSizeF(scene_->bounds.w + 2 * kGraphMargin, scene_->bounds.h + 2 * kGraphMargin) : QSizeF();
}

void GraphCanvas::paintScene(QPainter& painter) {
  if (!scene_) return;
  Viewport all;
  all.size = sceneSize();
  all.origin = {-kGraphMargin, -kGraphMargin};
  GraphPaintState state = state_;
  state.hovered = -1;
  painter_->paint(painter, all, state);
  painter_->paintOverlay(painter, all);
}

void GraphCanvas::resizeEvent(QResizeEvent*) {
  const bool follows = camera_.fitted();
  const int chosen =
      scene_ && state_.selectedNode >= 0 ? scene_->boxOfNode[static_cast<std::size_t>(state_.selectedNode)] : -1;
  const bool seen = !follows && chosen >= 0 && camera_.contains(*scene_, chosen);
  camera_.resize(scene_.get(), size());
  // What was looked at stays in sight when the panel gets smaller, and its partner comes into sight when it gets larger.
  if (seen && camera_.showBox(*scene_, chosen, partnerOf(chosen))) return moved();
  if (follows && scene_) emit viewChanged();
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
  setCursor(Qt::ClosedHandCursor);
  pan(event->position() - lastAt_);
  lastAt_ = event->position();
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
    pan(event->pixelDelta());
  } else if (event->modifiers() & Qt::ShiftModifier) {
    pan(QPointF(event->angleDelta().y() + event->angleDelta().x(), 0));
  } else {
    zoomAround(event->position(), std::pow(1.0018, event->angleDelta().y()));
  }
  event->accept();
}

void GraphCanvas::keyPressEvent(QKeyEvent* event) {
  if (!std::exchange(ring_, true)) update();
  switch (event->key()) {
    case Qt::Key_Left: goTo(-1, 0); break;
    case Qt::Key_Right: goTo(1, 0); break;
    case Qt::Key_Up: goTo(0, -1); break;
    case Qt::Key_Down: goTo(0, 1); break;
    case Qt::Key_Plus:
    case Qt::Key_Equal: zoomBy(1.25); break;
    case Qt::Key_Minus: zoomBy(0.8); break;
    case Qt::Key_0: zoomBy(100 / camera_.zoomPercent()); break;
    case Qt::Key_Return:
    case Qt::Key_Enter:
      fitBox(state_.selectedNode < 0 ? -1 : scene_->boxOfNode[static_cast<std::size_t>(state_.selectedNode)]);
      break;
    default: QWidget::keyPressEvent(event); return;
  }
  event->accept();
}

void GraphCanvas::goTo(int dx, int dy) {
  if (!scene_) return;
  if (state_.selectedNode < 0) return goToFirst();
  const int from = scene_->boxOfNode[static_cast<std::size_t>(state_.selectedNode)];
  if (from < 0) return;
  const int best = nextBox(*scene_, from, dx, dy);
  if (best < 0) return;
  emit nodeClicked(scene_->boxes[static_cast<std::size_t>(best)].node);
  showBox(best);
}

// Of what is in view, else of all: the forward node that is read first.
void GraphCanvas::goToFirst() {
  const auto& boxes = scene_->boxes;
  int first = -1;
  bool inView = false;
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    const SceneBox& box = boxes[i];
    if (box.kind != BoxKind::kNode || box.lane != Lane::kForward) continue;
    const bool seen = camera_.contains(*scene_, static_cast<int>(i));
    const BoxF* before = first < 0 ? nullptr : &boxes[static_cast<std::size_t>(first)].at;
    const bool sooner = !before || box.at.y < before->y || (box.at.y == before->y && box.at.x < before->x);
    if (first >= 0 && (seen == inView ? !sooner : inView)) continue;
    first = static_cast<int>(i);
    inView = seen;
  }
  if (first < 0) return;
  emit nodeClicked(boxes[static_cast<std::size_t>(first)].node);
  showBox(first);
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
