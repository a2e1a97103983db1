// SPDX-License-Identifier: GPL-3.0-or-later
// The widget that shows a graph scene: pan, zoom, hover, click. Knows no store and no selection; GraphView connects it.
//
// Drag pans, the wheel zooms at the pointer (with Shift it pans sideways), touchpads pan with two fingers and zoom with a
// pinch. Double click on a closed group opens it, on an open group's title closes it. Arrow keys go to the nearest box in a
// direction.
#pragma once

#include <QTimer>
#include <QWidget>
#include <memory>
#include <unordered_set>

#include "views/graph/graph_camera.h"
#include "views/graph/graph_painter.h"

namespace stepscope {

class GraphCanvas : public QWidget {
  Q_OBJECT

 public:
  explicit GraphCanvas(QWidget* parent = nullptr);
  ~GraphCanvas() override;

  // Shows a scene. The box of `anchor` (node id; -1 the node nearest to the centre) stays at its place on the screen.
  void setScene(std::shared_ptr<const GraphScene> scene, int anchor, const QString& anchorGroup);
  void setMarks(GraphMarks marks);
  void themeChanged();

  const std::shared_ptr<const GraphScene>& scene() const { return scene_; }
  const GraphMarks& marks() const { return marks_; }
  GraphLabels& labels() { return labels_; }
  const Viewport& viewport() const { return camera_.view(); }
  double zoomPercent() const { return camera_.zoomPercent(); }
  const GraphCamera& camera() const { return camera_; }
  void setCamera(const GraphCamera& camera);  // of an earlier scene of the same graph

  // `group`: model nodes that are selected together with it.
  void setSelected(int modelNode, const std::vector<int>& group = {});
  const std::vector<int>& groupBoxes() const { return state_.groupBoxes; }
  int selected() const { return state_.selectedNode; }
  void setMatches(std::unordered_set<int> matches, bool searching, int currentMatch);
  void setEmphasis(std::unordered_set<int> nodes, bool on);
  bool hasEmphasis() const { return state_.emphasised != nullptr; }
  void setAllEdges(bool on);
  // Text of a note over the picture, empty for none.
  void setNote(const QString& note);

  void fitAll();
  void fitBox(int box);  // with some of its surroundings
  // Moves only when it, or the forward node that a gradient belongs to, is not in view.
  void showBox(int box);
  void showGroup(int group);  // both columns of an open group
  void zoomBy(double factor);
  int boxAt(QPointF pixel) const;  // innermost; -1
  int hovered() const { return state_.hovered; }

  // The whole scene for export, its size in pixels at 100 %, and the visible part for pictures of the window.
  QSizeF sceneSize() const;
  void paintScene(QPainter& painter);
  void paintVisible(QPainter& painter);

  QSize sizeHint() const override { return {640, 420}; }

 signals:
  void nodeClicked(int modelNode);
  void emptyClicked();
  void openGroup(int group, int folded, bool gradient);
  void closeGroup(int group);
  void menuWanted(int box, const QPoint& globalPosition);
  void viewChanged();

 protected:
  void paintEvent(QPaintEvent*) override;
  void resizeEvent(QResizeEvent*) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;
  void wheelEvent(QWheelEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void leaveEvent(QEvent*) override;
  void focusInEvent(QFocusEvent* event) override;
  void focusOutEvent(QFocusEvent*) override;
  bool event(QEvent* event) override;

 private:
  void zoomAround(QPointF pixel, double factor);
  void pan(QPointF pixels);
  void moved();
  void setHovered(int box);
  void goTo(int dx, int dy);
  void goToFirst();  // where nothing is selected yet
  BoxF boxOf(int nodeId, const QString& group, bool* found) const;
  int partnerOf(int box) const;

  std::shared_ptr<const GraphScene> scene_;
  GraphMarks marks_;
  GraphLabels labels_;
  std::unique_ptr<GraphPainter> painter_;
  Theme painted_ = Tokens::current().theme;
  GraphPaintState state_;
  std::unordered_set<int> matches_, emphasis_;
  GraphCamera camera_;
  QPointF pressedAt_, lastAt_;
  bool pressed_ = false, dragging_ = false;
  bool ring_ = false;  // around the picture while it has the keyboard: it came by a key, or a key was pressed
  QString note_;
};

}  // namespace stepscope
