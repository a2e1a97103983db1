// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/timeline/timeline_view.h"

#include <QKeyEvent>
#include <QMenu>
#include <QVBoxLayout>
#include <unordered_set>
#include <utility>

#include "views/common/chosen_step.h"
#include "views/common/empty_text.h"
#include "views/common/format.h"
#include "views/common/rank_times.h"
#include "views/common/step_plans.h"

namespace stepscope {
namespace {
constexpr int kRefresh = 120;  // milliseconds between two models while a run records
}

TimelineView::TimelineView(const ViewContext& context, QWidget* parent)
    : View(context, QStringLiteral("timeline"), QStringLiteral("Timeline"), parent),
      chooser_(new StepChooser(context, this)) {
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  canvas_ = new TimelineCanvas(this);
  canvas_->setObjectName(QStringLiteral("timeline_canvas"));
  column->addWidget(canvas_);
  setFocusProxy(canvas_);
  pool_.setMaxThreadCount(1);
  soon_.setSingleShot(true);
  soon_.setInterval(kRefresh);
  connect(&soon_, &QTimer::timeout, this, &TimelineView::rebuild);
  const auto later = [this] {
    if (!soon_.isActive()) soon_.start();
  };
  connect(&store(), &SnapshotStore::stepsChanged, this, later);
  connect(&store(), &SnapshotStore::planChanged, this, later);
  connect(&store(), &SnapshotStore::graphChanged, this, later);
  connect(&store(), &SnapshotStore::alertsChanged, this, later);  // somebody stopped in a step
  connect(&RankTimes::of(store().project()), &RankTimes::changed, this, later);
  connect(&ChosenStep::of(store()), &ChosenStep::changed, this, [this] {
    elsewhere_ = true;
    emit emptyChanged();
    rebuild();
  });
  connect(&selection(), &SelectionModel::selectionChanged, this, &TimelineView::showSelection);
  connect(&selection(), &SelectionModel::rangeChanged, canvas_, &TimelineCanvas::setRange);
  connect(canvas_, &TimelineCanvas::timePicked, &selection(), &SelectionModel::setRange);
  connect(canvas_, &AxisCanvas::clicked, this, [this](QPointF pixel) {
    int row = 0, slice = 0;
    if (canvas_->sliceAt(pixel, &row, &slice)) {
      const TimelineSlice& s =
          canvas_->model()->rows()[static_cast<std::size_t>(row)].slices[static_cast<std::size_t>(slice)];
      if (s.instruction >= 0)
        selection().select(Selection::ofInstruction(s.instruction));
      else  // of another plan, and this one has no such instruction
        selection().setRange(s.begin, s.end);
    } else if (const int step = canvas_->stepAt(pixel); step >= 0) {
      const TimelineStep& s = canvas_->model()->steps()[static_cast<std::size_t>(step)];
      selection().setRange(s.begin, s.end);
    } else {
      selection().setRange(0, 0);
    }
  });
  connect(canvas_, &AxisCanvas::doubleClicked, this, [this](QPointF pixel) {
    int row = 0, slice = 0;
    if (canvas_->sliceAt(pixel, &row, &slice)) {
      focusSelection();
    } else if (const int step = canvas_->stepAt(pixel); step >= 0) {
      const TimelineStep& s = canvas_->model()->steps()[static_cast<std::size_t>(step)];
      canvas_->showTime(s.begin, s.end);
    } else {
      canvas_->fit();
    }
  });
  connect(canvas_, &AxisCanvas::menuWanted, this, [this](QPointF pixel, const QPoint& at) {
    QMenu menu(this);
    int row = 0, slice = 0;
    const int instruction =
        canvas_->sliceAt(pixel, &row, &slice)
            ? canvas_->model()->rows()[static_cast<std::size_t>(row)].slices[static_cast<std::size_t>(slice)].instruction
            : -1;
    if (instruction >= 0) {
      menu.addAction(QStringLiteral("Select instruction %1").arg(format::count(instruction)), this,
                     [this, instruction] { selection().select(Selection::ofInstruction(instruction)); });
      menu.addAction(QStringLiteral("Run to %1").arg(format::count(instruction)), this,
                     [this, instruction] { emit wishes().runTo(instruction); })
          ->setEnabled(!store().readOnly());
    }
    if (selection().rangeEnd() > selection().rangeBegin()) {
      menu.addAction(QStringLiteral("Zoom to the range\tR"), this,
                     [this] { canvas_->showTime(selection().rangeBegin(), selection().rangeEnd()); });
      menu.addAction(QStringLiteral("Forget the range\tEsc"), this, [this] { selection().setRange(0, 0); });
    }
    menu.addAction(QStringLiteral("Show all\tSpace"), this, [this] { fitAll(); });
    menu.exec(at);
  });
  canvas_->setRange(selection().rangeBegin(), selection().rangeEnd());
  rebuild();
}

TimelineView::~TimelineView() { pool_.waitForDone(); }

QString TimelineView::headerText() const {
  const auto& model = canvas_->model();
  if (!model || model->steps().empty() || !emptyText().isEmpty()) return {};
  const auto steps = static_cast<std::int64_t>(model->steps().size());
  const QString chosen = ChosenStep::of(store()).title();
  const QString shown = !chosen.isEmpty() ? chosen
                        : steps == 1      ? QStringLiteral("1 step")
                                          : QStringLiteral("%1 steps").arg(format::count(steps));
  QString text = QStringLiteral("%1 · %2 spans").arg(shown, format::count(model->sliceCount()));
  if (const auto& cuts = model->axis().cuts(); !cuts.empty())
    text += (cuts.size() == 1 ? QStringLiteral(" · %1 stop of %2 cut out") : QStringLiteral(" · %1 stops of %2 cut out"))
                .arg(format::count(static_cast<std::int64_t>(cuts.size())), format::time(model->axis().cutOut()));
  // Somebody stopped, and nothing says where the time of it went.
  if (const auto uncut = std::ranges::count_if(model->steps(), [](const auto& s) { return s.stopped && s.waiting == 0; }))
    text += (uncut == 1 ? QStringLiteral(" · %1 step was stopped for less than %2 ms at a time, which stays in it")
                        : QStringLiteral(" · %1 steps were stopped for less than %2 ms at a time, which stays in them"))
                .arg(format::count(uncut), QString::number(TimelineModel::kShortestCut / 1'000'000));
  if (const snapshot::DeviceWork& device = model->steps().back().device; !device.rung().empty())
    text += QStringLiteral(" · device by %1").arg(format::visible(device.rung()));
  if (model->ranks() > 1) text += QStringLiteral(" · %1 ranks").arg(format::count(model->ranks()));
  if (model->others() > 0) text += QStringLiteral(" · %1 of another plan").arg(model->others());
  return text;
}

QString TimelineView::emptyText() const {
  const ChosenStep& chosen = ChosenStep::of(store());
  if (chosen.state() != ChosenStep::State::kNewest) return chosen.text();
  if (!store().plan() && store().steps().empty())
    return QStringLiteral(
        "No model is open. Open one (Ctrl+O) and run a training step; its instructions appear here over time.");
  const auto& all = store().steps();  // the newest ones have spans, if any
  if (std::any_of(all.rbegin(), all.rend(), [](const StepPtr& step) { return step && step->spans_size() > 0; }) ||
      RankTimes::of(store().project()).hasSteps())
    return {};
  return noTimesText(store(), QStringLiteral("its instructions appear here over time"));
}

void TimelineView::rebuild() {
  const int request = ++request_;
  const std::vector<StepPtr> all = ChosenStep::of(store()).steps();
  const StepPlans& plans = StepPlans::of(store());
  const RankTimes& ranks = RankTimes::of(store().project());
  std::unordered_set<std::int64_t> stopped;
  for (const snapshot::Alert& alert : store().alerts())
    if (alert.code() == "stopped") stopped.insert(alert.step());
  std::vector<RanStep> steps;
  for (std::size_t i = all.size() - std::min<std::size_t>(all.size(), 64); i < all.size(); ++i) {
    PlanOfStep under = plans.planOf(all[i]->step());
    if (!under.plan && plans.underPresent(*all[i])) under = {store().plan(), store().graph()};
    steps.push_back({all[i], std::move(under.plan), std::move(under.graph), ranks.ofStep(all[i]->step()),
                     stopped.contains(all[i]->step())});
  }
  pool_.start([this, request, steps, plan = store().plan()] {
    auto model = TimelineModel::make(steps, plan);
    QMetaObject::invokeMethod(
        this,
        [this, request, model = std::move(model)] {
          if (request != request_) return;
          canvas_->setModel(model);
          if (std::exchange(elsewhere_, false)) canvas_->fit();
          showSelection();
          emit headerChanged();
          emit emptyChanged();
          emit modelReady();
        },
        Qt::QueuedConnection);
  });
}

void TimelineView::showSelection() {
  const PlanPtr& plan = store().plan();
  if (!plan) return;
  const Selection& s = selection().selection();
  int instruction = s.instruction;
  if (instruction < 0 && s.node >= 0) instruction = plan->instructionOfNode(s.node);
  std::vector<int> related;
  const snapshot::Instruction* in = plan->instruction(instruction);
  if (in != nullptr && store().graph()) {
    for (const int node : store().graph()->mirrored(in->node())) related.push_back(plan->instructionOfNode(node));
    if (const int forward = store().graph()->forwardOf(in->node()); forward >= 0)
      related.push_back(plan->instructionOfNode(forward));
    std::erase(related, -1);
  }
  std::unordered_set<int> group;
  if (s.group) {
    for (const int node : s.group->nodes()) group.insert(plan->instructionOfNode(node));
    group.erase(-1);
  }
  canvas_->setSelected(instruction, std::move(related), std::move(group));
}

void TimelineView::focusSelection() {
  int instruction = selection().selection().instruction;
  if (instruction < 0 && store().plan()) instruction = store().plan()->instructionOfNode(selection().selection().node);
  canvas_->showInstruction(instruction);
}

void TimelineView::fitAll() { canvas_->fit(); }
void TimelineView::drawPicture(QPainter& painter) { canvas_->paintOn(painter); }

// The time of the selected instruction, or of the newest step, becomes the range that flame graph and tables follow.
void TimelineView::mark() {
  const auto& model = canvas_->model();
  if (!model || model->steps().empty()) return;
  int row = 0, slice = 0;
  std::int64_t begin = model->steps().back().begin, end = model->steps().back().end;
  if (model->find(selection().selection().instruction, &row, &slice)) {
    const TimelineSlice& s = model->rows()[static_cast<std::size_t>(row)].slices[static_cast<std::size_t>(slice)];
    begin = s.begin;
    end = s.end;
  }
  const bool marked = selection().rangeBegin() == begin && selection().rangeEnd() == end;
  selection().setRange(marked ? 0 : begin, marked ? 0 : end);
}

void TimelineView::keyPressEvent(QKeyEvent* event) {
  const bool ranged = selection().rangeEnd() > selection().rangeBegin();
  if (event->key() == Qt::Key_M && event->modifiers() == Qt::NoModifier) {
    mark();
  } else if (event->key() == Qt::Key_R && event->modifiers() == Qt::NoModifier && ranged) {
    canvas_->showTime(selection().rangeBegin(), selection().rangeEnd());
  } else if (event->key() == Qt::Key_Escape && ranged) {
    selection().setRange(0, 0);
  } else {
    View::keyPressEvent(event);
  }
}

}  // namespace stepscope
