// SPDX-License-Identifier: GPL-3.0-or-later
// What a right click on the graph offers, and the export of the whole picture.
#include <QClipboard>
#include <QFileDialog>
#include <QGuiApplication>
#include <QMenu>

#include "views/common/format.h"
#include "views/drawing/export_picture.h"
#include "views/graph/graph_view.h"

namespace stepscope {

void GraphView::showMenu(int box, const QPoint& at) {
  if (!canvas_->scene()) return;
  const GraphScene& scene = *canvas_->scene();
  QMenu menu(this);
  const auto add = [&](const QString& name, const QString& words, auto&& what) {
    QAction* action = menu.addAction(words);
    action->setObjectName(name);
    connect(action, &QAction::triggered, this, what);
    return action;
  };
  if (box >= 0 && scene.boxes[static_cast<std::size_t>(box)].node < 0) {
    const SceneBox b = scene.boxes[static_cast<std::size_t>(box)];
    if (b.kind == BoxKind::kClosedGroup) {
      add(QStringLiteral("graph_open"),
          b.folded > 1 ? QStringLiteral("Open the last of %1 blocks").arg(b.folded) : QStringLiteral("Open"),
          [this, b] { openOne(b.group, b.folded); });
      if (b.folded > 1) {
        add(QStringLiteral("graph_open_first"), QStringLiteral("Open the first block"), [this, b] { openOne(b.group, 1); });
      }
    } else {
      add(QStringLiteral("graph_close"), QStringLiteral("Close"), [this, b] { closeOne(b.group); });
    }
    menu.addSeparator();
  } else if (box >= 0) {
    const int node = scene.boxes[static_cast<std::size_t>(box)].node;
    if (const snapshot::Node* n = scene.model->node(node)) {
      const int id = n->id();
      const QString name = format::visible(n->name());
      selection().select(Selection::ofNode(id));
      const int instruction = store().plan() ? store().plan()->instructionOfNode(id) : -1;
      if (instruction >= 0) {
        add(QStringLiteral("graph_run_to"), QStringLiteral("Run to here"), [this, instruction] {
          emit wishes().runTo(instruction);
        })->setEnabled(!store().readOnly());
        add(QStringLiteral("graph_breakpoint"), QStringLiteral("Toggle breakpoint"), [this, instruction] {
          emit wishes().toggleBreakpoint(instruction);
        })->setEnabled(!store().readOnly());
        menu.addSeparator();
      }
      add(QStringLiteral("graph_neighbours"), QStringLiteral("Neighbours only\tN"),
          [this] { setEmphasis(Emphasis::kNeighbours); });
      add(QStringLiteral("graph_path"), QStringLiteral("Way to the loss\tL"),
          [this] { setEmphasis(Emphasis::kPathToLoss); });
      add(QStringLiteral("graph_leave"), QStringLiteral("Close the group around it\tShift+F11"), [this] { leaveGroup(); });
      add(QStringLiteral("graph_copy"), QStringLiteral("Copy name"),
          [name] { QGuiApplication::clipboard()->setText(name); });
      menu.addSeparator();
    }
  }
  add(QStringLiteral("graph_open_all"), QStringLiteral("Open all groups"), [this] {
    open_ = allGroups(*canvas_->scene()->model);
    relayout(shown_, -1);
  });
  add(QStringLiteral("graph_close_all"), QStringLiteral("Close all groups"), [this] {
    open_.clear();
    revealed_.clear();
    relayout(shown_, -1);
  });
  add(QStringLiteral("graph_fit"), QStringLiteral("Fit all\tSpace"), [this] { fitAll(); });
  menu.addSeparator();
  add(QStringLiteral("graph_export"), QStringLiteral("Export the whole picture …"), [this] { askExport(); });
  menu.exec(at);
}

void GraphView::askExport() {
  const QString path = QFileDialog::getSaveFileName(this, QStringLiteral("Export the graph"), QStringLiteral("graph.svg"),
                                                    QStringLiteral("Pictures (*.svg *.pdf *.png)"));
  if (path.isEmpty()) return;
  const QString problem = exportTo(path);
  emit wishes().status(problem.isEmpty() ? QStringLiteral("Graph written to %1").arg(path) : problem);
}

QString GraphView::exportTo(const QString& path) {
  return exportPicture(path, canvas_->sceneSize(), QStringLiteral("Graph of the training step"),
                       [this](QPainter& painter) { canvas_->paintScene(painter); });
}

}  // namespace stepscope
