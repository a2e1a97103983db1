// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/training/training_view.h"

#include <qcustomplot.h>

#include <QEvent>
#include <QHBoxLayout>
#include <QToolTip>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "views/common/format.h"
#include "views/common/tokens.h"
#include "views/drawing/plot_style.h"
#include "views/drawing/step_menu.h"

namespace stepscope {
namespace {
constexpr std::size_t kMostPoints = 4000;  // of a curve
constexpr int kRefillMs = 200;             // between two refills while steps follow each other
constexpr std::size_t kMostMarks = 16;
}  // namespace

TrainingView::TrainingView(const ViewContext& context, QWidget* parent)
    : View(context, QStringLiteral("training"), QStringLiteral("Training"), parent),
      controls_(new QWidget(this)),
      logarithmic_(new QToolButton),
      smooth_(new QToolButton),
      plot_(new QCustomPlot) {
  auto* line = new QHBoxLayout(controls_);
  line->setContentsMargins(0, 0, 0, 0);
  for (auto [button, text] :
       {std::pair(logarithmic_, QStringLiteral("Log")), std::pair(smooth_, QStringLiteral("Smooth"))}) {
    button->setCheckable(true);
    button->setText(text);
  }
  line->addWidget(logarithmic_);
  line->addWidget(smooth_);
  controls_->hide();
  smooth_->setToolTip(
      QStringLiteral("Mean over a tenth of the steps, as many before as after; the measured loss stays behind it"));
  logarithmic_->setToolTip(QStringLiteral("Logarithmic axis of the loss"));
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(plot_);
  plot_->setAccessibleName(QStringLiteral("Loss, learning rate and gradient norm over steps"));
  plot_->setMinimumHeight(60);

  // Loss above, gradient norm and learning rate below on axes of their own.
  plot_->plotLayout()->clear();
  auto* upper = new QCPAxisRect(plot_);
  auto* lower = new QCPAxisRect(plot_);
  lower->axis(QCPAxis::atRight)->setVisible(true);
  lower->axis(QCPAxis::atRight)->setTickLabels(true);
  plot_->plotLayout()->addElement(0, 0, upper);
  plot_->plotLayout()->addElement(1, 0, lower);
  plot_->plotLayout()->setRowStretchFactor(0, 2);
  auto* group = new QCPMarginGroup(plot_);
  for (auto* rect : {upper, lower}) rect->setMarginGroup(QCP::msLeft | QCP::msRight, group);
  upper->axis(QCPAxis::atLeft)->setLabel(QStringLiteral("loss"));
  lower->axis(QCPAxis::atLeft)->setLabel(QStringLiteral("gradient norm"));
  lower->axis(QCPAxis::atRight)->setLabel(QStringLiteral("learning rate"));
  lower->axis(QCPAxis::atBottom)->setLabel(QStringLiteral("step"));
  upper->axis(QCPAxis::atBottom)->setTickLabels(false);
  for (auto* rect : {upper, lower}) countWhole(*rect->axis(QCPAxis::atBottom));
  fitTicks(*plot_);
  loss_ = plot_->addGraph(upper->axis(QCPAxis::atBottom), upper->axis(QCPAxis::atLeft));
  smoothLoss_ = plot_->addGraph(upper->axis(QCPAxis::atBottom), upper->axis(QCPAxis::atLeft));
  norm_ = plot_->addGraph(lower->axis(QCPAxis::atBottom), lower->axis(QCPAxis::atLeft));
  rate_ = plot_->addGraph(lower->axis(QCPAxis::atBottom), lower->axis(QCPAxis::atRight));
  cursor_ = new QCPItemStraightLine(plot_);
  cursor_->setClipAxisRect(upper);
  cursor_->setVisible(false);
  for (auto* rect : {upper, lower}) {
    rect->setRangeDrag(Qt::Horizontal);
    rect->setRangeZoom(Qt::Horizontal);
    rect->setupFullAxesBox();
    for (auto type : {QCPAxis::atTop, QCPAxis::atBottom, QCPAxis::atLeft, QCPAxis::atRight}) {
      rect->axis(type)->setVisible(type == QCPAxis::atBottom || type == QCPAxis::atLeft ||
                                   (rect == lower && type == QCPAxis::atRight));
    }
  }
  lower->axis(QCPAxis::atRight)->setTickLabels(true);
  const auto follow = [](QCPAxis* from, QCPAxis* to) {
    connect(from, qOverload<const QCPRange&>(&QCPAxis::rangeChanged), to,
            [to](const QCPRange& range) { to->setRange(range); });
  };
  follow(upper->axis(QCPAxis::atBottom), lower->axis(QCPAxis::atBottom));
  follow(lower->axis(QCPAxis::atBottom), upper->axis(QCPAxis::atBottom));
  plot_->setInteractions(QCP::iRangeDrag | QCP::iRangeZoom);
  offerSteps(*plot_, context);
  connect(plot_, &QCustomPlot::mouseMove, this, [this](QMouseEvent* event) {
    const StepSeries& series = store().series();
    if (series.empty()) return;
    const std::size_t at = series.nearest(loss_->keyAxis()->pixelToCoord(event->position().x()));
    const std::int64_t step = series.step()[at];
    QString text = QStringLiteral("step %1").arg(step);
    if (!std::isnan(series.loss()[at])) text += QStringLiteral("\nloss %1").arg(format::numberExact(series.loss()[at]));
    text += QStringLiteral("\nlearning rate %1").arg(format::number(series.rate()[at]));
    if (!std::isnan(series.norm()[at]))
      text += QStringLiteral("\ngradient norm before clipping %1").arg(format::number(series.norm()[at]));
    text += QStringLiteral("\n%1").arg(format::time(series.ns()[at]));
    if (series.cpuNs()[at] > 0) text += QStringLiteral(", processor time %1").arg(format::time(series.cpuNs()[at]));
    // More is known of those whose record is at hand.
    const auto& records = store().steps();
    const auto record = std::lower_bound(records.begin(), records.end(), step,
                                         [](const StepPtr& s, std::int64_t n) { return s->step() < n; });
    if (record != records.end() && (*record)->step() == step) {
      const auto& s = **record;
      text +=
          QStringLiteral("%1, %2").arg(s.warm_up() ? QStringLiteral(", warm-up") : QString(), format::visible(s.batch()));
      if (s.recording_ns() > 0)
        text += QStringLiteral("\n%1 of it took batch and statistics").arg(format::time(s.recording_ns()));
    }
    cursor_->point1->setCoords(static_cast<double>(step), 0);
    cursor_->point2->setCoords(static_cast<double>(step), 1);
    cursor_->setVisible(true);
    QToolTip::showText(event->globalPosition().toPoint(), text, plot_);
    plot_->replot(QCustomPlot::rpQueuedReplot);
  });
  connect(logarithmic_, &QToolButton::toggled, this, [this](bool on) {
    QCPAxis* axis = loss_->valueAxis();
    axis->setScaleType(on ? QCPAxis::stLogarithmic : QCPAxis::stLinear);
    if (on)
      countLogarithmic(*axis);
    else
      countNumbers(*axis);
    refill();
  });
  connect(smooth_, &QToolButton::toggled, this, &TrainingView::refill);
  connect(&store(), &SnapshotStore::alertsChanged, this, [this] {
    stale_ = true;
    if (isVisible()) refill();
  });
  later_.setSingleShot(true);
  connect(&later_, &QTimer::timeout, this, [this] {
    if (isVisible() && stale_) refill();
  });
  connect(&store(), &SnapshotStore::stepsChanged, this, [this] {
    stale_ = true;
    emit emptyChanged();
    emit headerChanged();
    if (!isVisible() || later_.isActive()) return;
    const qint64 since = refilled_.isValid() ? refilled_.elapsed() : kRefillMs;
    if (since >= kRefillMs)
      refill();
    else
      later_.start(kRefillMs - static_cast<int>(since));
  });
  colour();
}

QString TrainingView::headerText() const {
  const auto steps = static_cast<std::int64_t>(store().series().size());
  return steps == 0 ? QString()
                    : (steps == 1 ? QStringLiteral("%1 step") : QStringLiteral("%1 steps")).arg(format::count(steps));
}

QString TrainingView::emptyText() const {
  if (!store().steps().empty()) return {};
  return store().plan() ? QStringLiteral("No step has run yet.\nRun a training step (F8) or train at full speed (Ctrl+F5).")
                        : QStringLiteral("No model is open.\nOpen one (Ctrl+O) and train: its loss appears here.");
}

void TrainingView::colour() {
  const Tokens& t = Tokens::current();
  const auto pen = [](const QColor& c, double w) { return QPen(c, w); };
  dressAxes(*plot_);
  loss_->setPen(pen(smooth_->isChecked() ? mixed(t.series(0), t.panel, 0.35) : t.series(0), 1.6));
  smoothLoss_->setPen(pen(t.series(0), 1.8));
  norm_->setPen(pen(t.series(3), 1.4));
  rate_->setPen(pen(t.series(4), 1.4));
  cursor_->setPen(pen(t.edge, 1));
  for (auto* line : marks_) line->setPen(pen(t.error, 1.2));
  for (auto* text : markTexts_) {
    text->setColor(t.error);
    text->setBrush(t.panel);
  }
  norm_->valueAxis()->setLabelColor(t.series(3));
  rate_->valueAxis()->setLabelColor(t.series(4));
  loss_->valueAxis()->setLabelColor(t.series(0));
}

void TrainingView::refill() {
  stale_ = false;
  refilled_.start();
  const StepSeries& series = store().series();
  const std::size_t n = series.size();
  // Of a long run each curve has, for every few steps, its least and its largest: what a narrow line could show of them.
  const std::size_t bundle = std::max<std::size_t>(1, n / kMostPoints);
  // The mean of the steps around, as many on both sides.
  const auto around = static_cast<std::ptrdiff_t>(std::clamp<std::size_t>(n / 20, 2, 500));
  std::vector<double> sums(n + 1, 0), counts(n + 1, 0);
  if (smooth_->isChecked())
    for (std::size_t i = 0; i < n; ++i) {
      const bool finite = std::isfinite(series.loss()[i]);
      sums[i + 1] = sums[i] + (finite ? series.loss()[i] : 0);
      counts[i + 1] = counts[i] + (finite ? 1 : 0);
    }
  const auto mean = [&](std::size_t i) {
    const auto at = static_cast<std::ptrdiff_t>(i), reach = std::min({around, at, static_cast<std::ptrdiff_t>(n) - 1 - at});
    const auto from = static_cast<std::size_t>(at - reach), to = static_cast<std::size_t>(at + reach + 1);
    const double count = counts[to] - counts[from];
    return count > 0 ? (sums[to] - sums[from]) / count : qQNaN();
  };
  const auto fill = [&](QCPGraph* graph, auto&& valueOf) {
    QVector<double> x, y;
    x.reserve(static_cast<qsizetype>(2 * (n / bundle + 1)));
    y.reserve(x.capacity());
    for (std::size_t first = 0; first < n; first += bundle) {
      const std::size_t end = std::min(n, first + bundle);
      // A hole in the record is a hole in the curve.
      if (first > 0 && series.step()[first] > series.step()[first - 1] + 1) {
        x << static_cast<double>(series.step()[first - 1]) + 0.5;
        y << qQNaN();
      }
      std::size_t least = first, most = first;
      double low = valueOf(first), high = low;
      for (std::size_t i = first + 1; i < end; ++i) {
        const double v = valueOf(i);
        if (v < low || std::isnan(low)) least = i, low = v;
        if (v > high || std::isnan(high)) most = i, high = v;
      }
      for (const std::size_t i : {std::min(least, most), std::max(least, most)}) {
        x << static_cast<double>(series.step()[i]);
        y << valueOf(i);
        if (least == most) break;
      }
    }
    graph->setData(x, y, true);
  };
  fill(loss_, [&](std::size_t i) { return series.loss()[i]; });
  if (smooth_->isChecked()) fill(smoothLoss_, mean);
  smoothLoss_->setVisible(smooth_->isChecked());
  fill(norm_, [&](std::size_t i) { return series.norm()[i]; });
  fill(rate_, [&](std::size_t i) { return series.rate()[i]; });
  // Where there is no norm the learning rate has the lower plot to itself.
  const bool hasNorm = std::any_of(series.norm().begin(), series.norm().end(), [](double v) { return std::isfinite(v); });
  QCPAxisRect* lower = plot_->axisRect(1);
  rate_->setValueAxis(lower->axis(hasNorm ? QCPAxis::atRight : QCPAxis::atLeft));
  lower->axis(QCPAxis::atRight)->setVisible(hasNorm);
  lower->axis(QCPAxis::atLeft)->setLabel(hasNorm ? QStringLiteral("gradient norm") : QStringLiteral("learning rate"));
  const bool few = n < 60;
  for (auto* g : {loss_, norm_, rate_})
    g->setScatterStyle(few ? QCPScatterStyle(QCPScatterStyle::ssDisc, 4) : QCPScatterStyle(QCPScatterStyle::ssNone));
  mark();
  colour();
  fitAll();
}

void TrainingView::mark() {
  for (auto* line : marks_) plot_->removeItem(line);
  for (auto* text : markTexts_) plot_->removeItem(text);
  marks_.clear();
  markTexts_.clear();
  static const std::map<std::string, QString> kMarked{
      {"nan", QStringLiteral("NaN")}, {"inf", QStringLiteral("Inf")}, {"edited", QStringLiteral("edited by hand")}};
  std::map<std::int64_t, QString> found;
  for (const auto& alert : store().alerts()) {
    const auto name = kMarked.find(alert.code());
    if (alert.step() < 0 || name == kMarked.end() || found.size() >= kMostMarks) continue;
    QString& text = found[alert.step()];
    if (!text.contains(name->second)) text += (text.isEmpty() ? QString() : QStringLiteral(", ")) + name->second;
  }
  QCPAxisRect* upper = plot_->axisRect(0);
  for (const auto& [step, name] : found) {
    auto* line = new QCPItemStraightLine(plot_);
    line->setClipAxisRect(upper);
    for (auto* position : {line->point1, line->point2}) {
      position->setAxes(loss_->keyAxis(), loss_->valueAxis());
      position->setTypeY(QCPItemPosition::ptAxisRectRatio);
      position->setAxisRect(upper);
    }
    line->point1->setCoords(static_cast<double>(step), 0);
    line->point2->setCoords(static_cast<double>(step), 1);
    auto* text = new QCPItemText(plot_);
    text->setClipAxisRect(upper);
    text->position->setAxes(loss_->keyAxis(), loss_->valueAxis());
    text->position->setTypeY(QCPItemPosition::ptAxisRectRatio);
    text->position->setAxisRect(upper);
    text->position->setCoords(static_cast<double>(step), 0.04);
    // Beside its line, on the side where there is room.
    const bool late = !store().series().empty() && 2 * step > store().series().step().back();
    text->setPositionAlignment(Qt::AlignTop | (late ? Qt::AlignRight : Qt::AlignLeft));
    text->setPadding(QMargins(3, 0, 3, 0));
    text->setText(QStringLiteral("%1 in step %2").arg(name).arg(step));
    text->setFont(smallFont());
    marks_.push_back(line);
    markTexts_.push_back(text);
  }
}

void TrainingView::fitAll() {
  for (auto* g : {loss_, norm_, rate_}) {
    bool any = false;
    g->getValueRange(any);
    if (!any) continue;
    g->valueAxis()->rescale(true);
    // A constant has no range of its own: its axis shows a tenth around it.
    bool found = false;
    const QCPRange range = g->getValueRange(found);
    if (found && range.size() <= 0) {
      const double around = range.center() == 0 ? 1 : std::abs(range.center()) * 0.1;
      g->valueAxis()->setRange(range.center() - around, range.center() + around);
    } else {
      g->valueAxis()->scaleRange(1.2, g->valueAxis()->range().center());
    }
  }
  loss_->keyAxis()->rescale(true);
  // The last step may have no finite loss, and is the one to look at.
  if (!marks_.empty() && !store().series().empty()) {
    double last = static_cast<double>(store().series().step().back());
    for (const auto* line : marks_) last = std::max(last, line->point1->key() * 1.005);
    loss_->keyAxis()->setRangeUpper(std::max(loss_->keyAxis()->range().upper, last));
  }
  if (store().series().size() < 60) loss_->keyAxis()->scaleRange(1.04);  // whole dots at both ends
  if (store().series().size() == 1) {                                    // its number is the only one
    const auto at = static_cast<double>(store().series().step().front());
    loss_->keyAxis()->setRange(at - 0.5, at + 0.5);
  }
  plot_->replot(QCustomPlot::rpQueuedReplot);
}

void TrainingView::drawPicture(QPainter& painter) {
  const QPixmap picture = plot_->toPixmap(width(), height(), 2.0);
  painter.drawPixmap(QRect(0, 0, width(), height()), picture);
}

void TrainingView::showEvent(QShowEvent* event) {
  View::showEvent(event);
  if (stale_) refill();
}

void TrainingView::changeEvent(QEvent* event) {
  View::changeEvent(event);
  if (event->type() == QEvent::PaletteChange || event->type() == QEvent::StyleChange) {
    colour();
    plot_->replot(QCustomPlot::rpQueuedReplot);
  }
}

}  // namespace stepscope
