// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/training/training_view.h"

#include <qcustomplot.h>

#include <QEvent>
#include <QHBoxLayout>
#include <QToolTip>
#include <QVBoxLayout>
#include <cmath>

#include "engine/snapshot/gradient_norm.h"
#include "views/common/format.h"
#include "views/common/tokens.h"
#include "views/drawing/plot_style.h"

namespace stepscope {
namespace {
constexpr double kSmoothing = 0.9;  // weight of the past in the smoothed curve
}

TrainingView::TrainingView(const ViewContext& context, QWidget* parent)
    : View(context, QStringLiteral("training"), tr("Training"), parent),
      controls_(new QWidget(this)),
      logarithmic_(new QToolButton),
      smooth_(new QToolButton),
      plot_(new QCustomPlot) {
  auto* line = new QHBoxLayout(controls_);
  line->setContentsMargins(0, 0, 0, 0);
  for (auto [button, text] : {std::pair(logarithmic_, tr("Log")), std::pair(smooth_, tr("Smooth"))}) {
    button->setCheckable(true);
    button->setText(text);
  }
  line->addWidget(logarithmic_);
  line->addWidget(smooth_);
  controls_->hide();
  smooth_->setToolTip(tr("Exponential mean, each step counts 10 percent; the measured loss stays behind it"));
  logarithmic_->setToolTip(tr("Logarithmic axis of the loss"));
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(plot_);
  plot_->setAccessibleName(tr("Loss, learning rate and gradient norm over steps"));
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
  upper->axis(QCPAxis::atLeft)->setLabel(tr("loss"));
  lower->axis(QCPAxis::atLeft)->setLabel(tr("gradient norm"));
  lower->axis(QCPAxis::atRight)->setLabel(tr("learning rate"));
  lower->axis(QCPAxis::atBottom)->setLabel(tr("step"));
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
  connect(plot_, &QCustomPlot::mouseMove, this, [this](QMouseEvent* event) {
    const auto& steps = store().steps();
    if (steps.empty()) return;
    const double x = loss_->keyAxis()->pixelToCoord(event->position().x());
    const auto at = std::min_element(steps.begin(), steps.end(), [x](const StepPtr& a, const StepPtr& b) {
      return std::abs(static_cast<double>(a->step()) - x) < std::abs(static_cast<double>(b->step()) - x);
    });
    const auto& s = **at;
    QString text = tr("step %1").arg(s.step());
    if (s.has_loss()) text += tr("\nloss %1").arg(format::numberExact(s.loss()));
    text += tr("\nlearning rate %1").arg(format::number(s.learning_rate()));
    if (s.has_gradient_norm()) {
      text += tr("\ngradient norm before clipping %1").arg(format::number(s.gradient_norm()));
    } else if (const double taken = gradientNorm(s.statistics()); !(taken < 0)) {
      text += tr("\ngradient norm %1").arg(format::number(taken));
    }
    text +=
        tr("\n%1%2, %3").arg(format::time(s.ns()), s.warm_up() ? tr(", warm-up") : QString(), format::visible(s.batch()));
    if (s.recording_ns() > 0) text += tr("\n%1 of it took batch and statistics").arg(format::time(s.recording_ns()));
    cursor_->point1->setCoords(static_cast<double>(s.step()), 0);
    cursor_->point2->setCoords(static_cast<double>(s.step()), 1);
    cursor_->setVisible(true);
    QToolTip::showText(event->globalPosition().toPoint(), text, plot_);
    plot_->replot(QCustomPlot::rpQueuedReplot);
  });
  connect(logarithmic_, &QToolButton::toggled, this, [this](bool on) {
    QCPAxis* axis = loss_->valueAxis();
    axis->setScaleType(on ? QCPAxis::stLogarithmic : QCPAxis::stLinear);
    if (on)
      axis->setTicker(QSharedPointer<QCPAxisTickerLog>::create());
    else
      countNumbers(*axis);
    refill();
  });
  connect(smooth_, &QToolButton::toggled, this, &TrainingView::refill);
  connect(&store(), &SnapshotStore::stepsChanged, this, [this] {
    stale_ = true;
    emit emptyChanged();
    emit headerChanged();
    if (isVisible()) refill();
  });
  colour();
}

QString TrainingView::headerText() const {
  return store().steps().empty() ? QString()
                                 : (store().steps().size() == 1 ? tr("%1 step") : tr("%1 steps"))
                                       .arg(format::count(static_cast<std::int64_t>(store().steps().size())));
}

QString TrainingView::emptyText() const {
  if (!store().steps().empty()) return {};
  return store().plan() ? tr("No step has run yet.\nRun a training step (F8) or train at full speed (Ctrl+F5).")
                        : tr("No model is open.\nOpen one (Ctrl+O) and train: its loss appears here.");
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
  norm_->valueAxis()->setLabelColor(t.series(3));
  rate_->valueAxis()->setLabelColor(t.series(4));
  loss_->valueAxis()->setLabelColor(t.series(0));
}

void TrainingView::refill() {
  stale_ = false;
  QVector<double> x, loss, smooth, xn, norm, xr, rate;
  QVector<double> xSampled, sampled;
  double mean = 0, weight = 0;
  double last = -1;
  for (const StepPtr& s : store().steps()) {
    const double step = static_cast<double>(s->step());
    // A hole in the record is a hole in the curve.
    if (last >= 0 && step > last + 1) {
      for (auto* v : {&x, &xn, &xr}) *v << last + 0.5;
      for (auto* v : {&loss, &smooth, &norm, &rate}) *v << qQNaN();
    }
    last = step;
    x << step;
    loss << (s->has_loss() ? s->loss() : qQNaN());
    if (s->has_loss() && std::isfinite(s->loss())) {
      mean = kSmoothing * mean + (1 - kSmoothing) * s->loss();
      weight = kSmoothing * weight + (1 - kSmoothing);
    }
    smooth << (weight > 0 ? mean / weight : qQNaN());
    xn << step;
    norm << (s->has_gradient_norm() ? s->gradient_norm() : qQNaN());
    if (const double taken = gradientNorm(s->statistics()); !(taken < 0)) {
      xSampled << step;
      sampled << taken;
    }
    xr << step;
    rate << s->learning_rate();
  }
  loss_->setData(x, loss, true);
  smoothLoss_->setData(x, smooth, true);
  smoothLoss_->setVisible(smooth_->isChecked());
  // Without clipping nothing computes the norm; the gradients that were recorded have one, in the steps that recorded them.
  if (std::none_of(norm.begin(), norm.end(), [](double v) { return std::isfinite(v); })) {
    xn = xSampled;
    norm = sampled;
  }
  norm_->setData(xn, norm, true);
  rate_->setData(xr, rate, true);
  // Where there is no norm the learning rate has the lower plot to itself.
  const bool hasNorm = std::any_of(norm.begin(), norm.end(), [](double v) { return std::isfinite(v); });
  QCPAxisRect* lower = plot_->axisRect(1);
  rate_->setValueAxis(lower->axis(hasNorm ? QCPAxis::atRight : QCPAxis::atLeft));
  lower->axis(QCPAxis::atRight)->setVisible(hasNorm);
  lower->axis(QCPAxis::atLeft)->setLabel(hasNorm ? tr("gradient norm") : tr("learning rate"));
  const bool few = x.size() < 60;
  for (auto* g : {loss_, norm_, rate_})
    g->setScatterStyle(few ? QCPScatterStyle(QCPScatterStyle::ssDisc, 4) : QCPScatterStyle(QCPScatterStyle::ssNone));
  colour();
  fitAll();
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
  if (store().steps().size() < 60) loss_->keyAxis()->scaleRange(1.04);  // whole dots at both ends
  if (store().steps().size() == 1)
    loss_->keyAxis()->setRange(loss_->keyAxis()->range().center() - 1, loss_->keyAxis()->range().center() + 1);
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
