// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/value_history/value_history_view.h"

#include <qcustomplot.h>

#include <QEvent>
#include <QSplitter>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>

#include "views/common/chosen_step.h"
#include "views/common/format.h"
#include "views/common/tokens.h"
#include "views/drawing/plot_style.h"
#include "views/drawing/step_menu.h"

namespace stepscope {
namespace {

QString kindText(const std::string& kind) {
  if (kind == "gradient") return QStringLiteral("gradient");
  if (kind == "parameter") return QStringLiteral("parameter");
  if (kind == "watched") return QStringLiteral("watched");
  return kind == "output" ? QStringLiteral("output") : format::visible(kind);
}

TableCell numberCell(double x) { return {format::number(x, 4), x, format::numberExact(x)}; }

// Ids of the values in the graph that is shown: a series has those of the graph that its newest step ran with.
class PresentValues {
 public:
  explicit PresentValues(const GraphSnapshot* graph) : graph_(graph) {}

  int of(const ValueSeries& s) {  // -1: it is not there
    const auto* known = graph_ ? graph_->value(s.value) : nullptr;
    if (known && (s.name.empty() || known->name() == s.name)) return s.value;
    if (graph_ && byName_.empty())
      for (const snapshot::Value& value : graph_->graph().values()) byName_.emplace(value.name(), value.id());
    const auto at = byName_.find(s.name);
    return at == byName_.end() ? -1 : at->second;
  }

 private:
  const GraphSnapshot* graph_;
  std::unordered_map<std::string, int> byName_;
};

}  // namespace

ValueHistoryView::ValueHistoryView(const ViewContext& context, QWidget* parent)
    : TablePanel(
          context, QStringLiteral("value_history"), QStringLiteral("Values over steps"),
          {{QStringLiteral("Of"),
            QStringLiteral("Parameter, module whose output it is, or watched value; click shows its curve"), false, 14},
           {QStringLiteral("What"),
            QStringLiteral(
                "gradient: as accumulated, before clipping; parameter: before the update; output: of the module's last "
                "forward node; watched: in every step, when it was computed, a parameter as the step left it"),
            false, 6},
           {QStringLiteral("Norm"),
            QStringLiteral("Euclidean norm of the finite elements, in the newest step that recorded it"), true, 6},
           {QStringLiteral("÷ first"), QStringLiteral("Norm divided by that of the first recorded step"), true, 5},
           {QStringLiteral("÷ parameter"), QStringLiteral("Norm of the gradient divided by that of its parameter"), true, 6},
           {QStringLiteral("Mean"), QStringLiteral("Over finite elements"), true, 6},
           {QStringLiteral("Std"), QStringLiteral("Population standard deviation"), true, 6},
           {QStringLiteral("Min"), QStringLiteral("Smallest finite element"), true, 6},
           {QStringLiteral("Max"), QStringLiteral("Largest finite element"), true, 6},
           {QStringLiteral("NaN, Inf"),
            QStringLiteral("Elements that are not finite, in the newest step; in brackets the first step that had one"),
            true, 6}},
          parent),
      splitter_(new QSplitter(Qt::Vertical)),
      plot_(new QCustomPlot) {
  setFilterPlaceholder(QStringLiteral("Filter: a name, gradient, parameter, output or watched"));
  makePlot();
  splitter_->setHandleWidth(1);
  splitter_->setChildrenCollapsible(false);
  splitter_->addWidget(table());
  splitter_->addWidget(plot_);
  splitter_->setStretchFactor(0, 3);
  splitter_->setStretchFactor(1, 2);
  body()->addWidget(splitter_, 1);
  connect(&store(), &SnapshotStore::stepsChanged, this, &ValueHistoryView::refillLater);
  connect(&ChosenStep::of(store()), &ChosenStep::changed, this, &ValueHistoryView::refillLater);
  offerSteps(*plot_, context);
  connect(&store(), &SnapshotStore::graphChanged, this, &ValueHistoryView::refillLater);
  connect(table()->selectionModel(), &QItemSelectionModel::currentRowChanged, this, [this](const QModelIndex& now) {
    if (!now.isValid()) return;
    shown_ = static_cast<int>(now.data(RowTableModel::kKeyRole).toLongLong());
    plot();
  });
}

QString ValueHistoryView::headerText() const {
  if (shown_ < 0 || shown_ >= static_cast<int>(series_.size())) return TablePanel::headerText();
  const ValueSeries& s = series_[static_cast<std::size_t>(shown_)];
  const QString chosen = ChosenStep::of(store()).title();
  return chosen.isEmpty()
             ? QStringLiteral("%1 of %2 in %3 steps").arg(kindText(s.kind), format::visible(s.of)).arg(s.points.size())
             : QStringLiteral("%1 · %2 of %3").arg(chosen, kindText(s.kind), format::visible(s.of));
}

QString ValueHistoryView::emptyText() const {
  const ChosenStep& chosen = ChosenStep::of(store());
  if (chosen.state() == ChosenStep::State::kReading || chosen.state() == ChosenStep::State::kMissing) return chosen.text();
  if (chosen.record() && chosen.record()->statistics_size() == 0)
    return QStringLiteral(
               "Step %1 recorded no statistics of its values.\nThe option record.statistics says how often they are taken.")
        .arg(format::count(chosen.step()));
  for (const StepPtr& step : store().steps()) {
    if (step->statistics_size() > 0) return {};
  }
  if (store().steps().empty())
    return store().plan()
               ? QStringLiteral("No step has run yet.\nRun a training step (F8) or train at full speed (Ctrl+F5).")
               : QStringLiteral("No model is open.\nOpen one (Ctrl+O) and train.");
  return QStringLiteral(
      "No step recorded statistics.\nThe option record.statistics says how often they are taken: auto, off, or every N-th "
      "step.");
}

void ValueHistoryView::makePlot() {
  plot_->setAccessibleName(QStringLiteral("Norm and range over the recorded steps"));
  plot_->setMinimumHeight(60);
  plot_->plotLayout()->clear();
  auto* left = new QCPAxisRect(plot_);
  auto* right = new QCPAxisRect(plot_);
  plot_->plotLayout()->addElement(0, 0, left);
  plot_->plotLayout()->addElement(0, 1, right);
  left->axis(QCPAxis::atLeft)->setLabel(QStringLiteral("norm"));
  right->axis(QCPAxis::atLeft)->setLabel(QStringLiteral("min, mean, max"));
  for (auto* rect : {left, right}) {
    rect->axis(QCPAxis::atBottom)->setLabel(QStringLiteral("step"));
    countWhole(*rect->axis(QCPAxis::atBottom));
  }
  fitTicks(*plot_);
  const auto graph = [this](QCPAxisRect* rect) {
    return plot_->addGraph(rect->axis(QCPAxis::atBottom), rect->axis(QCPAxis::atLeft));
  };
  norm_ = graph(left);
  bad_ = graph(left);
  least_ = graph(right);
  most_ = graph(right);
  mean_ = graph(right);
  most_->setChannelFillGraph(least_);
  bad_->setLineStyle(QCPGraph::lsNone);
  colour();
}

void ValueHistoryView::colour() {
  const Tokens& t = Tokens::current();
  dressAxes(*plot_);
  norm_->setPen(QPen(t.series(0), 1.6));
  mean_->setPen(QPen(t.series(3), 1.6));
  for (auto* edge : {least_, most_}) edge->setPen(QPen(mixed(t.series(3), t.panel, 0.5), 1));
  most_->setBrush(mixed(t.series(3), t.panel, 0.15));
  bad_->setScatterStyle(QCPScatterStyle(QCPScatterStyle::ssCross, QPen(t.error, 1.6), Qt::NoBrush, 8));
}

void ValueHistoryView::refill() {
  const std::string kind = shown_ >= 0 && shown_ < static_cast<int>(series_.size())
                               ? series_[static_cast<std::size_t>(shown_)].kind
                               : std::string();
  const std::string of = kind.empty() ? std::string() : series_[static_cast<std::size_t>(shown_)].of;
  const ChosenStep& chosen = ChosenStep::of(store());
  std::vector<StepPtr> steps = store().steps();
  if (const StepPtr& record = chosen.record(); record && record->statistics_size() > 0) {
    const auto place = std::lower_bound(steps.begin(), steps.end(), record->step(),
                                        [](const StepPtr& s, std::int64_t n) { return s->step() < n; });
    if (place == steps.end() || (*place)->step() != record->step())
      steps.insert(place, record);
    else
      *place = record;
  }
  series_ = valueSeries(steps);
  // Of the chosen step, or of the newest that recorded it.
  const auto pointOf = [&chosen](const ValueSeries& s) -> const ValueSeries::Point* {
    if (chosen.step() < 0) return &s.points.back();
    const auto at = std::find_if(s.points.begin(), s.points.end(), [&](const auto& p) { return p.step == chosen.step(); });
    return at == s.points.end() ? nullptr : &*at;
  };
  shown_ = series_.empty() ? -1 : 0;
  std::map<std::string, double> parameters;
  for (const ValueSeries& s : series_)
    if (const auto* p = pointOf(s); p && s.kind == "parameter") parameters[s.of] = p->norm;
  double most = 0;
  for (const ValueSeries& s : series_)
    if (const auto* p = pointOf(s); p && s.kind == "gradient") most = std::max(most, p->norm);
  std::vector<TableRow> rows;
  PresentValues present(store().graph().get());
  for (std::size_t i = 0; i < series_.size(); ++i) {
    const ValueSeries& s = series_[i];
    if (s.kind == kind && s.of == of) shown_ = static_cast<int>(i);
    const ValueSeries::Point* const shown = pointOf(s);
    if (!shown) continue;  // the chosen step has nothing of it
    const ValueSeries::Point& last = *shown;
    TableRow row;
    row.key = static_cast<qint64>(i);
    row.target = Selection::ofValue(present.of(s));
    TableCell norm = numberCell(last.norm);
    norm.tip = QStringLiteral("%1\nin step %2, over %3 elements")
                   .arg(format::numberExact(last.norm))
                   .arg(last.step)
                   .arg(format::count(s.count));
    if (s.kind == "gradient" && most > 0) norm.share = last.norm / most;
    const double first = s.points.front().norm;
    TableCell change = first > 0 && s.points.size() > 1 ? numberCell(last.norm / first) : TableCell(QString(), -1);
    TableCell ratio(QString(), -1);
    if (const auto it = parameters.find(s.of); s.kind == "gradient" && it != parameters.end() && it->second > 0)
      ratio = numberCell(last.norm / it->second);
    const auto firstBad = std::find_if(s.points.begin(), s.points.end(), [](const auto& p) { return p.notFinite > 0; });
    TableCell bad(format::count(last.notFinite) +
                      (firstBad == s.points.end() ? QString() : QStringLiteral(" (%1)").arg(firstBad->step)),
                  QVariant::fromValue<qint64>(last.notFinite));
    bad.role = firstBad == s.points.end() ? QStringLiteral("faint") : QStringLiteral("error");
    TableCell what(kindText(s.kind));
    what.role = QStringLiteral("muted");
    row.cells = {TableCell(format::visible(s.of)),
                 what,
                 norm,
                 change,
                 ratio,
                 numberCell(last.mean),
                 numberCell(last.std),
                 numberCell(last.min),
                 numberCell(last.max),
                 bad};
    rows.push_back(std::move(row));
  }
  setRows(std::move(rows));
  plot();
}

void ValueHistoryView::plot() {
  QVector<double> x, norm, least, most, mean, badX, badY;
  const bool any = shown_ >= 0 && shown_ < static_cast<int>(series_.size());
  if (any) {
    for (const auto& p : series_[static_cast<std::size_t>(shown_)].points) {
      x << static_cast<double>(p.step);
      norm << p.norm;
      least << p.min;
      most << p.max;
      mean << p.mean;
      if (p.notFinite == 0) continue;
      badX << x.last();
      badY << p.norm;
    }
  }
  norm_->setData(x, norm, true);
  bad_->setData(badX, badY, true);
  least_->setData(x, least, true);
  most_->setData(x, most, true);
  mean_->setData(x, mean, true);
  const QCPScatterStyle dots =
      x.size() < 60 ? QCPScatterStyle(QCPScatterStyle::ssDisc, 4) : QCPScatterStyle(QCPScatterStyle::ssNone);
  norm_->setScatterStyle(dots);
  mean_->setScatterStyle(dots);
  for (auto* rect : plot_->axisRects()) {
    for (auto* axis : rect->axes()) axis->rescale(true);
    for (const auto side : {QCPAxis::atBottom, QCPAxis::atLeft}) {
      QCPAxis* axis = rect->axis(side);
      axis->setTickLabels(!x.isEmpty());  // an empty plot has no numbers
      if (x.isEmpty()) axis->setRange(0, 1);
      const double middle = axis->range().center();
      if (x.size() == 1 || axis->range().size() <= 0)
        axis->setRange(middle - std::max(1e-12, std::abs(middle) * 0.1), middle + std::max(1e-12, std::abs(middle) * 0.1));
      axis->scaleRange(1.08, axis->range().center());
    }
    if (x.size() == 1) rect->axis(QCPAxis::atBottom)->setRange(x.first() - 1, x.first() + 1);
  }
  plot_->replot(QCustomPlot::rpQueuedReplot);
  emit headerChanged();
}

void ValueHistoryView::resizeEvent(QResizeEvent* event) {
  TablePanel::resizeEvent(event);
  // Beside each other in a wide strip, one above the other in a column.
  splitter_->setOrientation(width() > 2 * height() ? Qt::Horizontal : Qt::Vertical);
}

void ValueHistoryView::changeEvent(QEvent* event) {
  TablePanel::changeEvent(event);
  if (event->type() == QEvent::PaletteChange || event->type() == QEvent::StyleChange) {
    colour();
    plot_->replot(QCustomPlot::rpQueuedReplot);
  }
}

}  // namespace stepscope
