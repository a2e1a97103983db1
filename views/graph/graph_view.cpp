// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/graph/graph_view.h"

#include <QHBoxLayout>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QKeyEvent>
#include <QVBoxLayout>
#include <algorithm>
#include <utility>

#include "views/common/format.h"
#include "views/common/pass_stages.h"
#include "views/common/tokens.h"
#include "views/graph/graph_search.h"

namespace stepscope {

GraphView::GraphView(const ViewContext& context, QWidget* parent)
    : View(context, QStringLiteral("graph"), QStringLiteral("Graph"), parent) {
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
  strip_->setStops(PassStages::of(store()).stops());
  strip_->setVisible(store().stages().size() > 1);

  connect(&store(), &SnapshotStore::graphChanged, this, &GraphView::graphChanged);
  connect(&store(), &SnapshotStore::stagesChanged, this, [this] {
    strip_->setStops(PassStages::of(store()).stops());
    strip_->setVisible(store().stages().size() > 1);
    const bool other = !stage_.isEmpty();
    stage_.clear();
    base_.clear();
    if (other && store().graph()) graphChanged();  // the stage that was looked at may be no more
  });
  connect(&store(), &SnapshotStore::stageArrived, this, [this](const QString& stage) {
    if (stage == stage_ || stage == base_) showStage(stage_, base_);
    // A build that failed stands beside the plan that is shown, whose graph has another name then.
    if (stage_.isEmpty() && store().graph() && store().graphOf(stage) == store().graph()) strip_->setShown(stage, {});
  });
  connect(&wishes(), &Wishes::showStop, this, &GraphView::showPlace);
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
    if (worker_.busy()) canvas_->setNote(QStringLiteral("Laying out the graph …  Esc cancels"));
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
  heat_->setAccessibleName(QStringLiteral("Heat"));
  heat_->setToolTip(
      QStringLiteral("Paints a quantity on the nodes; time is the median of the newest steps, without the cold first one"));
  for (const HeatKind kind :
       {HeatKind::kNone, HeatKind::kTime, HeatKind::kBytes, HeatKind::kFlops, HeatKind::kBadNumbers, HeatKind::kPadding}) {
    heat_->addItem(QStringLiteral("Heat: %1").arg(heatName(kind)), static_cast<int>(kind));
  }
  allEdges_ = new QToolButton(controls_);
  allEdges_->setObjectName(QStringLiteral("graph_all_edges"));
  allEdges_->setCheckable(true);
  allEdges_->setText(QStringLiteral("All edges"));
  allEdges_->setToolTip(QStringLiteral("Draws stashes and long edges as full lines instead of stubs"));
  hideCasts_ = new QToolButton(controls_);
  hideCasts_->setObjectName(QStringLiteral("graph_hide_casts"));
  hideCasts_->setCheckable(true);
  hideCasts_->setText(QStringLiteral("Hide casts"));
  hideCasts_->setToolTip(QStringLiteral("Leaves out conversions between float types: lines go from where a value is made"));
  zoom_ = new QLabel(controls_);
  zoom_->setProperty("role", "faint");
  zoom_->setMinimumWidth(zoom_->fontMetrics().horizontalAdvance(QStringLiteral("1000 %")));
  zoom_->setAlignment(Qt::AlignRight | Qt::AlignVCenter);
  row->addWidget(heat_);
  row->addWidget(allEdges_);
  row->addWidget(hideCasts_);
  row->addWidget(zoom_);
  connect(heat_, &QComboBox::currentIndexChanged, this, &GraphView::updateMarks);
  connect(allEdges_, &QToolButton::toggled, canvas_, &GraphCanvas::setAllEdges);
  connect(hideCasts_, &QToolButton::toggled, this, [this] {
    if (shown_) relayout(shown_, -1);
  });

  finder_ = new GraphFinder(this);
  finder_->setObjectName(QStringLiteral("graph_finder"));
  connect(finder_, &GraphFinder::wanted, this, &GraphView::search);
}

QString GraphView::headerText() const {
  if (!canvas_->scene() || !store().graph()) return {};
  const GraphModel& model = *canvas_->scene()->model;
  QString text = QStringLiteral("%1 nodes").arg(format::count(model.snapshot().nodeCount()));
  if (!base_.isEmpty())
    text += QStringLiteral(" · changes from %1 to %2").arg(format::visible(base_), format::visible(stage_));
  return text;
}

QString GraphView::emptyText() const {
  if (shown_ && shown_->nodeCount() == 0) return QStringLiteral("This graph has no nodes.");
  return store().graph()
             ? QString()
             : QStringLiteral("No graph yet. Open a model (Ctrl+O); its graph appears here as soon as it is loaded.");
}

void GraphView::graphChanged() {
  emit emptyChanged();
  if (!store().graph()) {
    if (!model_.isEmpty() && !looked_ && !chooseOpen_) left_ = {model_, open_, canvas_->camera()};
    model_.clear();
    worker_.cancel();
    shown_ = nullptr;
    stage_.clear();
    base_.clear();
    open_.clear();
    revealed_.clear();
    chooseOpen_ = true;
    return;
  }
  // What a build made of a model that was only looked at opens as a model that is new.
  if (looked_ && store().building()) {
    open_.clear();
    revealed_.clear();
    chooseOpen_ = true;
  }
  looked_ = !store().plan() && !store().building();
  model_ = store().model() ? QString::fromStdString(store().model()->path()) : QString();
  if (chooseOpen_ && !looked_ && comesBack()) {
    open_ = left_.open;
    chooseOpen_ = false;
  }
  stage_.clear();
  base_.clear();
  diff_ = PhaseDiff();
  strip_->setShown(QString::fromStdString(store().graph()->graph().phase()), {});
  relayout(store().graph(), -1);
}

bool GraphView::comesBack() const { return !left_.model.isEmpty() && left_.model == model_; }

void GraphView::showStage(const QString& stage, const QString& base) {
  stage_ = stage;
  base_ = base;
  strip_->setShown(stage, base);
  const GraphPtr after = store().graphOf(stage), before = base.isEmpty() ? nullptr : store().graphOf(base);
  if (!after) emit wishes().stageGraph(stage);
  if (!base.isEmpty() && !before) emit wishes().stageGraph(base);
  if (!after || (!base.isEmpty() && !before)) {
    canvas_->setNote(QStringLiteral("Fetching the graph …"));
    return;
  }
  canvas_->setNote({});
  diff_ = before ? PhaseDiff::make(*before, *after) : PhaseDiff();
  strip_->setCounts(before ? diff_.added : -1, diff_.removed, diff_.changed);
  if (reveal_ >= 0) {
    focusNext_ = true;
    revealed_.clear();
  }
  relayout(before ? diff_.united : after, std::exchange(reveal_, -1));
}

// The node may be one that the newest graph has no more.
void GraphView::showPlace(const QString& stop, const QString& base, int node) {
  own_ = true;  // its way into sight is the scene that comes
  if (node >= 0) selection().select(Selection::ofNode(node));
  own_ = false;
  if (node >= 0) selectedId_ = node;
  reveal_ = node;
  showStage(stop, base);
}

void GraphView::relayout(std::shared_ptr<const GraphSnapshot> snapshot, int reveal) {
  shown_ = std::move(snapshot);
  LayoutRequest request;
  request.snapshot = drawn();
  if (canvas_->scene()) {
    if (request.snapshot.get() == &canvas_->scene()->model->snapshot()) request.model = canvas_->scene()->model;
    if (!chooseOpen_) request.previous = canvas_->scene();  // of another model
  }
  request.open = open_;
  for (const std::string& path : revealed_) request.open.insert(path);
  request.chooseOpen = chooseOpen_;
  request.reveal = reveal;
  worker_.start(std::move(request));
}

std::shared_ptr<const GraphSnapshot> GraphView::drawn() {
  if (!hideCasts_->isChecked()) return shown_;
  if (castsOf_ != shown_) {
    castsOf_ = shown_;
    withoutCasts_ = WithoutCasts::make(shown_);
  }
  return withoutCasts_.graph;
}

void GraphView::showScene(const std::shared_ptr<const GraphScene>& scene, const OpenGroups& open) {
  const bool other = std::exchange(chooseOpen_, false);  // the first one of a model
  if (other) open_ = open;
  canvas_->setScene(scene, anchor_, anchorGroup_);
  if (other) canvas_->fitAll();
  if (!looked_ && comesBack()) {
    if (!left_.camera.fitted()) canvas_->setCamera(left_.camera);
    if (store().plan()) left_ = {};
  }
  const auto& groups = scene->model->groups();
  const std::string opened = std::exchange(opened_, {});
  const auto stepped = std::ranges::find(groups, opened, &ModelGroup::path);
  if (!opened.empty() && stepped != groups.end()) canvas_->showGroup(static_cast<int>(stepped - groups.begin()));
  anchor_ = -1;
  anchorGroup_.clear();
  updateMarks();
  if (finder_->isVisible()) search(0);
  const int node = scene->model->ofNodeId(selectedId_);
  canvas_->setSelected(node, groupIn(*scene->model));
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
  if (planMarks_.model != canvas_->scene()->model || planMarks_.plan != store().plan())
    planMarks_ = PlanMarks::make(canvas_->scene()->model, store().plan());
  GraphMarks marks = GraphMarks::make(planMarks_, store(), static_cast<HeatKind>(heat_->currentData().toInt()));
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

std::vector<int> GraphView::groupIn(const GraphModel& model) const {
  std::vector<int> nodes;
  if (const auto& group = selection().selection().group) {
    for (const int id : group->nodes()) nodes.push_back(model.ofNodeId(id));
  }
  return nodes;
}

void GraphView::showSelection() {
  const Selection& s = selection().selection();
  int id = s.node;
  if (id < 0 && s.instruction >= 0 && store().plan()) {
    if (const snapshot::Instruction* in = store().plan()->instruction(s.instruction)) id = in->node();
  }
  if (id < 0 && s.value >= 0 && store().graph()) id = store().graph()->producer(s.value);
  if (hideCasts_->isChecked()) {
    if (const auto hidden = withoutCasts_.standIn.find(id); hidden != withoutCasts_.standIn.end()) id = hidden->second;
  }
  selectedId_ = id;
  if (!canvas_->scene()) return;
  const GraphModel& model = *canvas_->scene()->model;
  const int node = id < 0 ? -1 : model.ofNodeId(id);
  canvas_->setSelected(node, groupIn(model));
  updateEmphasis();
  if (own_) broughtId_ = id;
  if (node < 0 || own_ || !isVisible()) return;
  broughtId_ = id;
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

void GraphView::focusSelection() {
  if (!canvas_->scene() || canvas_->selected() < 0) return;
  const int box = canvas_->scene()->boxOfNode[static_cast<std::size_t>(canvas_->selected())];
  canvas_->fitBox(box);
}

void GraphView::fitAll() { canvas_->fitAll(); }
void GraphView::drawPicture(QPainter& painter) { canvas_->paintVisible(painter); }

void GraphView::find() {
  finder_->placeOver(canvas_->geometry());
  finder_->open();
  search(0);
}

void GraphView::search(int step) {
  if (!canvas_->scene()) return;
  const QString query = finder_->query();
  const bool searching = !query.isEmpty();
  const GraphScene& scene = *canvas_->scene();
  matches_ = searching ? searchGraph(*scene.model, query.toStdString()) : std::vector<int>();
  const int count = static_cast<int>(matches_.size());
  match_ = count == 0 ? -1 : step == 0 ? std::clamp(match_, 0, count - 1) : ((match_ + step) % count + count) % count;
  canvas_->setMatches({matches_.begin(), matches_.end()}, searching,
                      match_ < 0 ? -1 : matches_[static_cast<std::size_t>(match_)]);
  finder_->showCount(match_, count);
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
  if (set.empty()) emit wishes().status(QStringLiteral("There is no way from this node to the loss"));
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
    } else if (!selection().selection().empty()) {
      selection().clear();
    } else {
      View::keyPressEvent(event);  // what is above may have something to close
    }
  } else if (event->key() == Qt::Key_N && event->modifiers() == Qt::NoModifier) {
    setEmphasis(Emphasis::kNeighbours);
  } else if (event->key() == Qt::Key_L && event->modifiers() == Qt::NoModifier) {
    setEmphasis(Emphasis::kPathToLoss);
  } else {
    View::keyPressEvent(event);
  }
}

void GraphView::showEvent(QShowEvent* event) {
  View::showEvent(event);
  // Selected elsewhere meanwhile; the panel has its size only after this event.
  if (selectedId_ != broughtId_) QTimer::singleShot(0, this, &GraphView::showSelection);
}

void GraphView::resizeEvent(QResizeEvent*) { finder_->placeOver(canvas_->geometry()); }

QString GraphView::saveState() const {
  QJsonArray open;
  for (const std::string& path : std::vector<std::string>(open_.begin(), open_.end()))
    open.append(QString::fromStdString(path));
  return QString::fromUtf8(QJsonDocument(QJsonObject{{"heat", heat_->currentIndex()},
                                                     {"all_edges", allEdges_->isChecked()},
                                                     {"hide_casts", hideCasts_->isChecked()},
                                                     {"open", open}})
                               .toJson(QJsonDocument::Compact));
}

void GraphView::restoreState(const QString& state) {
  const QJsonObject json = QJsonDocument::fromJson(state.toUtf8()).object();
  heat_->setCurrentIndex(std::clamp(json["heat"].toInt(), 0, heat_->count() - 1));
  allEdges_->setChecked(json["all_edges"].toBool());
  hideCasts_->setChecked(json["hide_casts"].toBool());
  OpenGroups open;
  for (const QJsonValue& path : json["open"].toArray()) open.insert(path.toString().toStdString());
  if (open.empty()) return;
  open_ = std::move(open);
  chooseOpen_ = false;
  if (shown_) relayout(shown_, -1);
}

}  // namespace stepscope
