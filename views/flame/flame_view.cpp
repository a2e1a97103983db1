// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/flame/flame_view.h"

#include <QVBoxLayout>
#include <algorithm>

#include "views/common/chosen_step.h"
#include "views/common/empty_text.h"
#include "views/common/format.h"

namespace stepscope {
namespace {
constexpr std::size_t kMostSteps = 64;
}

FlameView::FlameView(const ViewContext& context, QWidget* parent)
    : View(context, QStringLiteral("flame"), QStringLiteral("Flame graph"), parent),
      chooser_(new StepChooser(context, this)) {
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  canvas_ = new FlameCanvas(this);
  canvas_->setObjectName(QStringLiteral("flame_canvas"));
  canvas_->setAccessibleName(QStringLiteral("Flame graph"));
  column->addWidget(canvas_);
  setFocusProxy(canvas_);
  pool_.setMaxThreadCount(1);
  soon_.setSingleShot(true);
  soon_.setInterval(120);
  connect(&soon_, &QTimer::timeout, this, &FlameView::rebuild);
  const auto later = [this] {
    if (!soon_.isActive()) soon_.start();
  };
  connect(&store(), &SnapshotStore::stepsChanged, this, later);
  connect(&store(), &SnapshotStore::planChanged, this, later);
  connect(&selection(), &SelectionModel::rangeChanged, this, later);
  connect(&ChosenStep::of(store()), &ChosenStep::changed, this, [this] {
    emit emptyChanged();
    rebuild();
  });
  connect(canvas_, &FlameCanvas::chosen, this, [this](int id) {
    if (id < 0 || id >= static_cast<int>(tree_.nodes.size())) return;
    const FlameNode& chosen = tree_.nodes[static_cast<std::size_t>(id)];
    std::vector<int> nodes = tree_.nodesBelow(id);
    if (nodes.empty()) return;
    Selection wanted = Selection::ofNode(*std::min_element(nodes.begin(), nodes.end(), [this](int a, int b) {
      return store().plan() && store().plan()->instructionOfNode(a) < store().plan()->instructionOfNode(b);
    }));
    // The whole sum marks nothing.
    if (id > 0)
      wanted.group = NodeGroup::make(
          format::visible(chosen.path.empty() || !chosen.nodes.empty() ? chosen.name : chosen.path), std::move(nodes));
    selection().select(wanted);
  });
  connect(&selection(), &SelectionModel::selectionChanged, this, &FlameView::markSelection);
  rebuild();
}

FlameView::~FlameView() { pool_.waitForDone(); }

QString FlameView::headerText() const {
  if (tree_.ns == 0) return {};
  const bool ranged = selection().rangeEnd() > selection().rangeBegin();
  const QString chosen = ChosenStep::of(store()).title();
  if (!ranged && !chosen.isEmpty()) return QStringLiteral("%1 in %2").arg(format::time(tree_.ns), chosen);
  return (ranged ? QStringLiteral("%1 in the range of %2")
                       .arg(format::time(tree_.ns), format::time(selection().rangeEnd() - selection().rangeBegin()))
                 : (counted_.steps.size() == 1 ? QStringLiteral("%1 in %2 step") : QStringLiteral("%1 in %2 steps"))
                       .arg(format::time(tree_.ns))
                       .arg(counted_.steps.size())) +
         counted_.leftOut();
}

QString FlameView::emptyText() const {
  const ChosenStep& chosen = ChosenStep::of(store());
  if (chosen.state() != ChosenStep::State::kNewest && !chosen.textOfPlan().isEmpty()) return chosen.textOfPlan();
  if (tree_.ns > 0) return {};
  if (!store().plan() && store().steps().empty())
    return QStringLiteral("No model is open. Open one (Ctrl+O) and run a training step; its time appears here by module.");
  if (counted_.steps.empty() && counted_.others > 0)
    return QStringLiteral("The recorded steps ran under another plan. Run a training step (F8) of this one.");
  return selection().rangeEnd() > selection().rangeBegin()
             ? QStringLiteral("No instruction ran in the picked range. Pick another one in the timeline.")
             : noTimesText(store(), QStringLiteral("its time appears here by module"));
}

void FlameView::rebuild() {
  const int request = ++request_;
  counted_ = countedSteps(ChosenStep::of(store()).steps(), kMostSteps, selection().rangeBegin(), selection().rangeEnd(),
                          &StepPlans::of(store()));
  pool_.start([this, request, steps = counted_.steps, plan = store().plan(), graph = store().graph(),
               begin = selection().rangeBegin(), end = selection().rangeEnd()] {
    auto tree = FlameTree::make(steps, plan.get(), graph.get(), begin, end);
    QMetaObject::invokeMethod(
        this,
        [this, request, tree = std::move(tree)] {
          if (request == request_) showTree(tree);
        },
        Qt::QueuedConnection);
  });
}

void FlameView::showTree(FlameTree tree) {
  tree_ = std::move(tree);
  std::vector<FlameBox> boxes;
  boxes.reserve(tree_.nodes.size());
  for (std::size_t i = 0; i < tree_.nodes.size() && tree_.ns > 0; ++i) {
    const FlameNode& node = tree_.nodes[i];
    FlameBox box;
    box.begin = static_cast<double>(node.begin);
    box.end = static_cast<double>(node.begin + node.ns);
    box.depth = node.depth;
    box.name = format::visible(node.name);
    box.detail = format::time(node.ns) + QStringLiteral(" · ") +
                 format::percent(static_cast<double>(node.ns), static_cast<double>(tree_.ns));
    box.category = QString::fromStdString(node.category);
    // Modules stay neutral: colour is for the category of an op.
    box.id = static_cast<int>(i);
    boxes.push_back(std::move(box));
  }
  canvas_->setBoxes(std::move(boxes), {}, [this](const FlameBox& box) {
    const FlameNode& node = tree_.nodes[static_cast<std::size_t>(box.id)];
    return QStringLiteral("%1%2\n%3 (%4)\n%5 of the shown time · %6 spans")
        .arg(node.path.empty() || node.category.empty() ? QString() : format::visible(node.path) + QStringLiteral(" / "),
             node.category.empty() && !node.path.empty() ? format::visible(node.path) : box.name)
        .arg(format::time(node.ns), format::timeExact(node.ns),
             format::percent(static_cast<double>(node.ns), static_cast<double>(tree_.ns)), format::count(node.spans));
  });
  markSelection();
  emit headerChanged();
  emit emptyChanged();
  emit modelReady();
}

void FlameView::markSelection() {
  const Selection& s = selection().selection();
  std::unordered_set<int> marked;
  for (std::size_t i = 0; i < tree_.nodes.size(); ++i) {
    const std::vector<int>& nodes = tree_.nodes[i].nodes;
    if (std::any_of(nodes.begin(), nodes.end(), [&s](int node) { return s.holds(node); }))
      marked.insert(static_cast<int>(i));
  }
  canvas_->setMarked(std::move(marked));
}

void FlameView::fitAll() { canvas_->fit(); }
void FlameView::drawPicture(QPainter& painter) { canvas_->paintOn(painter); }

}  // namespace stepscope
