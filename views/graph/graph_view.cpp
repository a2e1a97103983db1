// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/graph/graph_view.h"

#include <QClipboard>
#include <QFileDialog>
#include <QGuiApplication>
#include <QHBoxLayout>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QKeyEvent>
#include <QMenu>
#include <QVBoxLayout>
#include <algorithm>

#include "views/common/format.h"
#include "views/common/icons.h"
#include "views/common/names.h"
#include "views/common/tokens.h"
#include "views/drawing/export_picture.h"
#include "views/graph/graph_search.h"

namespace stepscope {

GraphView::GraphView(const ViewContext& context, QWidget* parent)
    : View(context, QStringLiteral("graph"), tr("Graph"), parent) {
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  canvas_ = new GraphCanvas(this);
  canvas_->setObjectName(QStringLiteral("graph_canvas"));
  strip_ = new PhaseStrip(this);
  strip_->setObjectName(QStringLiteral("graph_phases"));
  column->addWidget(canvas_, 1);
  column->addWidget(strip_);
  setFocusProxy(canvas_);
  buildControls();
  strip_->setStages(store().stages());
  strip_->setVisible(store().stages().size() > 1);

  connect(&store(), &SnapshotStore::graphChanged, this, &GraphView::graphChanged);
  connect(&store(), &SnapshotStore::stagesChanged, this, [this] {
    strip_->setStages(store().stages());
    strip_->setVisible(store().stages().size() > 1);
    stage_.clear();
    base_.clear();
  });
  connect(&store(), &SnapshotStore::stageArrived, this, [this](const QString& stage) {
    if (stage == stage_ || stage == base_) showStage(stage_, base_);
  });
  marksSoon_.setSingleShot(true);
  marksSoon_.setInterval(15);
  connect(&marksSoon_, &QTimer::timeout, this, &GraphView::updateMarks);
  for (auto signal : {&SnapshotStore::positionChanged, &SnapshotStore::breakpointsChanged,
                      &SnapshotStore::determinismChanged, &SnapshotStore::planChanged, &SnapshotStore::stepsChanged}) {
    connect(&store(), signal, &marksSoon_, qOverload<>(&QTimer::start));
  }
  connect(&selection(), &SelectionModel::selectionChanged, this, &GraphView::showSelection);
  connect(&selection(), &SelectionModel::currentInstructionChanged, &marksSoon_, qOverload<>(&QTimer::start));

  connect(canvas_, &GraphCanvas::nodeClicked, this, [this](int node) {
    own_ = true;
    if (const snapshot::Node* n = canvas_->scene()->model->node(node)) {
      selection().select(Selection::ofNode(n->id()));
    } else {
      const int position = canvas_->scene()->model->nodes()[static_cast<std::size_t>(node)].inputValue;
      selection().select(Selection::ofValue(canvas_->scene()->model->value(position)->id()));
    }
    own_ = false;
  });
  connect(canvas_, &GraphCanvas::openGroup, this, [this](int group, int folded, bool) { openOne(group, folded); });
  connect(canvas_, &GraphCanvas::closeGroup, this, &GraphView::closeOne);
  connect(canvas_, &GraphCanvas::menuWanted, this, &GraphView::showMenu);
  connect(canvas_, &GraphCanvas::viewChanged, this,
          [this] { zoom_->setText(QStringLiteral("%1 %").arg(qRound(canvas_->zoomPercent()))); });
  connect(strip_, &PhaseStrip::chosen, this, &GraphView::showStage);
  connect(&worker_, &LayoutWorker::finished, this, &GraphView::showScene);
  // What takes longer than a tenth of a second says so.
  noteSoon_.setSingleShot(true);
  noteSoon_.setInterval(100);
  connect(&noteSoon_, &QTimer::timeout, this, [this] {
    if (worker_.busy()) canvas_->setNote(tr("Laying out the graph …  Esc cancels"));
  });
  connect(&worker_, &LayoutWorker::busyChanged, this, [this] {
    if (worker_.busy()) {
      noteSoon_.start();
    } else {
      canvas_->setNote({});
    }
  });
  if (store().graph()) graphChanged();
}

void GraphView::buildControls() {
  controls_ = new QWidget(this);
  controls_->hide();
  auto* row = new QHBoxLayout(controls_);
  row->setContentsMargins(0, 0, 0, 0);
  row->setSpacing(4);
  heat_ = new QComboBox(controls_);
  heat_->setObjectName(QStringLiteral("graph_heat"));
  heat_->setAccessibleName(tr("Heat"));
  heat_->setToolTip(tr("Paints a quantity of the last recorded step on the nodes"));
  for (const HeatKind kind : {HeatKind::kNone, HeatKind::kTime, HeatKind::kBytes, HeatKind::kFlops, HeatKind::kBadNumbers}) {
    heat_->addItem(tr("Heat: %1").arg(heatName(kind)), static_cast<int>(kind));
  }
  allEdges_ = new QToolButton(controls_);
  allEdges_->setObjectName(QStringLiteral("graph_all_edges"));
  allEdges_->setCheckable(true);
  allEdges_->setText(tr("All edges"));
  allEdges_->setToolTip(tr("Draws stashes and long edges as full lines instead of stubs"));
  zoom_ = new QLabel(controls_);
  zoom_->setProperty("role", "faint");
  zoom_->setMinimumWidth(zoom_->fontMetrics().horizontalAdvance(QStringLiteral("1000 %")));
  zoom_->setAlignment(Qt::AlignRight | Qt::AlignVCenter);
  row->addWidget(heat_);
  row->addWidget(allEdges_);
  row->addWidget(zoom_);
  connect(heat_, &QComboBox::currentIndexChanged, this, &GraphView::updateMarks);
  connect(allEdges_, &QToolButton::toggled, canvas_, &GraphCanvas::setAllEdges);

  finder_ = new QWidget(this);
  finder_->setObjectName(QStringLiteral("graph_finder"));
  finder_->setAutoFillBackground(true);
  finder_->hide();
  auto* find = new QHBoxLayout(finder_);
  find->setContentsMargins(6, 4, 6, 4);
  findText_ = new QLineEdit(finder_);
  findText_->setObjectName(QStringLiteral("graph_find"));
  findText_->setAccessibleName(tr("Find in the graph"));
  findText_->setPlaceholderText(tr("Find: MatMul  path:h.3  -phase:backward"));
  findText_->setClearButtonEnabled(true);
  findCount_ = new QLabel(finder_);
  findCount_->setProperty("role", "muted");
  find->addWidget(findText_, 1);
  find->addWidget(findCount_);
  connect(findText_, &QLineEdit::textChanged, this, [this] { search(0); });
  findText_->installEventFilter(this);
  connect(findText_, &QLineEdit::returnPressed, this,
          [this] { search(QGuiApplication::keyboardModifiers() & Qt::ShiftModifier ? -1 : 1); });
}

QString GraphView::headerText() const {
  if (!canvas_->scene()) return {};
  const GraphModel& model = *canvas_->scene()->model;
  QString text = tr("%1 nodes").arg(format::count(model.snapshot().nodeCount()));
  if (!base_.isEmpty()) text += tr(" · changes from %1 to %2").arg(format::visible(base_), format::visible(stage_));
  return text;
}

QString GraphView::emptyText() const {
  if (shown_ && shown_->nodeCount() == 0) return tr("This graph has no nodes.");
  return store().graph() ? QString()
                         : tr("No graph yet. Open a model (Ctrl+O); its graph appears here as soon as it is loaded.");
}

void GraphView::graphChanged() {
  emit emptyChanged();
  if (!store().graph()) {
    worker_.cancel();
    shown_ = nullptr;
    stage_.clear();
    base_.clear();
    open_.clear();
    revealed_.clear();
    chooseOpen_ = true;
    return;
  }
  stage_.clear();
  base_.clear();
  diff_ = PhaseDiff();
  strip_->setShown(QString::fromStdString(store().graph()->graph().phase()), {});
  relayout(store().graph(), -1);
}

void GraphView::showStage(const QString& stage, const QString& base) {
  stage_ = stage;
  base_ = base;
  strip_->setShown(stage, base);
  const GraphPtr after = store().graphOf(stage), before = base.isEmpty() ? nullptr : store().graphOf(base);
  if (!after) emit wishes().stageGraph(stage);
  if (!base.isEmpty() && !before) emit wishes().stageGraph(base);
  if (!after || (!base.isEmpty() && !before)) {
    canvas_->setNote(tr("Fetching the graph …"));
    return;
  }
  canvas_->setNote({});
  diff_ = before ? PhaseDiff::make(*before, *after) : PhaseDiff();
  strip_->setCounts(before ? diff_.added : -1, diff_.removed, diff_.changed);
  relayout(before ? diff_.united : after, -1);
}

void GraphView::relayout(std::shared_ptr<const GraphSnapshot> snapshot, int reveal) {
  LayoutRequest request;
  request.snapshot = snapshot;
  if (canvas_->scene()) {
    if (snapshot == shown_) request.model = canvas_->scene()->model;
    request.seeds = seedsOf(*canvas_->scene());
  }
  shown_ = std::move(snapshot);
  request.open = open_;
  for (const std::string& path : revealed_) request.open.insert(path);
  request.chooseOpen = chooseOpen_;
  request.reveal = reveal;
  worker_.start(std::move(request));
}

void GraphView::showScene(const std::shared_ptr<const GraphScene>& scene, const OpenGroups& open) {
  if (chooseOpen_) {
    open_ = open;
    chooseOpen_ = false;
  }
  canvas_->setScene(scene, anchor_, anchorGroup_);
  anchor_ = -1;
  anchorGroup_.clear();
  updateMarks();
  if (finder_->isVisible()) search(0);
  const int node = scene->model->ofNodeId(selectedId_);
  canvas_->setSelected(node);
  updateEmphasis();
  const int box = node < 0 ? -1 : scene->boxOfNode[static_cast<std::size_t>(node)];
  if (focusNext_ && box >= 0) canvas_->showBox(box);
  focusNext_ = false;
  emit headerChanged();
  emit emptyChanged();
  emit laidOut();
}

void GraphView::updateMarks() {
  marksSoon_.stop();
  if (!canvas_->scene()) return;
  const GraphModel& model = *canvas_->scene()->model;
  GraphMarks marks = GraphMarks::make(model, store(), static_cast<HeatKind>(heat_->currentData().toInt()));
  if (!base_.isEmpty()) {
    for (int i = 0; i < model.size(); ++i) {
      const snapshot::Node* node = model.node(i);
      const auto found = node == nullptr ? diff_.byNode.end() : diff_.byNode.find(node->id());
      if (found == diff_.byNode.end()) continue;
      marks.nodes[static_cast<std::size_t>(i)].difference = found->second;
      const int column = node->phase() == snapshot::FORWARD ? 0 : 1;
      for (int g = model.nodes()[static_cast<std::size_t>(i)].group; g > 0;
           g = model.groups()[static_cast<std::size_t>(g)].parent) {
        ++marks.groups[static_cast<std::size_t>(g)].differences[column];
      }
    }
  }
  canvas_->setMarks(std::move(marks));
}

void GraphView::showSelection() {
  const Selection& s = selection().selection();
  int id = s.node;
  if (id < 0 && s.instruction >= 0 && store().plan()) {
    if (const snapshot::Instruction* in = store().plan()->instruction(s.instruction)) id = in->node();
  }
  if (id < 0 && s.value >= 0 && store().graph()) id = store().graph()->producer(s.value);
  selectedId_ = id;
  if (!canvas_->scene()) return;
  const GraphModel& model = *canvas_->scene()->model;
  const int node = id < 0 ? -1 : model.ofNodeId(id);
  canvas_->setSelected(node);
  updateEmphasis();
  if (node < 0 || own_ || !isVisible()) return;
  const int box = canvas_->scene()->boxOfNode[static_cast<std::size_t>(node)];
  if (box >= 0 && canvas_->scene()->boxes[static_cast<std::size_t>(box)].node == node) {
    canvas_->showBox(box);
    return;
  }
  // Opened for this selection only: walking through a plan must not leave a trail of open groups.
  revealed_.clear();
  for (const std::string& path : groupsAround(model, node)) {
    if (!open_.contains(path)) revealed_.push_back(path);
  }
  focusNext_ = true;
  relayout(shown_, -1);
}

void GraphView::openOne(int group, int folded) {
  const GraphModel& model = *canvas_->scene()->model;
  int which = group;
  if (folded > 1) {
    // Of a run the last one: it is nearest to the loss, where a gradient begins.
    const int wanted = model.groups()[static_cast<std::size_t>(group)].number + folded - 1;
    for (const int sibling :
         model.groups()[static_cast<std::size_t>(model.groups()[static_cast<std::size_t>(group)].parent)].children) {
      if (model.groups()[static_cast<std::size_t>(sibling)].number == wanted) which = sibling;
    }
  }
  open_.insert(model.groups()[static_cast<std::size_t>(which)].path);
  anchorGroup_ = QString::fromStdString(model.groups()[static_cast<std::size_t>(group)].path);
  relayout(shown_, -1);
}

void GraphView::closeOne(int group) {
  const std::string path = canvas_->scene()->model->groups()[static_cast<std::size_t>(group)].path;
  open_.erase(path);
  std::erase(revealed_, path);
  anchorGroup_ = QString::fromStdString(path);
  relayout(shown_, -1);
}

void GraphView::enterGroup() {
  if (!canvas_->scene()) return;
  const GraphScene& scene = *canvas_->scene();
  int box = canvas_->hovered();
  if (box < 0 || scene.boxes[static_cast<std::size_t>(box)].kind != BoxKind::kClosedGroup)
    box = canvas_->selected() < 0 ? -1 : scene.boxOfNode[static_cast<std::size_t>(canvas_->selected())];
  if (box < 0) return;
  const SceneBox& b = scene.boxes[static_cast<std::size_t>(box)];
  if (b.kind == BoxKind::kClosedGroup) {
    if (b.folded > 1 && canvas_->selected() >= 0 && scene.boxOfNode[static_cast<std::size_t>(canvas_->selected())] == box) {
      for (const std::string& path : groupsAround(*scene.model, canvas_->selected())) open_.insert(path);
      focusNext_ = true;
      relayout(shown_, -1);
    } else {
      openOne(b.group, b.folded);
    }
  }
}

void GraphView::leaveGroup() {
  if (!canvas_->scene()) return;
  const GraphScene& scene = *canvas_->scene();
  const int hovered = canvas_->hovered();
  int group = -1;
  if (hovered >= 0 && scene.boxes[static_cast<std::size_t>(hovered)].kind == BoxKind::kOpenGroup) {
    group = scene.boxes[static_cast<std::size_t>(hovered)].group;
  } else if (canvas_->selected() >= 0) {
    const std::vector<ModelGroup>& groups = scene.model->groups();
    for (int g = scene.model->nodes()[static_cast<std::size_t>(canvas_->selected())].group; g > 0;
         g = groups[static_cast<std::size_t>(g)].parent) {
      const std::string& path = groups[static_cast<std::size_t>(g)].path;
      if (open_.contains(path) || std::find(revealed_.begin(), revealed_.end(), path) != revealed_.end()) {
        group = g;
        break;
      }
    }
  }
  if (group > 0) closeOne(group);
}

void GraphView::focusSelection() {
  if (!canvas_->scene() || canvas_->selected() < 0) return;
  const int box = canvas_->scene()->boxOfNode[static_cast<std::size_t>(canvas_->selected())];
  canvas_->fitBox(box);
}

void GraphView::fitAll() { canvas_->fitAll(); }
void GraphView::drawPicture(QPainter& painter) { canvas_->paintVisible(painter); }

void GraphView::find() {
  finder_->show();
  finder_->raise();
  placeFinder();
  findText_->setFocus();
  findText_->selectAll();
  search(0);
}

void GraphView::placeFinder() {
  const int width = std::min(canvas_->width() - 16, Metrics::current().unit * 30);
  finder_->setGeometry(canvas_->geometry().right() - width - 8, 8, width, finder_->sizeHint().height());
}

void GraphView::search(int step) {
  if (!canvas_->scene()) return;
  const QString query = findText_->text().trimmed();
  const bool searching = finder_->isVisible() && !query.isEmpty();
  const GraphScene& scene = *canvas_->scene();
  matches_ = searching ? searchGraph(*scene.model, query.toStdString()) : std::vector<int>();
  const int count = static_cast<int>(matches_.size());
  match_ = count == 0 ? -1 : step == 0 ? std::clamp(match_, 0, count - 1) : ((match_ + step) % count + count) % count;
  canvas_->setMatches({matches_.begin(), matches_.end()}, searching,
                      match_ < 0 ? -1 : matches_[static_cast<std::size_t>(match_)]);
  findCount_->setText(!searching   ? QString()
                      : count == 0 ? tr("no match")
                                   : tr("%1 of %2").arg(format::count(match_ + 1), format::count(count)));
  if (match_ < 0) return;
  const int node = matches_[static_cast<std::size_t>(match_)];
  const int box = scene.boxOfNode[static_cast<std::size_t>(node)];
  if (step != 0) {
    // Going to a match selects it, which opens the groups around it.
    selection().select(Selection::ofNode(scene.model->node(node)->id()));
  } else if (box >= 0) {
    canvas_->showBox(box);
  }
}

void GraphView::setEmphasis(Emphasis emphasis) {
  emphasis_ = emphasis_ == emphasis ? Emphasis::kNone : emphasis;
  updateEmphasis();
}

void GraphView::updateEmphasis() {
  const int node = canvas_->selected();
  if (node < 0 || emphasis_ == Emphasis::kNone || !canvas_->scene()) {
    canvas_->setEmphasis({}, false);
    return;
  }
  const GraphModel& model = *canvas_->scene()->model;
  std::unordered_set<int> set = emphasis_ == Emphasis::kNeighbours ? neighboursOf(model, node) : pathToLoss(model, node);
  if (set.empty()) emit wishes().status(tr("There is no way from this node to the loss"));
  canvas_->setEmphasis(std::move(set), true);
}

void GraphView::keyPressEvent(QKeyEvent* event) {
  if (event->key() == Qt::Key_Escape) {
    if (worker_.busy()) {
      worker_.cancel();
    } else if (finder_->isVisible()) {
      finder_->hide();
      search(0);
      canvas_->setFocus();
    } else if (emphasis_ != Emphasis::kNone) {
      setEmphasis(Emphasis::kNone);
    } else {
      selection().clear();
    }
  } else if (event->key() == Qt::Key_N && event->modifiers() == Qt::NoModifier) {
    setEmphasis(Emphasis::kNeighbours);
  } else if (event->key() == Qt::Key_L && event->modifiers() == Qt::NoModifier) {
    setEmphasis(Emphasis::kPathToLoss);
  } else {
    View::keyPressEvent(event);
  }
}

void GraphView::resizeEvent(QResizeEvent*) { placeFinder(); }

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
      add(QStringLiteral("graph_open"), b.folded > 1 ? tr("Open the last of %1 blocks").arg(b.folded) : tr("Open"),
          [this, b] { openOne(b.group, b.folded); });
      if (b.folded > 1) {
        add(QStringLiteral("graph_open_first"), tr("Open the first block"), [this, b] { openOne(b.group, 1); });
      }
    } else {
      add(QStringLiteral("graph_close"), tr("Close"), [this, b] { closeOne(b.group); });
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
        add(QStringLiteral("graph_run_to"), tr("Run to here"), [this, instruction] {
          emit wishes().runTo(instruction);
        })->setEnabled(!store().readOnly());
        add(QStringLiteral("graph_breakpoint"), tr("Toggle breakpoint"), [this, instruction] {
          emit wishes().toggleBreakpoint(instruction);
        })->setEnabled(!store().readOnly());
        menu.addSeparator();
      }
      add(QStringLiteral("graph_neighbours"), tr("Neighbours only\tN"), [this] { setEmphasis(Emphasis::kNeighbours); });
      add(QStringLiteral("graph_path"), tr("Way to the loss\tL"), [this] { setEmphasis(Emphasis::kPathToLoss); });
      add(QStringLiteral("graph_leave"), tr("Close the group around it\tShift+F11"), [this] { leaveGroup(); });
      add(QStringLiteral("graph_copy"), tr("Copy name"), [name] { QGuiApplication::clipboard()->setText(name); });
      menu.addSeparator();
    }
  }
  add(QStringLiteral("graph_open_all"), tr("Open all groups"), [this] {
    open_ = allGroups(*canvas_->scene()->model);
    relayout(shown_, -1);
  });
  add(QStringLiteral("graph_close_all"), tr("Close all groups"), [this] {
    open_.clear();
    revealed_.clear();
    relayout(shown_, -1);
  });
  add(QStringLiteral("graph_fit"), tr("Fit all\tSpace"), [this] { fitAll(); });
  menu.addSeparator();
  add(QStringLiteral("graph_export"), tr("Export the whole picture …"), [this] { askExport(); });
  menu.exec(at);
}

void GraphView::askExport() {
  const QString path = QFileDialog::getSaveFileName(this, tr("Export the graph"), QStringLiteral("graph.svg"),
                                                    tr("Pictures (*.svg *.pdf *.png)"));
  if (path.isEmpty()) return;
  const QString problem = exportTo(path);
  emit wishes().status(problem.isEmpty() ? tr("Graph written to %1").arg(path) : problem);
}

QString GraphView::exportTo(const QString& path) {
  return exportPicture(path, canvas_->sceneSize(), tr("Graph of the training step"),
                       [this](QPainter& painter) { canvas_->paintScene(painter); });
}

QString GraphView::saveState() const {
  QJsonArray open;
  for (const std::string& path : std::vector<std::string>(open_.begin(), open_.end()))
    open.append(QString::fromStdString(path));
  return QString::fromUtf8(
      QJsonDocument(QJsonObject{{"heat", heat_->currentIndex()}, {"all_edges", allEdges_->isChecked()}, {"open", open}})
          .toJson(QJsonDocument::Compact));
}

void GraphView::restoreState(const QString& state) {
  const QJsonObject json = QJsonDocument::fromJson(state.toUtf8()).object();
  heat_->setCurrentIndex(std::clamp(json["heat"].toInt(), 0, heat_->count() - 1));
  allEdges_->setChecked(json["all_edges"].toBool());
  OpenGroups open;
  for (const QJsonValue& path : json["open"].toArray()) open.insert(path.toString().toStdString());
  if (open.empty()) return;
  open_ = std::move(open);
  chooseOpen_ = false;
  if (shown_) relayout(shown_, -1);
}

}  // namespace stepscope
