// SPDX-License-Identifier: GPL-3.0-or-later
// The graph of the training step: forward and gradient mirrored, groups that open and close, search, heat, pass by pass.
#pragma once

#include <QComboBox>
#include <QLabel>
#include <QTimer>
#include <QToolButton>

#include "views/common/view.h"
#include "views/graph/graph_canvas.h"
#include "views/graph/graph_finder.h"
#include "views/graph/layout_worker.h"
#include "views/graph/phase_diff.h"
#include "views/graph/phase_strip.h"
#include "views/graph/plan_marks.h"
#include "views/graph/without_casts.h"

namespace stepscope {

class GraphView : public View {
  Q_OBJECT

 public:
  explicit GraphView(const ViewContext& context, QWidget* parent = nullptr);

  QString headerText() const override;
  QWidget* headerWidget() override { return controls_; }
  QString emptyText() const override;
  void find() override;
  void focusSelection() override;
  void fitAll() override;
  void enterGroup() override;
  void leaveGroup() override;
  void drawPicture(QPainter& painter) override;
  QString saveState() const override;
  void restoreState(const QString& state) override;

  // The graph of another phase, compared with `base` unless that is empty. Asks for graphs that are not there yet.
  void showStage(const QString& stage, const QString& base = {});
  // Writes the whole picture, not only what is in view. Empty, or the reason why not.
  QString exportTo(const QString& path);

  GraphCanvas& canvas() { return *canvas_; }
  bool busy() const { return worker_.busy(); }

 signals:
  void laidOut();

 protected:
  void keyPressEvent(QKeyEvent* event) override;
  void resizeEvent(QResizeEvent*) override;
  void showEvent(QShowEvent* event) override;

 private:
  enum class Emphasis { kNone, kNeighbours, kPathToLoss };

  void buildControls();
  void graphChanged();
  bool comesBack() const;  // the model that was left
  void showPlace(const QString& stop, const QString& base, int node);
  void relayout(std::shared_ptr<const GraphSnapshot> snapshot, int reveal);
  std::shared_ptr<const GraphSnapshot> drawn();  // what is shown, with or without its casts
  void showScene(const std::shared_ptr<const GraphScene>& scene, const OpenGroups& open);
  void showSelection();
  std::vector<int> groupIn(const GraphModel& model) const;  // model nodes of the selected group
  void openOne(int group, int folded);
  void closeOne(int group);
  void search(int step);
  void updateMarks();
  void updateEmphasis();
  void setEmphasis(Emphasis emphasis);
  void showMenu(int box, const QPoint& at);
  void askExport();

  GraphCanvas* canvas_;
  PhaseStrip* strip_;
  QWidget* controls_ = nullptr;
  QComboBox* heat_ = nullptr;
  QToolButton* allEdges_ = nullptr;
  QToolButton* hideCasts_ = nullptr;
  QLabel* zoom_ = nullptr;
  GraphFinder* finder_ = nullptr;

  LayoutWorker worker_;
  QTimer marksSoon_, noteSoon_;
  OpenGroups open_;                    // by the user
  std::vector<std::string> revealed_;  // opened to show a selection; closed again by the next one
  std::shared_ptr<const GraphSnapshot> shown_;
  std::shared_ptr<const GraphSnapshot> castsOf_;  // what withoutCasts_ was made from
  WithoutCasts withoutCasts_;
  PhaseDiff diff_;
  PlanMarks planMarks_;
  QString stage_, base_;  // empty stage: the newest graph
  bool looked_ = false;   // the graph is of a model that is not built
  bool chooseOpen_ = true;
  struct Left {
    QString model;  // path; empty: none
    OpenGroups open;
    GraphCamera camera;
  };
  QString model_;    // of the graph that is shown, by its path
  Left left_;        // how its picture was when its graph went: a worker that is started again brings it back
  int anchor_ = -1;  // for the next scene
  QString anchorGroup_;
  std::string opened_;  // path of the group whose opening is laid out now
  int selectedId_ = -1;
  int reveal_ = -1;         // a node of the stage that is fetched
  int broughtId_ = -1;      // the last one that was brought into sight
  bool own_ = false;        // the selection comes from this view
  bool focusNext_ = false;  // centre the selection in the next scene
  Emphasis emphasis_ = Emphasis::kNone;
  std::vector<int> matches_;
  int match_ = -1;
};

}  // namespace stepscope
